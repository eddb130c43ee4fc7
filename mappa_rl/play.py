"""What `mappa play` does."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mappa_envs.tasks.base import Task
from mappa_envs.team_env import TeamEnv
from mappa_rl.config import TrainConfig
from mappa_rl.errors import ConfigError
from mappa_rl.evaluation.records import EpisodeRecord
from mappa_rl.evaluation.run import load_team, record_text
from mappa_rl.policy.base import Policy, Sampling
from mappa_rl.policy.oracle import scripted_policy
from mappa_rl.rollout.collector import Collector, Episode, EpisodeSpec, derive_seed
from mappa_rl.training.build import make_env

MAX_AT_ONCE = 4 * (os.cpu_count() or 1)
"""Episodes that are played at the same time, at most: each may have several kernels."""


@dataclass(frozen=True, slots=True)
class PlayedTask:
    """One line of the table of all tasks."""

    split: str
    task: str
    kind: str
    success: bool | None
    score: float
    """Of the outcome, 0 to 1."""
    reason: str
    details: dict[str, Any]
    roles: dict[str, float | None]
    """Mean judge score (0-10) by role; None where no turn has one."""


def play_episodes(
    config: TrainConfig, *, policy: str, run: Path | None, episodes: int, first_task: int, seed: int
) -> Iterator[str]:
    """Play held-out tasks one by one and yield each transcript as text.

    Args:
        config: Environment, model and sampling.
        policy: `scripted` (an oracle that knows the answers, or plain code that solves tables) or `model`.
        run: Run folder whose adapters the model gets.
        episodes: How many.
        first_task: Index of the first task.
        seed: Seed of the sampling.

    Raises:
        ConfigError: If the policy is unknown or the scripted one cannot play the tasks.
    """
    env = make_env(config, "eval")
    specs = [EpisodeSpec(task_index=first_task + i, group=i) for i in range(episodes)]
    collector = Collector(lambda: make_env(config, "eval"), _player(policy, config, env, run, specs), concurrency=1)
    for spec in specs:
        (episode,) = collector.collect([spec], _sampling(config), seed=derive_seed(seed, spec.task_index))
        yield record_text(env, EpisodeRecord.of(episode))
    collector.close()


def play_all(config: TrainConfig, *, policy: str, run: Path | None, seed: int) -> Iterator[PlayedTask]:
    """Play every task of both splits once, several at the same time, and yield how each went.

    Args:
        config: Environment, model and sampling.
        policy: As in `play_episodes`.
        run: As in `play_episodes`.
        seed: Seed of the sampling.

    Raises:
        ConfigError: If the tasks are endless, the policy is unknown or the scripted one cannot play the tasks.
    """
    at_once = min(config.rollout.concurrency, MAX_AT_ONCE)
    splits: tuple[Literal["train", "eval"], ...] = ("train", "eval")
    for split in splits:
        env = make_env(config, split)
        if env.tasks.size is None:
            raise ConfigError(
                "there is no end to these tasks",
                expected="a finite source",
                got=env.tasks.name,
                fix="give a number of episodes instead of 'all'",
            )
        specs = [EpisodeSpec(task_index=i, group=i) for i in range(env.tasks.size)]
        player = _player(policy, config, env, run, specs)
        collector = Collector(lambda split=split: make_env(config, split), player, concurrency=at_once)  # type: ignore[misc]
        for start in range(0, len(specs), at_once):
            part = specs[start : start + at_once]
            for episode in collector.collect(part, _sampling(config), seed=derive_seed(seed, start)):
                yield _played(episode, split, env.tasks.task(episode.spec.task_index))
        collector.close()


def _played(episode: Episode, split: str, task: Task) -> PlayedTask:
    transcript = episode.transcript
    if transcript is None or transcript.outcome is None:
        return PlayedTask(split, task.id, task.kind, None, 0.0, episode.failure or "no outcome", {}, {})
    scores: dict[str, list[float]] = {turn.role: [] for turn in transcript.turns}
    for turn in transcript.turns:
        score = transcript.verdict(turn.index).score
        scores[turn.role] += [score] if score is not None else []
    roles = {role: sum(values) / len(values) if values else None for role, values in scores.items()}
    outcome = transcript.outcome
    return PlayedTask(
        split, task.id, task.kind, outcome.success, outcome.score, outcome.reason, dict(outcome.details), roles
    )


def _sampling(config: TrainConfig) -> Sampling:
    return Sampling(temperature=config.eval.temperature, max_new_tokens=config.policy.max_new_tokens)


def _player(policy: str, config: TrainConfig, env: TeamEnv, run: Path | None, specs: Sequence[EpisodeSpec]) -> Policy:
    if policy == "model":
        return load_team(config, env, run)
    if policy != "scripted":
        raise ConfigError("unknown policy", expected="'scripted' or 'model'", got=repr(policy))
    return scripted_policy([env.tasks.task(spec.task_index) for spec in specs], env.topology)
