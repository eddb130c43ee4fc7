"""What a step plays and how fast it learns: pure functions of the settings and the step."""

from __future__ import annotations

import math

import numpy as np

from mappa_rl.config import RolloutConfig, TrainConfig
from mappa_rl.rollout.collector import EpisodeSpec, derive_seed

TRAIN = 1
"""Marks training among the seeds derived from a run's seed."""
_SHUFFLE_ROWS, _SHUFFLE_TASKS = 1, 2


def rollout_seed(seed: int, step: int) -> int:
    """Return the seed of a step's sampling."""
    return derive_seed(seed, TRAIN, step)


def step_specs(rollout: RolloutConfig, *, seed: int, step: int, size: int | None) -> list[EpisodeSpec]:
    """Return the episodes of a step.

    Args:
        rollout: Tasks per step and samples per task.
        seed: The run's.
        step: From 1.
        size: Tasks of the source; None is endless. Finite sources are shuffled anew each epoch.
    """
    first = (step - 1) * rollout.tasks_per_step
    indexes = [_task_index(first + i, seed, size) for i in range(rollout.tasks_per_step)]
    return [
        EpisodeSpec(task_index=index, group=group, seed=sample)
        for group, index in enumerate(indexes)
        for sample in range(rollout.samples_per_task)
    ]


def shuffled(count: int, *, seed: int, step: int) -> list[int]:
    """Return 0 to `count - 1` in the order in which a learner's rows are cut into optimiser steps."""
    return [int(i) for i in np.random.default_rng(derive_seed(seed, TRAIN, step, _SHUFFLE_ROWS)).permutation(count)]


def learning_rate(config: TrainConfig, step: int) -> float:
    """Return the learning rate of a step: a linear rise, then a cosine down to `optim.final_lr_share` of the peak."""
    optim, total = config.optim, config.steps
    warmup = max(1, round(optim.warmup_share * total))
    if step < warmup:
        return config.learning_rate * step / warmup
    progress = min(1.0, (step - warmup) / max(1, total - warmup))
    cosine = optim.final_lr_share + (1 - optim.final_lr_share) * 0.5 * (1 + math.cos(math.pi * progress))
    return config.learning_rate * cosine


def _task_index(position: int, seed: int, size: int | None) -> int:
    if size is None:
        return position
    epoch, at = divmod(position, size)
    return int(np.random.default_rng(derive_seed(seed, TRAIN, _SHUFFLE_TASKS, epoch)).permutation(size)[at])
