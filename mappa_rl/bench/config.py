"""Settings of a benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from mappa_rl.config import AlgorithmConfig, Config, EnvConfig, TrainConfig


class PlayerConfig(Config):
    """One entry of the policy axis: who plays."""

    play: Literal["model", "scripted"] = "model"
    """`model`: the team of `settings.policy`; `scripted`: an oracle that knows the answers, an upper bound."""
    train: bool = False
    """Train the model first, by every entry of `algorithms`; an untrained team plays as its base model."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Settings of this policy alone, e.g. `{policy: {model: ...}}`; they win over the benchmark's `settings`."""


class BenchConfig(Config):
    """A benchmark: all combinations of its axes, each played on the same held-out tasks with the same seeds.

    The entries of an axis are a mapping from a label to what it stands for, or a list of names that are their own
    labels.
    """

    environments: dict[str, str | EnvConfig] | tuple[str, ...] = ("Mappa/MathChat-v0",)
    """Registered ids, or id and keyword arguments."""
    topologies: dict[str, str | dict[str, Any] | None] | tuple[str, ...] = Field(
        default_factory=lambda: dict[str, str | dict[str, Any] | None](own=None)
    )
    """What the environment takes as `topology`: names, names with parameters, or `module:NAME`; null: its default."""
    policies: dict[str, PlayerConfig] = Field(default={"model": PlayerConfig()}, min_length=1)
    """Who plays."""
    algorithms: dict[str, str | AlgorithmConfig] | tuple[str, ...] = ("reinforce_pp",)
    """Names, `module:Class`, or name and settings; only policies that are trained have one."""
    seeds: tuple[int, ...] = Field(default=(0,), min_length=1)
    """Each combination is run once per seed, of training and sampling; the held-out tasks are the same."""
    settings: TrainConfig = TrainConfig()
    """Settings that all share, as for `mappa train` and `mappa eval`; the axes set env, algorithm, seed and run_dir."""
    max_tokens_per_episode: int | None = Field(default=None, ge=1)
    """Most tokens that a team may write in an episode: each turn gets an equal part of it, for the most turns that
    the topology allows. null: only reported."""
    jobs: int = Field(default=1, ge=1)
    """Processes that work side by side."""
    threads: int | None = Field(default=None, ge=1)
    """Threads of each; null: the cores divided by the jobs."""
    out: Path | None = None
    """Folder of the results; null: `runs/bench-` and the name of the file."""
