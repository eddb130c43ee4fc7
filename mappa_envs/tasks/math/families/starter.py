"""The ten starter families: short, fixed wordings at levels 1 and 2, so that a tiny model can learn them."""

from __future__ import annotations

import numpy as np
import sympy
from sympy import Matrix

from mappa_envs.tasks.math.families.base import Problem
from mappa_envs.tasks.math.families.build import family, level_limit, pick, problem
from mappa_envs.tasks.math.families.starter_counting import (
    draft_committee,
    draft_lattice_paths,
    draft_stars_bars,
)
from mappa_envs.tasks.math.families.starter_numbers import (
    draft_digit_sum,
    draft_divisors,
    draft_gcd,
    draft_lcm,
    draft_modpow,
)


def _arithmetic_series(rng: np.random.Generator, level: int) -> Problem | None:
    ranges = {
        1: ((1, 20), (1, 9), (3, 20)),
        2: ((1, 200), (2, 40), (10, 60)),
        3: ((-200, 200), (-30, 30), (20, 100)),
        4: ((-100, 200), (2, 40), (30, 120)),
        5: ((1, 60), (2, 15), (20, 120)),
    }
    a, d, n = pick(rng, *ranges[level])
    if d == 0:
        return None
    start = f"An arithmetic sequence has first term {a} and common difference {d}."
    if level <= 3:
        return problem(
            f"{start} Find the sum of its first {n} terms.",
            sympy.Rational(n, 2) * (2 * a + (n - 1) * d),
            f"sum({a} + {d} * k for k in range({n}))",
            [
                f"sum({a} + {d} * k for k in range({n} + 1))",
                f"sum({a} + {d} * k for k in range(1, {n}))",
                f"{a} + {d} * ({n} - 1)",
                f"{n} * ({a} + {d} * {n})",
            ],
            max_answer=level_limit(level),
        )
    if level == 4:
        (p,) = pick(rng, (3, n - 5))
        return problem(
            f"{start} Find the sum of its terms number {p} to number {n}, both included.",
            sympy.Rational(n - p + 1, 2) * (2 * a + (p + n - 2) * d),
            f"sum({a} + {d} * k for k in range({p - 1}, {n}))",
            [
                f"sum({a} + {d} * k for k in range({p}, {n}))",
                f"sum({a} + {d} * k for k in range({p}, {n + 1}))",
                f"sum({a} + {d} * k for k in range({n}))",
            ],
        )
    (m,) = pick(rng, (3, 12))
    terms = [a + d * i for i in range(n)]
    if not any(term % m == 0 for term in terms):
        return None
    return problem(
        f"{start} Find the sum of those of its first {n} terms that are divisible by {m}.",
        sympy.Integer(sum(term for term in terms if term % m == 0)),
        f"sum(t for t in range({a}, {a + d * n}, {d}) if t % {m} == 0)",
        [
            f"sum({a} + {d} * k for k in range({n}))",
            f"sum(t for t in range({a}, {a + d * (n - 1)}, {d}) if t % {m} == 0)",
            f"sum(1 for t in range({a}, {a + d * n}, {d}) if t % {m} == 0)",
            f"sum({a} + {d} * k for k in range({n}) if k % {m} == 0)",
        ],
    )


def _root_squares(rng: np.random.Generator, level: int) -> Problem | None:
    highs = {1: (40, 99), 2: (99, 999), 3: (60, 400), 4: (60, 400), 5: (30, 120)}
    b, c = pick(rng, (3, highs[level][0]), (1, highs[level][1]))
    if b * b <= 4 * c:
        return None
    start = f"Let r and s be the roots of x^2 - {b}x + {c} = 0."
    # The trace of a power of the companion matrix is the power sum of the roots.
    companion = Matrix([[b, -c], [1, 0]])
    if level <= 2:
        return problem(
            f"{start} Find r^2 + s^2.",
            (companion**2).trace(),
            f"{b} ** 2 - 2 * {c}",
            [f"{b} ** 2 - {c}", f"{b} ** 2 + 2 * {c}", f"{b} ** 2"],
        )
    if level == 3:
        return problem(
            f"{start} Find r^3 + s^3.",
            (companion**3).trace(),
            f"{b} ** 3 - 3 * {b} * {c}",
            [f"{b} ** 3", f"{b} ** 3 - {b} * {c}", f"{b} ** 3 + 3 * {b} * {c}"],
        )
    if level == 4:
        return problem(
            f"{start} Find r/s + s/r.",
            sympy.Rational((companion**2).trace(), c),
            f"({b} ** 2 - 2 * {c}) / {c}",
            [f"{b} ** 2 / {c}", f"({b} ** 2 + 2 * {c}) / {c}", f"({b} ** 2 - {c}) / {c}"],
        )
    return problem(
        f"{start} Find r^4 + s^4.",
        (companion**4).trace(),
        f"({b} ** 2 - 2 * {c}) ** 2 - 2 * {c} ** 2",
        [f"({b} ** 2 - 2 * {c}) ** 2", f"{b} ** 4 - 4 * {c}", f"({b} ** 2 - 2 * {c}) ** 2 - 2 * {c}"],
    )


STARTER = (
    family("modpow", "number_theory", "Remainders of powers.", draft_modpow),
    family("gcd", "number_theory", "Greatest common divisors.", draft_gcd),
    family("lcm", "number_theory", "Least common multiples and what they count.", draft_lcm),
    family("divisors", "number_theory", "Counting and adding up divisors.", draft_divisors),
    family("arithmetic_series", "sequences", "Sums of arithmetic sequences.", _arithmetic_series),
    family("committee", "combinatorics", "Committees, with and without conditions.", draft_committee),
    family("root_squares", "algebra", "Symmetric functions of a quadratic's roots.", _root_squares),
    family("lattice_paths", "combinatorics", "Grid paths through or around points.", draft_lattice_paths),
    family("stars_bars", "combinatorics", "Counting solutions in non-negative integers.", draft_stars_bars),
    family("digit_sum", "number_theory", "Digit sums of large powers.", draft_digit_sum),
)
