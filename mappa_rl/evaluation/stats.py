"""Statistics of evaluations: intervals over tasks, pass@k, and paired comparisons.

Tasks, not episodes, are the unit of all of them: samples of one task are not independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mappa_rl.errors import ConfigError, TrainingError

RESAMPLES = 4000
"""Resamples of each bootstrap."""
DRAWS = 100_000
"""Sign flips drawn where the test cannot be exact."""
_Z95 = 1.959964
_MAX_CELLS = 1_000_000
_MAX_EXACT_WORK = 500_000_000
_BLOCK = 2_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A share with its 95 % interval, all from 0 to 1; for a difference of shares from -1 to 1."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f} % (95 % interval {100 * self.low:.1f} to {100 * self.high:.1f})"


def mean_interval(values: Sequence[float], *, seed: int = 0) -> Interval:
    """Return the mean of one share per task with a 95 % interval.

    Percentile bootstrap over tasks (Efron and Tibshirani 1993, chapter 13). Where all tasks have the same share a
    bootstrap has no width; Wilson's score interval for that share of as many tasks is given instead (Wilson 1927),
    which is wide rather than narrow.

    Args:
        values: One share per task, 0 to 1; at least one.
        seed: Seed of the bootstrap.

    Raises:
        TrainingError: If there is no value.
    """
    shares = np.asarray(values, dtype=np.float64)
    if not len(shares):
        raise TrainingError("nothing to evaluate", expected="at least one finished episode", got="none")
    mean = float(shares.mean())
    if np.ptp(shares) == 0:
        return _wilson(float(shares[0]), len(shares))
    low, high = _bootstrap(shares, seed)
    return Interval(mean, low, high)


def success_interval(successes: Sequence[Sequence[bool]], *, seed: int = 0) -> Interval:
    """Return mean success with a 95 % interval over tasks; see `mean_interval`.

    Args:
        successes: Per task, the outcome of each of its samples; tasks without samples are left out.
        seed: Seed of the bootstrap.

    Raises:
        TrainingError: If there is nothing to evaluate.
    """
    return mean_interval([float(np.mean(task)) for task in successes if len(task)], seed=seed)


def pass_at_k(samples: int, successes: int, k: int) -> float:
    """Return the chance that at least one of `k` samples drawn without replacement is a success.

    `1 - C(n - c, k) / C(n, k)`, the unbiased estimator of pass@k (Chen et al. 2021, arXiv 2107.03374, equation 1),
    computed in whole numbers.

    Args:
        samples: Samples of the task, `n`; at least `k`.
        successes: How many of them succeeded, `c`.
        k: Size of the draw, at least 1.

    Raises:
        ConfigError: If the numbers do not fit together.
    """
    if not (0 <= successes <= samples and 1 <= k <= samples):
        raise ConfigError(
            "pass_at_k: the numbers do not fit together",
            expected="0 <= successes <= samples and 1 <= k <= samples",
            got=f"samples={samples}, successes={successes}, k={k}",
            fix="draw at least k samples of each task",
        )
    return 1 - math.comb(samples - successes, k) / math.comb(samples, k)


@dataclass(frozen=True, slots=True)
class SignFlipTest:
    """A two-sided p-value, and how it was computed."""

    p_value: float
    """0 (excluded) to 1."""
    method: Literal["exact", "monte carlo"]
    draws: int | None = None
    """Sign flips drawn; None where all were counted."""


def sign_flip_test(differences: Sequence[Fraction], *, draws: int = DRAWS, seed: int = 0) -> SignFlipTest:
    """Test whether paired differences are centred on zero.

    Fisher's randomisation test (Fisher 1935, section 21): if the two policies are alike, each task's difference might
    as well have had the other sign. The p-value is the share of the `2^n` sign patterns whose sum is at least as far
    from zero as the observed one. Shares of few samples are multiples of a common fraction, so the patterns are
    counted exactly by convolution (Pagano and Tritchler 1983), also for hundreds of tasks. Where the common fraction
    is too fine for that, patterns are drawn, and the p-value is `(b + 1) / (m + 1)` for `b` of `m` draws as far out
    (Phipson and Smyth 2010), which is never 0.

    Args:
        differences: One per task.
        draws: Sign patterns drawn where counting is too much work; 0 < draws.
        seed: Seed of the draws.

    Raises:
        TrainingError: If there is no difference to test.
    """
    if not differences:
        raise TrainingError("nothing to compare", expected="at least one task in both evaluations", got="none")
    nonzero = [abs(d) for d in differences if d]
    observed = abs(sum(differences, Fraction(0)))
    if not nonzero:
        return SignFlipTest(1.0, "exact")
    scale = math.lcm(*(d.denominator for d in nonzero))
    steps = [int(d * scale) for d in nonzero]
    common = math.gcd(*steps)
    steps = [step // common for step in steps]
    if sum(steps) <= _MAX_CELLS and sum(steps) * len(steps) <= _MAX_EXACT_WORK:
        return SignFlipTest(_exact_tail(steps, int(observed * scale) // common), "exact")
    return SignFlipTest(_drawn_tail([float(d) for d in nonzero], float(observed), draws, seed), "monte carlo", draws)


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """A policy against a baseline on the same tasks."""

    mean: float
    """Success of the policy, 0 to 1."""
    baseline: float
    """Success of the baseline."""
    difference: Interval
    """Policy minus baseline, -1 to 1."""
    p_value: float
    """Two-sided, of `sign_flip_test`."""
    method: Literal["exact", "monte carlo"]
    draws: int | None
    tasks: int
    better: int
    """Tasks that the policy solves more often than the baseline."""
    worse: int

    def __str__(self) -> str:
        d = self.difference
        how = "exact sign-flip test" if self.method == "exact" else f"sign-flip test, {self.draws} draws"
        return (
            f"{100 * d.mean:+.1f} points (95 % interval {100 * d.low:+.1f} to {100 * d.high:+.1f}), "
            f"p = {self.p_value:.2g} ({how} over {self.tasks} tasks: {self.better} better, {self.worse} worse, "
            f"{self.tasks - self.better - self.worse} equal)"
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)


def paired_comparison(pairs: Sequence[tuple[Fraction, Fraction]], *, seed: int = 0) -> PairedComparison:
    """Compare a policy with a baseline, task by task.

    The interval is a percentile bootstrap over tasks of the mean difference. Where all `n` differences equal `d` it
    would have no width. Then, by Wilson's upper limit for 0 of `n`, up to `w = z^2 / (n + z^2)` of all tasks may
    differ from the rest, by as much as a difference can: the interval is `d - w (1 + d)` to `d + w (1 - d)`, which is
    the score interval for paired proportions (Tango 1998) at `d` of -1, 0 and 1.

    Args:
        pairs: Per task, the success of the policy and of the baseline, 0 to 1.
        seed: Seed of the bootstrap, and of the test where it draws.

    Raises:
        TrainingError: If there is no pair.
    """
    differences = [policy - baseline for policy, baseline in pairs]
    test = sign_flip_test(differences, seed=seed)
    mean, baseline = (float(sum(side, Fraction(0)) / len(pairs)) for side in zip(*pairs, strict=True))
    if len(set(differences)) > 1:
        low, high = _bootstrap(np.array([float(d) for d in differences]), seed)
    else:
        constant, share = float(differences[0]), _Z95**2 / (len(pairs) + _Z95**2)
        low, high = constant - share * (1 + constant), constant + share * (1 - constant)
    return PairedComparison(
        mean=mean,
        baseline=baseline,
        difference=Interval(float(sum(differences, Fraction(0)) / len(pairs)), low, high),
        p_value=test.p_value,
        method=test.method,
        draws=test.draws,
        tasks=len(pairs),
        better=sum(d > 0 for d in differences),
        worse=sum(d < 0 for d in differences),
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number, in the order given.

    Holm's step-down procedure (Holm 1979): of `m` p-values sorted upwards, the i-th (from 0) is multiplied by
    `m - i`, made no smaller than those before it, and cut at 1. Rejecting what is at most 0.05 keeps the chance of
    any false rejection at 0.05, however the tests depend on each other.
    """
    adjusted = [0.0] * len(p_values)
    reached = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        reached = max(reached, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = reached
    return adjusted


def _wilson(mean: float, n: int) -> Interval:
    centre = (mean + _Z95**2 / (2 * n)) / (1 + _Z95**2 / n)
    half = _Z95 / (1 + _Z95**2 / n) * math.sqrt(mean * (1 - mean) / n + _Z95**2 / (4 * n**2))
    # Rounding must not push an end past the mean.
    return Interval(mean, min(mean, max(0.0, centre - half)), max(mean, min(1.0, centre + half)))


def _bootstrap(values: NDArray[np.float64], seed: int) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    means = [
        values[rng.integers(0, len(values), size=(rows, len(values)))].mean(axis=1)
        for rows in _blocks(RESAMPLES, len(values))
    ]
    low, high = np.quantile(np.concatenate(means), [0.025, 0.975])
    return float(low), float(high)


def _exact_tail(steps: Sequence[int], observed: int) -> float:
    """Return the chance that the sum of `steps` with random signs is at least `observed` away from zero."""
    total = sum(steps)
    # chance[t]: the steps with a minus sign add up to t; the signed sum is then total - 2 t.
    chance = np.zeros(total + 1)
    chance[0] = 1.0
    reached = 0
    for step in steps:
        reached += step
        flipped = np.zeros(reached + 1)
        flipped[step:] = chance[: reached + 1 - step]
        chance[: reached + 1] = 0.5 * (chance[: reached + 1] + flipped)
    far = np.abs(total - 2 * np.arange(total + 1)) >= observed
    return min(1.0, float(chance[far].sum()))


def _drawn_tail(steps: Sequence[float], observed: float, draws: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    sizes = np.array(steps)
    # Patterns that tie with the observed one must count, whatever the rounding of their sums.
    limit = observed - 1e-12 * float(sizes.sum())
    far = 0
    for rows in _blocks(draws, len(steps)):
        signs = 2.0 * rng.integers(0, 2, size=(rows, len(steps))) - 1.0
        far += int((np.abs(signs @ sizes) >= limit).sum())
    return (far + 1) / (draws + 1)


def _blocks(rows: int, width: int) -> Iterator[int]:
    """Split rows into blocks that fit into memory."""
    block = max(1, _BLOCK // width)
    for start in range(0, rows, block):
        yield min(block, rows - start)
