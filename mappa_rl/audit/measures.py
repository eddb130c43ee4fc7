"""Statistics of scores: rank measures with intervals over tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

RESAMPLES = 1000
_Z95 = 1.959964
_BLOCK = 2_000_000
_Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float
    n: int
    """Values behind it."""

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def auc(scores: _Array, positive: _Array, weights: _Array) -> _Array:
    """Return the chance that a positive has a higher score than a negative, ties counting half.

    The Mann-Whitney statistic over the number of pairs (Hanley and McNeil 1982); NaN without both kinds.

    Args:
        scores: [n].
        positive: [n], 1 or 0.
        weights: [r, n], how often each value is there in each of `r` samples; whole numbers.

    Returns:
        [r].
    """
    levels, level = np.unique(scores, return_inverse=True)
    above = _per_level(weights * positive, level, len(levels))
    below = _per_level(weights * (1 - positive), level, len(levels))
    won = (above * (np.cumsum(below, axis=1) - below / 2)).sum(axis=1)
    return _ratio(won, above.sum(axis=1) * below.sum(axis=1))


def spearman(first: _Array, second: _Array, weights: _Array) -> _Array:
    """Return the rank correlation, -1 to 1, ties at their mean rank; NaN where one side does not vary.

    Args:
        first: [n].
        second: [n].
        weights: [r, n], as for `auc`.

    Returns:
        [r].
    """
    total = weights.sum(axis=1, keepdims=True)
    a, b = (ranks - (weights * ranks).sum(axis=1, keepdims=True) / total for ranks in _ranks(first, second, weights))
    together, one, other = ((weights * x).sum(axis=1) for x in (a * b, a * a, b * b))
    return _ratio(together, np.sqrt(one * other))


def mean_difference(after: _Array, before: _Array, weights: _Array) -> _Array:
    """Return the mean of `after - before`; shapes as for `spearman`."""
    return _ratio(weights @ (after - before), weights.sum(axis=1))


def estimate(
    measure: Callable[[_Array, _Array, _Array], _Array],
    first: Sequence[float],
    second: Sequence[float],
    tasks: Sequence[Hashable],
    *,
    seed: int = 0,
) -> Estimate | None:
    """Return a measure of pairs with a percentile bootstrap over tasks: turns on one task are not independent.

    Args:
        measure: One of the above.
        first: [n].
        second: [n].
        tasks: [n], the task that each pair is of.
        seed: Seed of the bootstrap.

    Returns:
        None where the measure is undefined. Resamples in which it is are left out; where the rest have no width, and
        the measure is `auc`, the interval is that of `auc_interval` for as many tasks.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    value = float(measure(a, b, np.ones((1, len(a))))[0]) if len(a) else math.nan
    if math.isnan(value):
        return None
    number = {task: i for i, task in enumerate(dict.fromkeys(tasks))}
    member = np.array([number[task] for task in tasks])
    rng = np.random.default_rng(seed)
    block = max(1, _BLOCK // len(a))
    parts = []
    for start in range(0, RESAMPLES, block):
        rows = min(block, RESAMPLES - start)
        drawn = rng.multinomial(len(number), np.full(len(number), 1 / len(number)), size=rows)
        parts.append(measure(a, b, drawn[:, member].astype(np.float64)))
    found = np.concatenate(parts)
    found = found[~np.isnan(found)]
    low, high = np.quantile(found, [0.025, 0.975]) if len(found) else (value, value)
    if low == high and measure is auc:
        won = len({task for task, positive in zip(tasks, second, strict=True) if positive})
        lost = len({task for task, positive in zip(tasks, second, strict=True) if not positive})
        low, high = auc_interval(value, won, lost)
    return Estimate(value, float(low), float(high), len(a))


def auc_interval(value: float, positives: int, negatives: int) -> tuple[float, float]:
    """Return a 95 % interval of an AUC that has width at 0 and 1 too.

    The limits are where `|value - t| = z sqrt(V(t))` with Newcombe's variance (Newcombe 2006, Statistics in Medicine
    25:559, method 5): `V(t) = t (1 - t) / (m n) * (2 N - 1 - (3 N - 3) / ((2 - t) (1 + t)))`, `N = (m + n) / 2`.

    Args:
        value: The AUC, 0 to 1.
        positives: How many there are, `m`; at least 1.
        negatives: How many there are, `n`; at least 1.
    """
    half = (positives + negatives) / 2

    def excess(t: float) -> float:
        spread = 2 * half - 1 - (3 * half - 3) / ((2 - t) * (1 + t))
        return abs(value - t) - _Z95 * math.sqrt(max(0.0, t * (1 - t) * spread / (positives * negatives)))

    low = brentq(excess, 1e-12, value - 1e-12) if value > 1e-9 else 0.0
    high = brentq(excess, value + 1e-12, 1 - 1e-12) if value < 1 - 1e-9 else 1.0
    return float(low), float(high)


def _per_level(weights: _Array, level: NDArray[np.intp], levels: int) -> _Array:
    """Sum the weights [r, n] of each level: [r, levels]."""
    order = np.argsort(level, kind="stable")
    starts = np.searchsorted(level[order], np.arange(levels))
    return np.add.reduceat(weights[:, order], starts, axis=1)


def _ranks(first: _Array, second: _Array, weights: _Array) -> tuple[_Array, _Array]:
    """Return the ranks [r, n] of both sides in each sample."""
    made = []
    for values in (first, second):
        levels, level = np.unique(values, return_inverse=True)
        count = _per_level(weights, level, len(levels))
        made.append((np.cumsum(count, axis=1) - (count - 1) / 2)[:, level])
    return made[0], made[1]


def _ratio(above: _Array, below: _Array) -> _Array:
    return np.divide(above, below, out=np.full_like(above, np.nan), where=below > 1e-12)
