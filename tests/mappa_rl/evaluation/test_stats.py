from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mappa_rl.errors import ConfigError, TrainingError
from mappa_rl.evaluation.stats import (
    holm,
    mean_interval,
    paired_comparison,
    pass_at_k,
    sign_flip_test,
    success_interval,
)

THIRDS = st.integers(-3, 3).map(lambda i: Fraction(i, 3))


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


def test_tasks_that_all_have_one_share_have_wilsons_interval() -> None:
    # Wilson's interval for 5 of 10 by hand: 0.5 +- 1.96 / 1.38415 * sqrt(0.025 + 3.8415 / 400).
    interval = mean_interval([0.5] * 10)
    half = 1.96 / 1.38415 * math.sqrt(0.025 + 3.8415 / 400)
    assert (interval.low, interval.high) == (pytest.approx(0.5 - half, abs=1e-4), pytest.approx(0.5 + half, abs=1e-4))
    assert mean_interval([0.5]).high - mean_interval([0.5]).low > 0.5


def test_nothing_to_evaluate_or_to_compare_is_an_error() -> None:
    with pytest.raises(TrainingError, match="nothing to evaluate"):
        success_interval([])
    with pytest.raises(TrainingError, match="nothing to evaluate"):
        success_interval([[]])
    with pytest.raises(TrainingError, match="nothing to compare"):
        sign_flip_test([])
    with pytest.raises(TrainingError, match="nothing to compare"):
        paired_comparison([])


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_an_interval_holds_its_mean_and_stays_within_the_shares(values: list[float]) -> None:
    interval = mean_interval(values)
    assert -1e-12 <= interval.low <= interval.mean + 1e-9
    assert interval.mean - 1e-9 <= interval.high <= 1 + 1e-12


# pass@k ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("samples", range(1, 8))
def test_pass_at_k_is_the_share_of_all_draws_with_a_success(samples: int) -> None:
    for successes, k in itertools.product(range(samples + 1), range(1, samples + 1)):
        outcomes = [i < successes for i in range(samples)]
        draws = list(itertools.combinations(outcomes, k))
        assert pass_at_k(samples, successes, k) == pytest.approx(sum(map(any, draws)) / len(draws), abs=1e-12)


def test_pass_at_k_by_hand() -> None:
    assert pass_at_k(4, 1, 2) == pytest.approx(1 - 3 / 6)
    assert pass_at_k(10, 3, 1) == pytest.approx(0.3)
    assert pass_at_k(5, 0, 5) == 0.0
    assert pass_at_k(5, 1, 5) == 1.0
    assert pass_at_k(2000, 1, 1000) == pytest.approx(0.5)


@pytest.mark.parametrize("numbers", [(2, 1, 3), (2, 3, 1), (2, 1, 0), (2, -1, 1), (0, 0, 1)])
def test_pass_at_k_refuses_numbers_that_do_not_fit(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(ConfigError, match="pass_at_k"):
        pass_at_k(*numbers)


# The sign-flip test ----------------------------------------------------------------------------------------------


def enumerated(differences: list[Fraction]) -> Fraction:
    observed = abs(sum(differences))
    patterns = list(itertools.product((1, -1), repeat=len(differences)))
    far = sum(abs(sum(s * d for s, d in zip(signs, differences, strict=True))) >= observed for signs in patterns)
    return Fraction(far, len(patterns))


@settings(max_examples=60, deadline=None)
@given(st.lists(THIRDS | st.integers(-4, 4).map(lambda i: Fraction(i, 4)), min_size=1, max_size=9))
def test_the_exact_test_counts_all_sign_patterns(differences: list[Fraction]) -> None:
    result = sign_flip_test(differences)
    assert result.method == "exact"
    assert result.p_value == pytest.approx(float(enumerated(differences)), abs=1e-12)


def test_the_test_by_hand() -> None:
    # 5 tasks, all better by one: 2 of 32 patterns are as far out.
    assert sign_flip_test([Fraction(1)] * 5).p_value == pytest.approx(2 / 32)
    # The sign test for 8 better and 2 worse: 2 * (1 + 10 + 45) / 1024.
    assert sign_flip_test([Fraction(1)] * 8 + [Fraction(-1)] * 2).p_value == pytest.approx(112 / 1024)
    assert sign_flip_test([Fraction(0)] * 7).p_value == 1.0
    assert sign_flip_test([Fraction(1, 2), Fraction(-1, 2)]).p_value == 1.0


def test_hundreds_of_tasks_are_still_exact() -> None:
    # 300 better and 200 worse is a two-sided sign test.
    differences = [Fraction(1)] * 300 + [Fraction(-1)] * 200 + [Fraction(0)] * 100
    tail = 2 * sum(math.comb(500, k) for k in range(201)) / 2**500
    result = sign_flip_test(differences)
    assert result.method == "exact"
    assert result.p_value == pytest.approx(tail, rel=1e-9)


def test_differences_without_a_coarse_common_fraction_are_drawn() -> None:
    primes = [10_007, 10_009, 10_037, 10_039, 10_061, 10_067, 10_069, 10_079]
    differences = [Fraction(p // (2 + i % 3), p) * (1 if i % 4 else -1) for i, p in enumerate(primes)]
    result = sign_flip_test(differences, draws=20_000)
    assert (result.method, result.draws) == ("monte carlo", 20_000)
    assert result.p_value == pytest.approx(float(enumerated(differences)), abs=0.015)
    assert sign_flip_test(differences, draws=20_000) == result


def test_a_drawn_p_value_is_never_zero() -> None:
    differences = [Fraction(10_006, 10_007), *(Fraction(10**4 + i, 10**5 + i) for i in range(60))]
    result = sign_flip_test(differences, draws=999)
    assert result.method == "monte carlo"
    assert result.p_value == pytest.approx(1 / 1000)


@settings(max_examples=40, deadline=None)
@given(st.lists(THIRDS, min_size=1, max_size=12))
def test_the_test_knows_no_direction(differences: list[Fraction]) -> None:
    assert sign_flip_test(differences) == sign_flip_test([-d for d in differences])


# Comparisons -----------------------------------------------------------------------------------------------------


def test_a_comparison_is_paired_by_task() -> None:
    pairs = [(Fraction(3, 4), Fraction(1, 4))] * 6 + [(Fraction(0), Fraction(1, 2))] * 2 + [(Fraction(1), Fraction(1))]
    result = paired_comparison(pairs)
    assert (result.better, result.worse, result.tasks) == (6, 2, 9)
    assert result.mean == pytest.approx((6 * 0.75 + 1) / 9)
    assert result.baseline == pytest.approx((6 * 0.25 + 2 * 0.5 + 1) / 9)
    assert result.difference.mean == pytest.approx(2 / 9)
    assert result.difference.low < 2 / 9 < result.difference.high
    assert result.p_value == pytest.approx(float(enumerated([a - b for a, b in pairs])))


def test_a_comparison_the_other_way_round_has_the_other_sign() -> None:
    pairs = [(Fraction(i % 3, 2), Fraction(i % 2)) for i in range(30)]
    there, back = paired_comparison(pairs), paired_comparison([(b, a) for a, b in pairs])
    assert there.difference.mean == pytest.approx(-back.difference.mean)
    assert there.difference.low == pytest.approx(-back.difference.high)
    assert there.p_value == back.p_value


def test_pairing_takes_out_what_makes_tasks_hard() -> None:
    # Tasks are all or nothing but for a small gain on each: unpaired intervals overlap widely.
    pairs = [(Fraction(1, 10) + hard, Fraction(0) + hard) for hard in (Fraction(0), Fraction(9, 10)) for _ in range(20)]
    pairs[0] = (Fraction(0), Fraction(0))
    result = paired_comparison(pairs)
    assert result.difference.low > 0.08
    assert result.p_value < 1e-6


def test_equal_differences_have_the_score_interval_for_pairs() -> None:
    # Tango 1998 without discordant pairs: +- z^2 / (n + z^2); with n of n: from (n - z^2) / (n + z^2) to 1.
    same = paired_comparison([(Fraction(1), Fraction(1))] * 10)
    assert same.difference.high == pytest.approx(3.8415 / 13.8415, abs=1e-4)
    assert same.difference.low == pytest.approx(-3.8415 / 13.8415, abs=1e-4)
    assert same.p_value == 1.0
    better = paired_comparison([(Fraction(1), Fraction(0))] * 10)
    assert (better.difference.mean, better.difference.high) == (1.0, 1.0)
    assert better.difference.low == pytest.approx((10 - 3.8415) / 13.8415, abs=1e-4)
    assert better.p_value == pytest.approx(2 / 1024)


def test_a_comparison_reads_as_a_sentence() -> None:
    text = str(paired_comparison([(Fraction(1), Fraction(0))] * 8 + [(Fraction(0), Fraction(1))] * 2))
    assert text.startswith("+60.0 points (95 % interval ")
    assert "p = 0.11 (exact sign-flip test over 10 tasks: 8 better, 2 worse, 0 equal)" in text


# Several comparisons ---------------------------------------------------------------------------------------------


def test_holm_by_hand() -> None:
    # Sorted: 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1 = 0.04, but no less than the 0.06 before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([0.2]) == [0.2]
    assert holm([]) == []


@settings(max_examples=200)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_is_closed_testing_with_bonferroni(p_values: list[float]) -> None:
    # Marcus, Peritz and Gabriel 1976: reject one hypothesis if every intersection that it is part of is rejected.
    places = range(len(p_values))
    subsets = [s for size in range(1, len(p_values) + 1) for s in itertools.combinations(places, size)]
    closed = [max(min(1.0, len(s) * min(p_values[i] for i in s)) for s in subsets if at in s) for at in places]
    assert holm(p_values) == pytest.approx(closed)


# Simulations -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("tasks", "samples"), [(30, 1), (60, 4)])
def test_intervals_hold_the_truth_about_as_often_as_they_say(tasks: int, samples: int) -> None:
    rng = np.random.default_rng(5)
    truth = 2 / 3  # mean of Beta(2, 1)
    trials, hits = 600, 0
    for _ in range(trials):
        wins = rng.binomial(samples, rng.beta(2, 1, size=tasks)) / samples
        interval = mean_interval([float(w) for w in wins])
        hits += interval.low <= truth <= interval.high
    # The percentile bootstrap is a little short at these sizes; 600 trials have a standard error of 0.9 points.
    assert 0.91 <= hits / trials <= 0.98


@pytest.mark.slow
def test_paired_intervals_and_p_values_hold_what_they_say() -> None:
    rng = np.random.default_rng(6)
    trials, hits, rejected = 600, 0, 0
    for _ in range(trials):
        skill = rng.beta(1, 1, size=40)
        a, b = rng.binomial(4, skill), rng.binomial(4, skill)
        result = paired_comparison([(Fraction(int(x), 4), Fraction(int(y), 4)) for x, y in zip(a, b, strict=True)])
        hits += result.difference.low <= 0 <= result.difference.high
        rejected += result.p_value <= 0.05
    assert 0.91 <= hits / trials <= 0.98
    assert rejected / trials <= 0.07
