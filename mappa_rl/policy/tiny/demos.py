"""Imperfect demonstrations: what the embedded model is warm-started on.

Each role does its duty in several ways, some right and some wrong, and the share of each way is set here. The warm
start imitates all of them, so the base team knows every move but not which ones pay: that is left to learning.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mappa_envs.code_blocks import python_code
from mappa_envs.grading.expressions import evaluate
from mappa_envs.messages import build_messages
from mappa_envs.tasks.math.base import MathTask
from mappa_envs.topologies.chain import CHAIN
from mappa_envs.transcript import Message, ToolResult, Turn, Verdict

_MAX_DIGITS = 8
# Longer values would make the sequences long and teach nothing but copying.

_SKIPPED = Verdict.skipped("demonstration", "none")


@dataclass(frozen=True, slots=True)
class Shares:
    """How often each role does the right thing in demonstrations, 0 to 1."""

    plan_right: tuple[float, float] = (0.2, 0.7)
    """Share of right plans in the first and the last family; families between are spaced evenly."""
    import_math: float = 0.6
    """Share of programs that import `math` when they need it."""
    fenced: float = 0.9
    repaired: float = 0.7
    """Share of second attempts that cure the fault of the first."""
    boxed: float = 0.6
    """Share of verifiers who box the output."""


@dataclass(frozen=True, slots=True)
class Demo:
    """One chat with the answer that is imitated."""

    messages: tuple[Message, ...]
    response: str


def demonstrate(task: MathTask, plan_share: float, shares: Shares, rng: np.random.Generator) -> list[Demo]:
    """Play one episode of the maths chain by chance and return one demonstration per turn.

    Args:
        task: A task with an expression and mistakes.
        plan_share: Chance that the solver's plan is right.
        shares: Chances of the other right moves.
        rng: The only source of chance.
    """
    turns: list[Turn] = []
    demos: list[Demo] = []

    def say(agent: str, response: str, tools: tuple[ToolResult, ...] = ()) -> None:
        messages = build_messages(CHAIN, task.prompt, turns, agent)
        demos.append(Demo(messages, response))
        role = CHAIN.role_of(agent).name
        turns.append(Turn(len(turns), len(turns), agent, role, messages, response, tools, _SKIPPED))

    right = rng.random() < plan_share
    wrong = [m for m in task.mistakes if len(str(evaluate(m))) <= _MAX_DIGITS] or [task.mistakes[0]]
    plan = str(task.expression) if right else wrong[int(rng.integers(len(wrong)))]
    say("solver_0", f"The statement is one expression.\nCompute: {plan}")
    imports = rng.random() < shares.import_math
    fenced = rng.random() < shares.fenced
    first = write_program(plan, imports=imports, fenced=fenced)
    tool = pretend_run(first)
    say("coder_0", first, (tool,))
    if tool.status != "ok":
        cured = rng.random() < shares.repaired
        second = write_program(plan, imports=imports or cured, fenced=fenced or cured)
        tool = pretend_run(second)
        say("coder_0", second, (tool,))
    value = tool.output.strip().splitlines()[-1] if tool.status == "ok" else "0"
    boxed = rng.random() < shares.boxed
    say("verifier_0", f"The output fits.\n\\boxed{{{value}}}" if boxed else f"The answer is {value}.")
    return demos


def write_program(expression: str, *, imports: bool, fenced: bool) -> str:
    """Return the coder's text for an expression."""
    lines = ["import math"] if imports and "math." in expression else []
    code = "\n".join([*lines, f"print({expression})"])
    return f"```python\n{code}\n```" if fenced else code


def pretend_run(action: str) -> ToolResult:
    """Return what the sandbox would give back for `write_program`'s texts, without starting a kernel.

    A test holds these results against the real sandbox.
    """
    code = python_code(action)
    if code is None:
        return ToolResult("python", "", "missing", "No fenced python block was found, so nothing was run.")
    expression = code.splitlines()[-1].removeprefix("print(").removesuffix(")")
    if "math." in expression and "import math" not in code:
        trace = (
            f"Traceback (most recent call last):\n\n  Cell In[1], line 1\n    print({expression})\n\n"
            "NameError: name 'math' is not defined"
        )
        return ToolResult("python", code, "error", trace)
    return ToolResult("python", code, "ok", str(evaluate(expression)))
