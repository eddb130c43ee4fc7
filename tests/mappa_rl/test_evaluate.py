from __future__ import annotations

import numpy as np
import pytest

from mappa_rl.errors import TrainingError
from mappa_rl.evaluate import eval_specs, success_interval, summarise


def test_the_interval_of_single_samples_is_near_the_binomial_one() -> None:
    outcomes = [[i < 40] for i in range(100)]
    interval = success_interval(outcomes)
    assert interval.mean == pytest.approx(0.4)
    assert interval.low == pytest.approx(0.4 - 1.96 * np.sqrt(0.24 / 100), abs=0.02)
    assert interval.high == pytest.approx(0.4 + 1.96 * np.sqrt(0.24 / 100), abs=0.02)


def test_samples_of_one_task_do_not_count_as_independent() -> None:
    clustered = success_interval([[i < 40] * 4 for i in range(100)])
    single = success_interval([[i < 40] for i in range(100)])
    assert clustered.high - clustered.low == pytest.approx(single.high - single.low)


def test_unanimous_outcomes_have_an_interval_too() -> None:
    # Wilson's interval for 0 of 10 is (0, z^2 / (10 + z^2)).
    nothing = success_interval([[False]] * 10)
    assert (nothing.mean, nothing.low) == (0.0, 0.0)
    assert nothing.high == pytest.approx(3.8415 / 13.8415, abs=1e-4)
    everything = success_interval([[True, True]] * 10)
    assert everything.low == pytest.approx(10 / 13.8415, abs=1e-4)


def test_nothing_to_evaluate_is_an_error() -> None:
    with pytest.raises(TrainingError, match="nothing to evaluate"):
        success_interval([])
    with pytest.raises(TrainingError, match="nothing to evaluate"):
        summarise([])


def test_an_evaluation_plays_each_task_equally_often() -> None:
    specs = eval_specs(5, 2, size=3)
    assert [(s.task_index, s.seed) for s in specs] == [(i, s) for i in range(3) for s in range(2)]
    assert len(eval_specs(5, 1, size=None)) == 5
