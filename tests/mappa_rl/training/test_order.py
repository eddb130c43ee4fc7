from __future__ import annotations

import math

import numpy as np
import pytest

from mappa_rl.config import RolloutConfig, TrainConfig, load_config
from mappa_rl.rollout.collector import derive_seed
from mappa_rl.training.order import learning_rate, shuffled, step_specs


def test_an_endless_source_is_played_in_order_and_each_task_is_a_group() -> None:
    rollout = RolloutConfig(tasks_per_step=2, samples_per_task=3)
    specs = step_specs(rollout, seed=0, step=4, size=None)
    assert [(s.task_index, s.group, s.seed) for s in specs] == [
        (6, 0, 0),
        (6, 0, 1),
        (6, 0, 2),
        (7, 1, 0),
        (7, 1, 1),
        (7, 1, 2),
    ]


def test_a_finite_source_is_shuffled_anew_each_epoch() -> None:
    rollout = RolloutConfig(tasks_per_step=3, samples_per_task=1)
    played = [spec.task_index for step in range(1, 11) for spec in step_specs(rollout, seed=5, step=step, size=10)]
    epochs = [played[i : i + 10] for i in (0, 10, 20)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3


def test_rows_are_shuffled_as_a_permutation_of_the_rows_themselves_would_be() -> None:
    rows = [3, 8, 9, 20, 31]
    of_rows = np.random.default_rng(derive_seed(7, 1, 2, 1)).permutation(rows).tolist()
    assert [rows[i] for i in shuffled(5, seed=7, step=2)] == of_rows
    assert shuffled(0, seed=7, step=2) == []


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (1, 0.25),
        (2, 0.5),
        (4, 1.0),
        # Halfway down the cosine between 1 and 0.1, a third of the way, and the end.
        (22, 0.55),
        (16, 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi / 3))),
        (40, 0.1),
    ],
)
def test_the_learning_rate_rises_and_falls(step: int, expected: float) -> None:
    settings = ["steps=40", "optim.lr=1.0", "optim.warmup_share=0.1", "optim.final_lr_share=0.1"]
    assert learning_rate(load_config(TrainConfig, None, settings), step) == pytest.approx(expected)
