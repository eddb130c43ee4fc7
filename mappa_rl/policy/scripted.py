"""Policies without a model: plain functions, and an oracle that plays maths tasks right."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from mappa_envs.tasks.math.base import MathTask
from mappa_envs.topologies import CHAIN
from mappa_envs.topology import Topology
from mappa_rl.errors import PolicyError
from mappa_rl.policy.base import Policy, PolicyRequest, Sample, Sampling

Script = Callable[[PolicyRequest], str]


class ScriptedPolicy(Policy):
    """Plays each role by a function from what the agent sees to its text.

    Args:
        scripts: One function per role name (`solver`) or agent id (`solver_0`; it goes first).
    """

    def __init__(self, scripts: Mapping[str, Script]) -> None:
        self.scripts = dict(scripts)

    def act(self, requests: Sequence[PolicyRequest], sampling: Sampling, *, seed: int) -> list[Sample]:
        """Call the agent's function for each request; sampling and seed play no part.

        Raises:
            PolicyError: If a role has no script.
        """
        return [Sample(text=self._script(r.agent)(r)) for r in requests]

    def _script(self, agent: str) -> Script:
        for key in (agent, agent.rsplit("_", 1)[0]):
            if key in self.scripts:
                return self.scripts[key]
        raise PolicyError(f"no script for {agent!r}", expected=f"one of {', '.join(self.scripts)}", got=agent)


def math_oracle(tasks: Iterable[MathTask], topology: Topology = CHAIN) -> ScriptedPolicy:
    """Return a policy that solves the given maths tasks by their hidden expression or answer.

    It is an upper bound for environments and judges, not a player: it must be handed the tasks.

    Args:
        tasks: All tasks that it will meet.
        topology: Its roles are played by their duties.

    Raises:
        PolicyError: If a role has a duty that is not one of maths.
    """
    by_prompt = {task.prompt: task for task in tasks}

    def find(request: PolicyRequest) -> MathTask:
        text = request.messages[1]["content"]
        for prompt, task in by_prompt.items():
            if text.startswith(f"Problem:\n{prompt}"):
                return task
        raise PolicyError("the oracle was not given this task", got=text[:80])

    def expression(task: MathTask) -> str:
        return task.expression or repr(task.answers[0])

    def printed(request: PolicyRequest) -> list[str]:
        seen = "\n".join(message["content"] for message in request.messages[1:])
        return re.findall(r"^Output:\n(.+)$", seen, re.MULTILINE)

    def solve(request: PolicyRequest) -> str:
        return f"The statement translates into one expression.\nCompute: {expression(find(request))}"

    def compute(request: PolicyRequest) -> str:
        return f"```python\nimport math\n\nprint({expression(find(request))})\n```"

    def answer(request: PolicyRequest) -> str:
        value = (printed(request) or find(request).answers)[-1]
        return f"The output answers the question.\n\\boxed{{{value}}}"

    def work(request: PolicyRequest) -> str:
        return answer(request) if printed(request) else compute(request)

    def route(request: PolicyRequest) -> str:
        names = [role.name for role in topology.choices(request.agent.rsplit("_", 1)[0])]
        turn = sum(message["role"] == "assistant" for message in request.messages)
        return f"Next: {names[turn % len(names)]}"

    by_duty = {"solve": solve, "compute": compute, "answer": answer, "check": answer, "work": work, "route": route}
    strange = [role.duty for role in topology.roles if role.duty not in by_duty]
    if strange:
        raise PolicyError("the oracle cannot play this team", expected=f"duties {', '.join(by_duty)}", got=strange[0])
    return ScriptedPolicy({role.name: by_duty[role.duty] for role in topology.roles})
