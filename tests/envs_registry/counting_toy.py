"""A small real environment with all three faces: two agents add numbers to a total, in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from pettingzoo import AECEnv, ParallelEnv
from pydantic import BaseModel, ConfigDict

AGENTS = ["adder_0", "adder_1"]


class CountingConfig(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    target: int = 10
    weights: tuple[float, ...] = (1.0,)


class SubConfig(CountingConfig):
    bonus: int = 0


class Holder(BaseModel):
    config: CountingConfig


@dataclass
class Plain:
    value: int = 0


def observation_space() -> Box:
    return Box(-1000, 1000, (2,), dtype=np.int64)


class CountingEnv(AECEnv):
    metadata: ClassVar[dict[str, Any]] = {
        "name": "counting",
        "render_modes": ["ansi"],
        "is_parallelizable": True,
    }

    def __init__(self, *, rounds: int = 2, config: CountingConfig | None = None, log: list[str] | None = None) -> None:
        self.rounds, self.config, self.log = rounds, config or CountingConfig(), log
        self.possible_agents = list(AGENTS)
        self.observation_spaces = {a: observation_space() for a in AGENTS}
        self.action_spaces = {a: Discrete(3) for a in AGENTS}
        self.render_mode = "ansi"

    def observation_space(self, agent: str) -> Any:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.total = int(np.random.default_rng(seed).integers(10))
        self.left = self.rounds * len(AGENTS)
        self.agents = list(AGENTS)
        self.rewards = dict.fromkeys(AGENTS, 0.0)
        self._cumulative_rewards = dict.fromkeys(AGENTS, 0.0)
        self.terminations = dict.fromkeys(AGENTS, False)
        self.truncations = dict.fromkeys(AGENTS, False)
        self.infos = {a: {} for a in AGENTS}
        self.agent_selection = AGENTS[0]

    def observe(self, agent: str) -> Any:
        return np.array([self.total, self.left], dtype=np.int64)

    def step(self, action: Any) -> None:
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        self._clear_rewards()
        self._cumulative_rewards[agent] = 0.0
        self.total += int(action)
        self.left -= 1
        self.rewards[agent] = float(action)
        if self.left == 0:
            self.terminations = dict.fromkeys(AGENTS, True)
        self.agent_selection = AGENTS[1 - AGENTS.index(agent)]
        self._accumulate_rewards()

    def render(self) -> str:
        return f"total {self.total}, {self.left} turns left"

    def close(self) -> None:
        self.left = 0


class CountingParallel(ParallelEnv):
    metadata: ClassVar[dict[str, Any]] = {"name": "counting_parallel", "render_modes": []}

    def __init__(self, *, rounds: int = 2, config: CountingConfig | None = None) -> None:
        self.rounds, self.config = rounds, config or CountingConfig()
        self.possible_agents = list(AGENTS)


class CountingGym(gymnasium.Env):
    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(self, *, rounds: int = 2, config: CountingConfig | None = None) -> None:
        self.rounds, self.config = rounds, config or CountingConfig()
        self.observation_space = observation_space()
        self.action_space = Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.total, self.left = int(self.np_random.integers(10)), self.rounds
        return np.array([self.total, self.left], dtype=np.int64), {}

    def step(self, action: Any) -> Any:
        self.total, self.left = self.total + int(action), self.left - 1
        return np.array([self.total, self.left], dtype=np.int64), float(action), self.left == 0, False, {}


def make_counting(rounds: int, **rest: Any) -> CountingEnv:
    return CountingEnv(rounds=rounds, **rest)


def make_nothing() -> None:
    return None


def make_type_error() -> CountingEnv:
    raise TypeError("from inside the factory")


NOT_CALLABLE = 3
