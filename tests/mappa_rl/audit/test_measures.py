from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from mappa_rl.audit.measures import auc, auc_interval, estimate, mean_difference, spearman


def once(measure: Callable[..., np.ndarray], first: np.ndarray, second: np.ndarray) -> float:
    """Return the measure of one sample in which each value is there once."""
    (value,) = measure(first, second, np.ones((1, len(first))))
    return float(value)


def vector(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def test_auc_counts_the_pairs() -> None:
    # Won: 5 and 3; lost: 3 and 1. Of four pairs three are right and one is a tie.
    assert once(auc, vector(5, 3, 3, 1), vector(1, 1, 0, 0)) == 3.5 / 4
    assert once(auc, vector(1, 2), vector(1, 0)) == 0.0
    assert np.isnan(once(auc, vector(1, 2), vector(1, 1)))


def test_measures_agree_with_other_libraries() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores = rng.integers(0, 6, 40).astype(np.float64)
        wins = rng.integers(0, 2, 40).astype(np.float64)
        assert once(auc, scores, wins) == pytest.approx(roc_auc_score(wins, scores))
        assert once(spearman, scores, wins) == pytest.approx(spearmanr(scores, wins).statistic)


def test_a_weighted_sample_is_the_same_as_one_with_copies() -> None:
    rng = np.random.default_rng(2)
    scores, wins = rng.integers(0, 4, 12).astype(np.float64), rng.integers(0, 2, 12).astype(np.float64)
    weights = rng.integers(0, 4, (30, 12))
    for measure in (auc, spearman, mean_difference):
        copied = [once(measure, np.repeat(scores, row), np.repeat(wins, row)) for row in weights]
        np.testing.assert_allclose(measure(scores, wins, weights.astype(np.float64)), copied)


def test_a_rank_correlation_needs_variation() -> None:
    assert once(spearman, vector(1, 2, 3), vector(10, 200, 3000)) == pytest.approx(1.0)
    assert np.isnan(once(spearman, vector(1, 2, 3), vector(5, 5, 5)))


def test_the_interval_of_an_auc_solves_newcombes_equation_and_has_width_at_the_ends() -> None:
    low, high = auc_interval(0.8, 20, 30)
    for limit in (low, high):
        spread = 2 * 25 - 1 - (3 * 25 - 3) / ((2 - limit) * (1 + limit))
        assert abs(0.8 - limit) == pytest.approx(1.959964 * (limit * (1 - limit) * spread / 600) ** 0.5, abs=1e-6)
    assert 0.64 < low < 0.68 and 0.88 < high < 0.92
    assert auc_interval(1.0, 4, 4)[1] == 1.0
    assert 0.3 < auc_interval(1.0, 4, 4)[0] < 0.75
    assert auc_interval(0.0, 4, 4)[0] == 0.0


def test_samples_of_one_task_do_not_narrow_an_interval() -> None:
    rng = np.random.default_rng(1)
    wins = np.tile([1.0, 0.0], 15)
    scores = wins + rng.normal(0, 1, 30)
    tasks = list(range(30))
    alone = estimate(auc, scores, wins, tasks)
    copied = estimate(auc, np.repeat(scores, 5), np.repeat(wins, 5), np.repeat(tasks, 5))
    assert alone is not None and copied is not None
    assert (copied.low, copied.high) == (alone.low, alone.high)
    assert copied.n == 150
    apart = estimate(auc, np.repeat(scores, 5), np.repeat(wins, 5), range(150))
    assert apart is not None and apart.high - apart.low < 0.7 * (alone.high - alone.low)


def test_an_estimate_of_nothing_is_none_and_a_perfect_auc_is_not_certain() -> None:
    assert estimate(auc, [], [], []) is None
    assert estimate(auc, [1, 2], [1, 1], [0, 1]) is None
    perfect = estimate(auc, [9, 8, 2, 1], [1, 1, 0, 0], range(4))
    assert perfect is not None and perfect.value == 1.0
    assert (perfect.low, perfect.high) == pytest.approx(auc_interval(1.0, 2, 2))
    shift = estimate(mean_difference, [5, 7], [4, 4], range(2))
    assert shift is not None and (shift.value, shift.low, shift.high) == (2.0, 1.0, 3.0)
