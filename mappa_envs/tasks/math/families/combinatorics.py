"""Families of combinatorics beyond the starter ones."""

from __future__ import annotations

import numpy as np
import sympy
from sympy import binomial
from sympy.functions.combinatorial.numbers import stirling

from mappa_envs.tasks.math.families.base import Problem
from mappa_envs.tasks.math.families.build import choose, family, pick, problem


def _arrangements(rng: np.random.Generator, level: int) -> Problem | None:
    colours = ["red", "blue", "green", "white"][: [2, 3, 3, 3, 4][level - 1]]
    high = [9, 6, 8, 6, 5][level - 1]
    counts = pick(rng, *[(1, high)] * len(colours))
    total = sum(counts)
    listed = [f"{n} {colour}" for n, colour in zip(counts, colours, strict=True)]
    balls = ", ".join(listed[:-1]) + " and " + listed[-1]
    everything = sympy.factorial(total) / sympy.prod([sympy.factorial(n) for n in counts])
    left, chosen = total, []
    for n in counts[:-1]:
        chosen.append(f"math.comb({left}, {n})")
        left -= n
    count = " * ".join(chosen)
    start = f"In how many ways can {balls} balls be put in a row"
    if level <= 3:
        return problem(
            f"{start}, if balls of one colour look alike?",
            everything,
            count,
            [f"math.factorial({total})", " * ".join(map(str, counts)), " + ".join(chosen), f"{count} // 2"],
        )
    if level == 4:
        red, rest = counts[0], total - counts[0]
        if red > rest + 1 or red < 2:
            return None
        others = f"math.comb({rest}, {counts[1]})"
        return problem(
            f"{start} with no two red balls next to each other, if balls of one colour look alike?",
            everything * binomial(rest + 1, red) / binomial(total, red),
            f"{others} * math.comb({rest + 1}, {red})",
            [
                count,
                f"{others} * math.comb({rest}, {red})",
                f"{others} * math.perm({rest + 1}, {red})",
                others,
            ],
        )
    red, rest = counts[0], total - counts[0]
    if red < 2:
        return None
    others = f"math.comb({rest}, {counts[1]}) * math.comb({rest - counts[1]}, {counts[2]})"
    return problem(
        f"{start} with all red balls next to each other, if balls of one colour look alike?",
        everything * (rest + 1) / binomial(total, red),
        f"{others} * {rest + 1}",
        [count, others, f"{others} * {rest + 1} * math.factorial({red})", f"{others} * {total}"],
    )


def _onto_boxes(rng: np.random.Generator, level: int) -> Problem | None:
    n, k = pick(
        rng,
        *[((2, 8), (2, 30)), ((3, 14), (2, 6)), ((5, 20), (3, 8)), ((5, 30), (3, 9)), ((5, 18), (3, 9))][level - 1],
    )
    if n <= k and level != 1:
        return None
    onto = f"sum((-1) ** i * math.comb({k}, i) * ({k} - i) ** {n} for i in range({k}))"
    if level == 1:
        return problem(
            f"In how many ways can {n} different books be put on {k} different shelves, if their order on "
            "a shelf "
            "does not matter?",
            sympy.Integer(k) ** n,
            f"{k} ** {n}",
            [f"{n} ** {k}", f"math.comb({n}, {k})", f"{n} * {k}", f"math.comb({n + k - 1}, {k - 1})"],
        )
    if level == 4:
        return problem(
            f"In how many ways can {n} equal coins be shared among {k} people so that everybody gets at least one?",
            binomial(n - 1, k - 1),
            f"math.comb({n - 1}, {k - 1})",
            [f"math.comb({n + k - 1}, {k - 1})", f"math.comb({n}, {k})", f"{k} ** {n - k}"],
        )
    if level == 5:
        return problem(
            f"In how many ways can {n} people be split into {k} groups without names, none of them empty?",
            stirling(n, k),
            f"{onto} // math.factorial({k})",
            [onto, f"{k} ** {n} // math.factorial({k})", f"math.comb({n - 1}, {k - 1})"],
        )
    return problem(
        f"In how many ways can {n} different books be put on {k} different shelves, none of them empty, if "
        "their "
        "order on a shelf does not matter?",
        stirling(n, k) * sympy.factorial(k),
        onto,
        [
            f"{k} ** {n}",
            f"math.comb({n - 1}, {k - 1})",
            f"math.perm({n}, {k}) * {k} ** {n - k}",
            f"{onto} // {k}",
        ],
    )


def _climbs(n: int, steps: tuple[int, ...]) -> int:
    ways = [1]
    for height in range(1, n + 1):
        ways.append(sum(ways[height - step] for step in steps if step <= height))
    return ways[n]


def _staircase(rng: np.random.Generator, level: int) -> Problem | None:
    (n,) = pick(rng, [(4, 25), (8, 40), (30, 80), (8, 30), (8, 25)][level - 1])
    big = choose(rng, 2, 3) if level == 1 else choose(rng, 3, 4, 5, 6)
    stairs = f"A staircase has {n} steps."
    if level <= 3:
        ways = f"sum(math.comb({n} - {'k' if big == 2 else f'{big - 1} * k'}, k) for k in range({n // big + 1}))"
        return problem(
            f"{stairs} In how many ways can it be climbed with strides of 1 or {big} steps?",
            _climbs(n, (1, big)),
            ways,
            [
                f"2 ** {n - 1}",
                f"{n // big + 1}",
                f"{ways} + 1",
                f"sum(math.comb({n}, k) for k in range({n // big + 1}))",
            ],
        )
    if level == 4:
        third = choose(rng, 3, 4, 5)
        ways = (
            f"sum(math.comb({n} - j - {third - 1} * k, k) * math.comb({n} - j - {third} * k, j) "
            f"for k in range({n // third + 1}) for j in range({n // 2 + 1}) if 2 * j + {third} * k <= {n})"
        )
        return problem(
            f"{stairs} In how many ways can it be climbed with strides of 1, 2 or {third} steps?",
            _climbs(n, (1, 2, third)),
            ways,
            [f"2 ** {n - 1}", f"3 ** {n // 2}", f"sum(math.comb({n} - k, k) for k in range({n // 2 + 1}))"],
        )
    (broken,) = pick(rng, (2, n - 2))
    whole, before, after = (f"sum(math.comb({m} - k, k) for k in range({m // 2 + 1}))" for m in (n, broken, n - broken))
    return problem(
        f"{stairs} In how many ways can it be climbed with strides of 1 or 2 steps, if step {broken} is "
        "broken and "
        "must not be trodden on?",
        _climbs(broken - 1, (1, 2)) * _climbs(n - broken - 1, (1, 2)),
        f"{whole} - {before} * {after}",
        [whole, f"{before} * {after}", f"{whole} - {before}"],
    )


def _points_and_lines(rng: np.random.Generator, level: int) -> Problem | None:
    m, n = pick(
        rng,
        *[((3, 14), (2, 14)), ((10, 60), (10, 60)), ((10, 40), (3, 9)), ((4, 20), (4, 20)), ((3, 9), (3, 9))][
            level - 1
        ],
    )
    if level <= 2:
        return problem(
            f"On one of two parallel lines {m} points are marked, on the other {n} points. How many "
            "triangles have "
            "three of these points as corners?",
            binomial(m, 2) * n + binomial(n, 2) * m,
            f"math.comb({m + n}, 3) - math.comb({m}, 3) - math.comb({n}, 3)",
            [f"math.comb({m + n}, 3)", f"math.comb({m}, 2) * {n}", f"{m} * {n}"],
        )
    if level == 3:
        return problem(
            f"Of {m} points in the plane, {n} lie on one line, and no other three of them lie on a line. "
            "How many "
            "lines pass through at least two of the points?",
            binomial(m, 2) - binomial(n, 2) + 1,
            f"math.comb({m - n}, 2) + {m - n} * {n} + 1",
            [f"math.comb({m}, 2)", f"math.comb({m}, 2) - math.comb({n}, 2)", f"math.comb({m - n}, 2) + 1"],
        )
    if level == 4:
        return problem(
            f"On one of two parallel lines {m} points are marked, on the other {n} points. How many convex "
            "quadrilaterals have four of these points as corners?",
            binomial(m, 2) * binomial(n, 2),
            f"math.comb({m}, 2) * math.comb({n}, 2)",
            [f"math.comb({m + n}, 4)", f"{m} * {n}", f"math.comb({m}, 2) + math.comb({n}, 2)"],
        )
    (k,) = pick(rng, (3, 9))
    total = f"math.comb({m + n + k}, 3) - math.comb({m}, 3) - math.comb({n}, 3) - math.comb({k}, 3)"
    return problem(
        f"On the three sides of a triangle {m}, {n} and {k} points are marked, none of them a corner. How "
        "many "
        "triangles have three of these points as corners?",
        m * n * k + binomial(m, 2) * (n + k) + binomial(n, 2) * (m + k) + binomial(k, 2) * (m + n),
        total,
        [f"math.comb({m + n + k}, 3)", f"{m} * {n} * {k}", f"{total} - {m} * {n} * {k}"],
    )


def _digit_patterns(rng: np.random.Generator, level: int) -> Problem | None:
    digits = "sum(int(c) for c in str(k))"
    if level <= 2:
        (top,), (s,) = (
            pick(rng, (40, 99) if level == 1 else (100, 999)),
            pick(rng, (3, 12) if level == 1 else (3, 18)),
        )
        count = f"sum(1 for k in range(1, {top + 1}) if {digits} == {s})"
        return problem(
            f"How many of the integers from 1 to {top} have the digit sum {s}?",
            sum(1 for k in range(1, top + 1) if sum(sympy.ntheory.digits(k)[1:]) == s),
            count,
            [f"{count} + 1", f"sum(1 for k in range(1, {top + 1}) if k % 9 == {s % 9})", f"{top} // {s}"],
        )
    length, d = pick(rng, (3, 8), (1, 9))
    if level == 3:
        return (
            problem(
                f"How many positive integers with {length} digits do not contain the digit {d}?",
                8 * sympy.Integer(9) ** (length - 1),
                f"8 * 9 ** {length - 1}",
                [f"9 ** {length}", f"9 * 10 ** {length - 1}", f"8 ** {length}"],
            )
            if rng.integers(2)
            else problem(
                f"How many positive integers with {length} digits contain the digit {d} at least once?",
                9 * sympy.Integer(10) ** (length - 1) - 8 * sympy.Integer(9) ** (length - 1),
                f"9 * 10 ** {length - 1} - 8 * 9 ** {length - 1}",
                [
                    f"{length} * 10 ** {length - 1}",
                    f"10 ** {length} - 9 ** {length}",
                    f"8 * 9 ** {length - 1}",
                ],
            )
        )
    if level == 4:
        (m,) = pick(rng, (2, 9))
        start = choose(rng, 100, 200, 300, 400, 500)
        span = f"range({start}, {start + 500})"
        return problem(
            f"How many of the integers from {start} to {start + 499} have a digit sum that is divisible by "
            f"{m} and "
            f"end in {d}?",
            sum(1 for k in range(start, start + 500) if k % 10 == d and sum(sympy.ntheory.digits(k)[1:]) % m == 0),
            f"sum(1 for k in {span} if {digits} % {m} == 0 and k % 10 == {d})",
            [
                f"sum(1 for k in {span} if k % {m} == 0 and k % 10 == {d})",
                f"sum(1 for k in {span} if {digits} % {m} == 0)",
                f"500 // (10 * {m})",
            ],
        )
    (k,) = pick(rng, (1, length - 1))
    # Choose the places of the digit, with and without the first place.
    direct = binomial(length - 1, k - 1) * 9 ** (length - k) + binomial(length - 1, k) * 8 * 9 ** (length - k - 1)
    leading_zero = f"math.comb({length - 1}, {k}) * 9 ** {length - 1 - k}"
    return problem(
        f"How many positive integers with {length} digits contain the digit {d} exactly "
        f"{'once' if k == 1 else f'{k} times'}?",
        direct,
        f"math.comb({length}, {k}) * 9 ** {length - k} - {leading_zero}",
        [
            f"math.comb({length}, {k}) * 9 ** {length - k}",
            f"math.comb({length}, {k}) * 10 ** {length - k}",
            leading_zero,
        ],
    )


COMBINATORICS = (
    family("arrangements", "combinatorics", "Coloured balls in a row.", _arrangements),
    family("onto_boxes", "combinatorics", "Things put on shelves, none of them empty.", _onto_boxes),
    family("staircase", "combinatorics", "Ways to climb a staircase.", _staircase),
    family("points_and_lines", "combinatorics", "Triangles and lines through marked points.", _points_and_lines),
    family("digit_patterns", "combinatorics", "Integers with conditions on their digits.", _digit_patterns),
)
