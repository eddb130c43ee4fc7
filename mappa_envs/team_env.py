"""`TeamEnv`: the one engine behind every environment: whose turn, what they see, tools, judge, reward."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, ClassVar

import numpy as np
from gymnasium.spaces import Dict as DictSpace
from pettingzoo import AECEnv

from envs_registry.errors import ConfigError
from mappa_envs import background
from mappa_envs.checks import MAX_ACTION_CHARS, check_action, check_seed, task_index
from mappa_envs.errors import ActionError, EpisodeError
from mappa_envs.inspection import FileWork, Inspector
from mappa_envs.judges.base import Judge, JudgeRequest, checked
from mappa_envs.judges.requests import GroundTruth, make_request, requests_of
from mappa_envs.messages import build_messages, flatten
from mappa_envs.render import render_transcript
from mappa_envs.sandbox.base import SandboxConfig
from mappa_envs.spaces import AnyText
from mappa_envs.tasks.base import Task, TaskSource
from mappa_envs.toolbox import Toolbox
from mappa_envs.topology import Topology
from mappa_envs.transcript import Message, Outcome, ToolResult, Transcript, Turn, Verdict

OutcomeFn = Callable[[Task, Topology, tuple[Turn, ...]], Awaitable[Outcome]]
"""Decides from ground truth how the team did."""

MAX_PROMPT_CHARS = 10_000_000
_ENDLESS = 2**31


class TeamEnv(AECEnv[str, dict[str, str], str]):
    """A team of roles works on one task per episode; a judge scores every action.

    The acting agent's action is a string. Its reward is known when `step` returns: `env.rewards[agent]`, with the
    whole verdict in `env.infos[agent]["verdict"]`. All agents stay alive until the flow of the topology is over and
    then terminate together, so `last()` shows the reward of an agent's last action only at its dead step: training
    loops read `env.rewards` right after `step`.

    Args:
        env_id: Registered id, for records.
        topology: Roles, flow and views.
        tasks: Where tasks come from; `reset(seed=s)` draws one from a generator seeded with `s`.
        judge: Gives the verdicts.
        outcome: Grades the finished episode from ground truth; None where `work` does.
        work: For domains of files: what is laid out in the workspace, and who looks into the agents' work.
        sandbox: Limits of agent code; a kernel is started only for an agent that runs code.
        ground_truth: Which turns the judge may see the hidden answer for.
        render_mode: `ansi` (render returns text), `human` (the transcript is printed as it grows) or None.

    Raises:
        ConfigError: If an argument has the wrong type or value.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "mappa_team",
        "render_modes": ["ansi", "human"],
        # The stock conversion shows every role the observation of the cycle's start: a coder would not see its solver.
        "is_parallelizable": False,
    }

    def __init__(
        self,
        *,
        env_id: str,
        topology: Topology,
        tasks: TaskSource,
        judge: Judge,
        outcome: OutcomeFn | None = None,
        work: FileWork | None = None,
        sandbox: SandboxConfig | None = None,
        ground_truth: GroundTruth = "all",
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(topology, Topology):
            raise ConfigError("topology is of the wrong type", expected="a Topology", got=repr(topology))
        if not isinstance(judge, Judge):
            raise ConfigError("judge is of the wrong type", expected="a Judge", got=repr(judge))
        if not isinstance(tasks, TaskSource):
            raise ConfigError("tasks is of the wrong type", expected="a TaskSource", got=repr(tasks))
        if (outcome is None) == (work is None):
            raise ConfigError("who grades the episode?", expected="one of outcome= and work=", got="both or neither")
        if ground_truth not in ("all", "answer", "none"):
            raise ConfigError("ground_truth", expected="'all', 'answer' or 'none'", got=repr(ground_truth))
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ConfigError("render_mode", expected="'ansi', 'human' or None", got=repr(render_mode))
        self.env_id, self.topology, self.tasks, self.judge = env_id, topology, tasks, judge
        self.sandbox_config = sandbox or SandboxConfig()
        self.ground_truth, self.render_mode = ground_truth, render_mode
        self._outcome_fn, self._work = outcome, work
        self._inspector: Inspector | None = None
        self.possible_agents = list(topology.agents)
        self.observation_spaces = {
            a: DictSpace({"role": AnyText(64), "prompt": AnyText(MAX_PROMPT_CHARS)}) for a in self.possible_agents
        }
        self.action_spaces = {a: AnyText(MAX_ACTION_CHARS) for a in self.possible_agents}
        self._rng: np.random.Generator | None = None
        self._task: Task | None = None
        self._toolbox = Toolbox(self.sandbox_config)
        self._printed = 0

    # PettingZoo's spaces API -------------------------------------------------------------------------------------

    def observation_space(self, agent: str) -> DictSpace:
        """Return the agent's observation space: `Dict(role, prompt)` of text."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> AnyText:
        """Return the agent's action space: any text."""
        return self.action_spaces[agent]

    # Episode -----------------------------------------------------------------------------------------------------

    @property
    def task(self) -> Task:
        """The task of the running episode, hidden answer included: for judges and records, never for agents."""
        if self._task is None:
            raise EpisodeError("there is no task yet", fix="call reset() first")
        return self._task

    @property
    def transcript(self) -> Transcript:
        """The episode so far."""
        if self._task is None:
            raise EpisodeError("there is no episode yet", fix="call reset() first")
        return self._transcript

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Start an episode.

        Args:
            seed: Draws the task; the same seed gives the same task in every process. Without one the generator of
                the last seeded reset goes on.
            options: `{"task_index": i}` plays task `i` of the source instead of a drawn one. Keys that resemble no
                option are ignored, as PettingZoo asks.

        Raises:
            ConfigError: If an option or the seed is malformed.
            TaskError: If the source has no task of that index.
        """
        background.run(self.reset_async(seed, options))

    async def reset_async(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Do what `reset` does; must be awaited on the background loop."""
        index = task_index(options)
        check_seed(seed)
        if seed is not None or self._rng is None:
            self._rng = np.random.default_rng(seed)
        drawn = int(self._rng.integers(0, self.tasks.size if self.tasks.size is not None else _ENDLESS))
        task = self.tasks.task(drawn if index is None else index)
        await self._toolbox.close()
        self._toolbox = Toolbox(self.sandbox_config, self._work.lay_out(task) if self._work is not None else None)
        self._inspector = self._work.inspector(task, self._toolbox) if self._work is not None else None
        self._given_files = self._toolbox.files
        self._task = task
        self._transcript = Transcript(
            env_id=self.env_id,
            topology=self.topology.name,
            task_id=task.id,
            task_kind=task.kind,
            seed=None if seed is None else int(seed),
            sandbox_level=None,
        )
        self._printed = 0
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._layer_index = 0
        self._waiting = list(self.topology.next_layer(()))
        self.agent_selection = self._waiting[0]
        self._refresh_infos({})

    def observe(self, agent: str) -> dict[str, str]:
        """Return what `agent` sees now: its role's name and its chat as one text."""
        return {"role": self.topology.role_of(agent).name, "prompt": flatten(self.messages(agent))}

    def messages(self, agent: str) -> tuple[Message, ...]:
        """Return the chat that `agent` sees now; turns of the layer under way are not in it."""
        complete = [t for t in self.transcript.turns if t.layer < self._layer_index]
        return build_messages(self.topology, self.task.prompt, complete, agent, self._given_files)

    @property
    def layer(self) -> tuple[str, ...]:
        """The agents that act side by side now and have not acted yet; empty when the episode is over."""
        return tuple(self._waiting) if self._task is not None else ()

    def step(self, action: str | None) -> None:
        """Take the selected agent's action, run its code, have it judged, and pass the turn on.

        Args:
            action: The agent's text; None for an agent that has terminated.

        Raises:
            ActionError: If the action is not a string, too long, or not encodable as UTF-8.
            EpisodeError: If there is no running episode.
            SandboxError: If the sandbox itself failed.
        """
        agent = self._check_step(action)
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        background.run(self.step_async(action))

    async def step_async(self, action: str | None) -> None:
        """Do what `step` does for a live agent; must be awaited on the background loop."""
        agent = self._check_step(action)
        await self.layer_async({agent: action} if action is not None else {})

    async def layer_async(self, actions: Mapping[str, str | None]) -> None:
        """Take the actions of several agents of the layer under way at once: their tools and verdicts overlap.

        Args:
            actions: One action per agent; agents of the layer that are missing act later.

        Raises:
            ActionError: If an agent is not one of `layer`, or an action is malformed.
        """
        for agent, action in actions.items():
            if agent not in self._waiting:
                raise ActionError(
                    f"{agent!r} cannot act now",
                    expected=f"an action of {' or '.join(self._waiting) or 'nobody'}",
                    got=f"an action of {agent!r}",
                    fix="act for env.agent_selection (or the agents of env.layer)",
                )
            check_action(agent, action)
        self._clear_rewards()
        order = [a for a in self._waiting if a in actions]
        turns = await self._take_turns([(a, str(actions[a])) for a in order])
        for agent in order:
            self._cumulative_rewards[agent] = 0.0
            self._waiting.remove(agent)
        self._transcript = replace(self._transcript, turns=(*self._transcript.turns, *turns))
        self.rewards.update({t.agent: t.verdict.reward for t in turns})
        news: dict[str, dict[str, Any]] = {
            t.agent: {"verdict": t.verdict.public(), "tools": [asdict(tool) for tool in t.tools]} for t in turns
        }
        if not self._waiting:
            await self._next_layer(news)
        if self._waiting:
            self.agent_selection = self._waiting[0]
        self._refresh_infos(news)
        self._accumulate_rewards()
        if self.render_mode == "human":
            self.render()

    async def _take_turns(self, chosen: list[tuple[str, str]]) -> list[Turn]:
        start = len(self._transcript.turns)
        if self._inspector is None:
            tools = await asyncio.gather(*(self._run_tools(agent, action) for agent, action in chosen))
            facts: Mapping[str, Any] = {}
        else:
            # One after the other: who of a layer wrote which file would be chance otherwise.
            tools = []
            for i, (agent, action) in enumerate(chosen):
                tools.append(await self._run_tools(agent, action))
                await self._toolbox.take_stock(agent, start + i)
            facts = await self._inspector.facts()
        files = self._toolbox.files
        self._transcript = replace(self._transcript, sandbox_level=self._toolbox.level)
        earlier = tuple(t for t in self._transcript.turns if t.layer < self._layer_index)
        seen = [self.messages(agent) for agent, _ in chosen]
        requests = [
            make_request(
                self.topology,
                self.task,
                self.ground_truth,
                agent=agent,
                messages=messages,
                action=action,
                tools=results,
                earlier=earlier,
                files=files,
                facts=facts,
            )
            for (agent, action), messages, results in zip(chosen, seen, tools, strict=True)
        ]
        verdicts = await self._verdicts(requests)
        return [
            Turn(start + i, self._layer_index, r.agent, r.role, r.messages, r.action, r.tools, verdict, files, facts)
            for i, (r, verdict) in enumerate(zip(requests, verdicts, strict=True))
        ]

    async def _run_tools(self, agent: str, action: str) -> tuple[ToolResult, ...]:
        if self.topology.role_of(agent).tool is None:
            return ()
        return (await self._toolbox.run_python(agent, action),)

    async def _verdicts(self, requests: list[JudgeRequest]) -> list[Verdict]:
        if self.judge.scope == "episode":
            return [Verdict.skipped("scored when the episode ends", self.judge.id) for _ in requests]
        return checked(self.judge, await self.judge.score(requests), len(requests))

    async def _next_layer(self, news: dict[str, dict[str, Any]]) -> None:
        self._layer_index += 1
        self._waiting = list(self.topology.next_layer(self._transcript.turns))
        if self._waiting:
            return
        outcome = await self._outcome()
        self._transcript = replace(self._transcript, outcome=outcome)
        self.terminations = dict.fromkeys(self.agents, True)
        self.agent_selection = self.agents[0]
        if self.judge.scope == "episode":
            requests = requests_of(self._transcript, self.topology, self.task, self.ground_truth)
            finals = checked(self.judge, await self.judge.score_episode(self._transcript, requests), len(requests))
            self._transcript = replace(self._transcript, final_verdicts=tuple(finals))
            for turn, verdict in zip(self._transcript.turns, finals, strict=True):
                self.rewards[turn.agent] = verdict.reward
                news.setdefault(turn.agent, {})["verdict"] = verdict.public()
        for agent in self.agents:
            news.setdefault(agent, {})["outcome"] = {
                "success": outcome.success,
                "score": outcome.score,
                "reason": outcome.reason,
            }
        await self._toolbox.close()

    async def _outcome(self) -> Outcome:
        if self._inspector is not None:
            return await self._inspector.outcome()
        assert self._outcome_fn is not None
        return await self._outcome_fn(self.task, self.topology, self._transcript.turns)

    # Checks, infos, rendering ------------------------------------------------------------------------------------

    def _check_step(self, action: object) -> str:
        if self._task is None:
            raise EpisodeError("step() before reset()", fix="call reset() first")
        if not self.agents:
            raise EpisodeError("step() after the end of the episode", expected="a running episode", fix="call reset()")
        agent = self.agent_selection
        if not self.terminations[agent]:
            check_action(agent, action)
        elif action is not None:
            raise EpisodeError(
                f"{agent!r} has terminated",
                expected="step(None), once per agent",
                got=f"an action of type {type(action).__name__}",
                fix="call step(None) for it, or reset()",
            )
        return agent

    def _refresh_infos(self, news: Mapping[str, dict[str, Any]]) -> None:
        self.infos = {
            agent: {
                "messages": [dict(m) for m in self.messages(agent)] if agent in self._waiting else [],
                **news.get(agent, {}),
            }
            for agent in self.agents
        }

    def render(self) -> str | None:
        """Return the transcript as text (`ansi`), or print what is new of it (`human`).

        Raises:
            ConfigError: If the environment was made without a render mode.
        """
        if self.render_mode is None:
            raise ConfigError(
                "render() needs a render mode",
                expected="'ansi' or 'human'",
                got="None",
                fix="make(..., render_mode='ansi')",
            )
        if self.render_mode == "ansi":
            return render_transcript(self.transcript, self.task.prompt)
        text = render_transcript(self.transcript, self.task.prompt, start=self._printed)
        self._printed = len(self.transcript.turns) + (self.transcript.outcome is not None)
        print(text, flush=True)
        return None

    def close(self) -> None:
        """Kill the episode's kernels and delete its workspace; the environment can be reset again."""
        if self._toolbox.in_use:
            background.run(self._toolbox.close())

    def __getstate__(self) -> dict[str, Any]:
        """Copy configuration and episode; refuse while kernels run, whose state cannot be copied."""
        if self._toolbox.in_use:
            raise EpisodeError(
                "this environment cannot be copied while its agents' kernels run",
                fix="copy it before the first code runs, or after the episode's end",
            )
        return dict(self.__dict__)

    def __str__(self) -> str:
        return f"TeamEnv({self.env_id!r}, topology={self.topology.name!r}, judge={self.judge.id!r})"
