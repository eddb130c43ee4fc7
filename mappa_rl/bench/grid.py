"""The cells of a benchmark: which combinations of the axes there are, and the settings of each."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from envs_registry.errors import ConfigError
from mappa_envs.team_env import TeamEnv
from mappa_rl.algorithms import make_algorithm
from mappa_rl.bench.budget import tokens_per_turn
from mappa_rl.bench.config import BenchConfig, PlayerConfig
from mappa_rl.config import AlgorithmConfig, EnvConfig, TrainConfig, validate
from mappa_rl.evaluation.evaluate import eval_specs
from mappa_rl.evaluation.result import task_digest
from mappa_rl.training.build import make_env

_OF_THE_AXES = ("env", "algorithm", "seed", "run_dir")


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of the axes, by its labels."""

    environment: str
    topology: str
    policy: str
    algorithm: str | None
    """None for policies that are not trained."""

    def __str__(self) -> str:
        return " / ".join(part for part in (self.environment, self.topology, self.policy, self.algorithm) if part)


@dataclass(frozen=True, slots=True)
class BenchRun:
    """A cell with one seed: the unit of work."""

    cell: Cell
    config: TrainConfig
    play: Literal["model", "scripted"]
    train: bool
    tasks_sha256: str
    """The held-out tasks; see `task_digest`."""
    topology_repr: str
    """The topology itself: an edited one is another one."""

    @property
    def name(self) -> str:
        """A folder's name: labels for people, and a digest of all that the result depends on."""
        settings = [self.config.model_dump(mode="json"), self.play, self.train, self.tasks_sha256, self.topology_repr]
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
        labels = re.sub(r"[^A-Za-z0-9.]+", "-", str(self.cell)).strip("-")[:80]
        return f"{labels}-seed{self.config.seed}-{digest}"


def runs_of(bench: BenchConfig) -> list[BenchRun]:
    """Return all runs of a benchmark, checked: every environment, topology, algorithm and setting exists.

    Raises:
        MappaError: If one of them is wrong; the error names it.
    """
    for axis in ("environments", "topologies", "algorithms"):
        if not getattr(bench, axis):
            raise ConfigError(f"{axis} is empty", expected="at least one entry", fix="leave it out for its default")
    if len(set(bench.seeds)) < len(bench.seeds):
        raise ConfigError("a seed occurs twice", expected="different seeds", got=repr(list(bench.seeds)))
    _check_settings(bench.settings.model_fields_set, "settings")
    algorithms = {label: _algorithm(entry) for label, entry in _axis(bench.algorithms).items()}
    for algorithm in algorithms.values():
        make_algorithm(algorithm.name, **algorithm.kwargs)
    environments = {label: _environment(entry) for label, entry in _axis(bench.environments).items()}
    topologies = _axis(bench.topologies)
    runs: list[BenchRun] = []
    for (e, environment), (t, topology), (p, player) in product(
        environments.items(), topologies.items(), bench.policies.items()
    ):
        base = _player_settings(bench.settings, p, player)
        chosen = {} if topology is None else {"topology": topology}
        env_config = EnvConfig(id=environment.id, kwargs={**environment.kwargs, **chosen})
        config = base.model_copy(update={"env": env_config})
        env = make_env(config, "eval")
        if bench.max_tokens_per_episode is not None:
            config = _with_budget(config, env, bench.max_tokens_per_episode)
        digest = _tasks(config, env)
        for a, algorithm in algorithms.items() if player.train else [(None, config.algorithm)]:
            for seed in bench.seeds:
                seeded = config.model_copy(update={"algorithm": algorithm, "seed": seed})
                cell = Cell(e, t, p, a)
                runs.append(BenchRun(cell, seeded, player.play, player.train, digest, repr(env.topology)))
    _check_tasks(runs)
    return runs


def _axis(entries: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    return dict(entries) if isinstance(entries, Mapping) else {entry: entry for entry in entries}


def _environment(entry: str | EnvConfig) -> EnvConfig:
    if isinstance(entry, str):
        return EnvConfig(id=entry)
    if "topology" in entry.kwargs:
        raise ConfigError(
            "an entry of environments sets a topology", got=repr(entry.kwargs["topology"]), fix="use topologies"
        )
    return entry


def _algorithm(entry: str | AlgorithmConfig) -> AlgorithmConfig:
    return AlgorithmConfig(name=entry) if isinstance(entry, str) else entry


def _check_settings(keys: Any, where: str) -> None:
    if wrong := sorted(set(keys) & set(_OF_THE_AXES)):
        axes = {"env": "environments and topologies", "algorithm": "algorithms", "seed": "seeds", "run_dir": "out"}
        raise ConfigError(
            f"{where} sets {', '.join(wrong)}",
            expected="settings that no axis of the benchmark sets",
            fix=f"use {' and '.join(axes[key] for key in wrong)}",
        )


def _player_settings(shared: TrainConfig, label: str, player: PlayerConfig) -> TrainConfig:
    where = f"policies.{label}.settings"
    _check_settings(player.settings, where)
    if player.train and player.play == "scripted":
        raise ConfigError(
            f"policies.{label} is scripted and trained",
            expected="one of the two",
            fix=f"leave policies.{label}.train out",
        )
    return validate(TrainConfig, _merged(shared.model_dump(mode="json"), player.settings), what=where)


def _merged(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(below)
    for key, value in above.items():
        deeper = isinstance(value, Mapping) and isinstance(result.get(key), dict)
        result[key] = _merged(result[key], value) if deeper else value
    return result


def _with_budget(config: TrainConfig, env: TeamEnv, budget: int) -> TrainConfig:
    allowed = min(config.policy.max_new_tokens, tokens_per_turn(budget, env.topology.flow))
    return config.model_copy(update={"policy": config.policy.model_copy(update={"max_new_tokens": allowed})})


def _tasks(config: TrainConfig, env: TeamEnv) -> str:
    if not config.eval.tasks:
        raise ConfigError("a benchmark needs held-out tasks", expected="settings.eval.tasks of at least 1", got="0")
    return task_digest(env.tasks, eval_specs(config.eval.tasks, config.eval.samples, env.tasks.size))


def _check_tasks(runs: Sequence[BenchRun]) -> None:
    """Refuse cells of one environment that are not played on the same tasks equally often."""
    seen: dict[str, BenchRun] = {}
    for run in runs:
        first = seen.setdefault(run.cell.environment, run)
        mine, theirs = ((r.tasks_sha256, r.config.eval.samples) for r in (run, first))
        if mine != theirs:
            raise ConfigError(
                f"{run.cell} and {first.cell} are not played on the same tasks",
                expected="the same eval.tasks and eval.samples in all cells of an environment",
                fix="set them in settings, for all policies",
            )
