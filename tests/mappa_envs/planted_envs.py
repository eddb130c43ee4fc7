"""Environments with planted faults, and a sound one, for the checks of `mappa_envs.testing` to tell apart."""

from __future__ import annotations

import random
from typing import Any, ClassVar

import gymnasium
from gymnasium.spaces import Dict as DictSpace
from gymnasium.spaces import Discrete
from pettingzoo import AECEnv, ParallelEnv

from envs_registry import register
from mappa_envs.spaces import AnyText

AGENTS = ["talker_0", "talker_1"]
STEPS = 3


def fault_reward(fault: str, step: int, action: str) -> float:
    if fault == "random_from_second_step" and step >= 1:
        return random.SystemRandom().random()
    if fault == "string_hash":
        return float(hash("fixed text") % 1000)
    return float(len(action))


class Spaces:
    observation_spaces: dict[str, Any]
    action_spaces: dict[str, Any]

    def observation_space(self, agent: str) -> Any:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        return self.action_spaces[agent]


class Talk(Spaces, AECEnv):
    metadata: ClassVar[dict[str, Any]] = {"name": "talk", "render_modes": []}

    def __init__(self, fault: str = "none") -> None:
        self.fault = fault
        self.possible_agents = list(AGENTS)
        self.observation_spaces = {a: DictSpace({"prompt": AnyText(1000)}) for a in AGENTS}
        self.action_spaces = {a: AnyText(1000) for a in AGENTS}
        self.render_mode = None
        self.episodes = 0

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.seed, self.count = seed, 0
        self.episodes += 1
        self.agents = list(AGENTS)
        self.rewards = dict.fromkeys(AGENTS, 0.0)
        self._cumulative_rewards = dict.fromkeys(AGENTS, 0.0)
        self.terminations = dict.fromkeys(AGENTS, False)
        self.truncations = dict.fromkeys(AGENTS, False)
        self.infos = {a: {} for a in AGENTS}
        self.agent_selection = AGENTS[0]

    def observe(self, agent: str) -> dict[str, str]:
        memory = f" episode {self.episodes}" if self.fault == "remembers_episodes" else ""
        return {"prompt": f"seed {self.seed} turn {self.count}{memory}"}

    def step(self, action: Any) -> None:
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        self._clear_rewards()
        self._cumulative_rewards[agent] = 0.0
        self.rewards[agent] = fault_reward(self.fault, self.count, action)
        self.count += 1
        if self.count == STEPS or (self.fault == "random_length" and random.SystemRandom().random() < 0.5):
            self.terminations = dict.fromkeys(AGENTS, True)
        self.agent_selection = AGENTS[1 - AGENTS.index(agent)]
        self._accumulate_rewards()

    def close(self) -> None: ...


class TalkParallel(Spaces, ParallelEnv):
    """Both talk at once."""

    metadata: ClassVar[dict[str, Any]] = {"name": "talk_parallel", "render_modes": []}

    def __init__(self, fault: str = "none") -> None:
        self.fault = fault
        self.possible_agents = list(AGENTS)
        self.observation_spaces = {a: Discrete(100) for a in AGENTS}
        self.action_spaces = {a: AnyText(1000) for a in AGENTS}

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.count, self.agents = 0, list(AGENTS)
        return dict.fromkeys(AGENTS, 0), {a: {} for a in AGENTS}

    def step(self, actions: dict[str, str]) -> Any:
        rewards = {a: fault_reward(self.fault, self.count, actions[a]) for a in AGENTS}
        self.count += 1
        ended = self.count == STEPS
        self.agents = [] if ended else list(AGENTS)
        flags = dict.fromkeys(AGENTS, ended), dict.fromkeys(AGENTS, False)
        return dict.fromkeys(AGENTS, self.count), rewards, *flags, {a: {} for a in AGENTS}


class TalkTurns(Spaces, ParallelEnv):
    """The same as `Talk`, one agent per step."""

    metadata: ClassVar[dict[str, Any]] = {"name": "talk_turns", "render_modes": []}

    def __init__(self, fault: str = "none") -> None:
        self.aec = Talk(fault)
        self.possible_agents = list(AGENTS)
        self.observation_spaces, self.action_spaces = self.aec.observation_spaces, self.aec.action_spaces

    @property
    def layer(self) -> tuple[str, ...]:
        return (self.aec.agent_selection,)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.aec.reset(seed)
        self.agents = list(AGENTS)
        return {a: self.aec.observe(a) for a in AGENTS}, {a: {} for a in AGENTS}

    def step(self, actions: dict[str, str]) -> Any:
        self.aec.step(actions[self.aec.agent_selection])
        ended = all(self.aec.terminations.values())
        self.agents = [] if ended else list(AGENTS)
        flags = dict(self.aec.terminations), dict(self.aec.truncations)
        observations = {a: self.aec.observe(a) for a in AGENTS}
        return observations, dict(self.aec.rewards), *flags, {a: {} for a in AGENTS}


class TalkGym(gymnasium.Env):
    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(self, fault: str = "none") -> None:
        self.fault = fault
        self.aec = Talk(fault)
        self.observation_space = self.aec.observation_spaces[AGENTS[0]]
        self.action_space = AnyText(1000)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.aec.reset(seed)
        return self.aec.observe(AGENTS[0]), {"agent": AGENTS[0]}

    def step(self, action: str) -> Any:
        agent = self.aec.agent_selection
        self.aec.step(action)
        reward = self.aec.rewards[agent] + (1.0 if self.fault == "gym_differs" else 0.0)
        ended = all(self.aec.terminations.values())
        info = {"agent": self.aec.agent_selection, "acted": agent}
        return self.aec.observe(self.aec.agent_selection), reward, ended, False, info


for fault in ("none", "string_hash", "gym_differs", "crash"):
    register(
        f"Planted/{fault}-v0",
        "planted_envs:Talk" if fault != "crash" else "planted_envs:Missing",
        kwargs={"fault": fault},
        parallel_entry_point="planted_envs:TalkTurns",
        gym_entry_point="planted_envs:TalkGym",
    )
