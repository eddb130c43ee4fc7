"""Drafts of the starter families of combinatorics."""

from __future__ import annotations

import numpy as np
import sympy
from sympy import binomial

from mappa_envs.tasks.math.families.base import Problem
from mappa_envs.tasks.math.families.build import level_limit, pick, problem


def draft_committee(rng: np.random.Generator, level: int) -> Problem | None:
    """Committees, with and without conditions."""
    if level <= 2:
        n, k = pick(rng, *[((4, 40), (2, 20)), ((10, 140), (2, 30))][level - 1])
        if k >= n:
            return None
        return problem(
            f"In how many ways can a committee of {k} people be chosen from {n} people?",
            binomial(n, k),
            f"math.comb({n}, {k})",
            [f"math.perm({n}, {k})", f"{n} * {k}", f"math.comb({n - 1}, {k})", f"{n} ** {k}"],
            max_answer=level_limit(level),
        )
    if level == 3:
        n, k = pick(rng, (8, 40), (3, 9))
        if k > n - 2:
            return None
        return problem(
            f"In how many ways can a committee of {k} people be chosen from {n} people, two of whom refuse "
            "to serve together?",
            binomial(n - 2, k) + 2 * binomial(n - 2, k - 1),
            f"math.comb({n}, {k}) - math.comb({n - 2}, {k - 2})",
            [
                f"math.comb({n}, {k})",
                f"math.comb({n - 2}, {k})",
                f"math.comb({n}, {k}) - math.comb({n - 2}, {k})",
            ],
        )
    w, m, k = pick(rng, (4, 18), (4, 18), (4, 9))
    (j,) = pick(rng, (1, k - 1))
    if j > w or k - j > m or k > w or k > m:
        return None
    if level == 4:
        return problem(
            f"From {w} women and {m} men, in how many ways can a committee of {k} people be chosen that "
            f"has exactly {j} {'woman' if j == 1 else 'women'}?",
            binomial(w, j) * binomial(m, k - j),
            f"math.comb({w}, {j}) * math.comb({m}, {k - j})",
            [
                f"math.comb({w + m}, {k})",
                f"math.comb({w}, {j}) + math.comb({m}, {k - j})",
                f"math.perm({w}, {j}) * math.perm({m}, {k - j})",
            ],
        )
    return problem(
        f"From {w} women and {m} men, in how many ways can a committee of {k} people be chosen that "
        f"has at least {j} {'woman' if j == 1 else 'women'}?",
        binomial(w + m, k) - sum(binomial(w, i) * binomial(m, k - i) for i in range(j)),
        f"sum(math.comb({w}, i) * math.comb({m}, {k} - i) for i in range({j}, {k + 1}))",
        [
            f"math.comb({w}, {j}) * math.comb({m}, {k - j})",
            f"math.comb({w}, {j}) * math.comb({w + m - j}, {k - j})",
            f"sum(math.comb({w}, i) * math.comb({m}, {k} - i) for i in range({j + 1}, {k + 1}))",
        ],
    )


def draft_lattice_paths(rng: np.random.Generator, level: int) -> Problem | None:
    """Grid paths, through points or around them."""
    if level <= 2:
        m, n = pick(rng, *[((1, 40), (1, 40)), ((2, 120), (2, 120))][level - 1])
        return problem(
            f"How many shortest paths along grid lines lead from (0, 0) to ({m}, {n})?",
            binomial(m + n, m),
            f"math.comb({m} + {n}, {m})",
            [f"{m} * {n}", f"math.comb({m} + {n} - 1, {m})", f"math.comb({m} + {n}, 2)", f"2 ** ({m} + {n})"],
            max_answer=level_limit(level),
        )
    m, n = pick(rng, (5, 14), (5, 14))
    p, q = pick(rng, (1, m - 1), (1, n - 1))
    through = f"math.comb({p + q}, {p}) * math.comb({m + n - p - q}, {m - p})"
    start = f"How many shortest paths along grid lines lead from (0, 0) to ({m}, {n})"
    if level == 3:
        return problem(
            f"{start} and pass through ({p}, {q})?",
            binomial(p + q, p) * binomial(m + n - p - q, m - p),
            through,
            [
                f"math.comb({m + n}, {m})",
                f"math.comb({p + q}, {p}) + math.comb({m + n - p - q}, {m - p})",
                f"math.comb({m + n}, {m}) - {through}",
            ],
        )
    if level == 4:
        return problem(
            f"{start} and do not pass through ({p}, {q})?",
            binomial(m + n, m) - binomial(p + q, p) * binomial(m + n - p - q, m - p),
            f"math.comb({m + n}, {m}) - {through}",
            [through, f"math.comb({m + n}, {m})", f"math.comb({m + n}, {m}) - math.comb({p + q}, {p})"],
        )
    u, v = pick(rng, (p, m - 1), (q, n - 1))
    if (u, v) == (p, q):
        return None
    second = f"math.comb({u + v}, {u}) * math.comb({m + n - u - v}, {m - u})"
    both = f"math.comb({p + q}, {p}) * math.comb({u + v - p - q}, {u - p}) * math.comb({m + n - u - v}, {m - u})"
    return problem(
        f"{start} and pass through neither ({p}, {q}) nor ({u}, {v})?",
        _paths_avoiding(m, n, {(p, q), (u, v)}),
        f"math.comb({m + n}, {m}) - {through} - {second} + {both}",
        [f"math.comb({m + n}, {m}) - {through} - {second}", f"math.comb({m + n}, {m}) - {both}", both],
    )


def _paths_avoiding(m: int, n: int, blocked: set[tuple[int, int]]) -> sympy.Integer:
    ways = {(0, 0): 1}
    for x in range(m + 1):
        for y in range(n + 1):
            if (x, y) != (0, 0):
                here = ways.get((x - 1, y), 0) + ways.get((x, y - 1), 0)
                ways[x, y] = 0 if (x, y) in blocked else here
    return sympy.Integer(ways[m, n])


def draft_stars_bars(rng: np.random.Generator, level: int) -> Problem | None:
    """Solutions of linear equations in non-negative integers."""
    if level <= 2:
        (n,) = pick(rng, (1, 99) if level == 1 else (100, 999))
        return problem(
            f"How many solutions in non-negative integers does x + y + z = {n} have?",
            binomial(n + 2, 2),
            f"math.comb({n} + 2, 2)",
            [f"math.comb({n} + 2, 3)", f"math.comb({n} - 1, 2)", f"math.comb({n} + 3, 3)", f"{n} ** 2"],
        )
    (n,) = pick(rng, (10, 150))
    if level == 3:
        return problem(
            f"How many solutions in non-negative integers does w + x + y + z = {n} have?",
            binomial(n + 3, 3),
            f"math.comb({n + 3}, 3)",
            [f"math.comb({n + 4}, 4)", f"math.comb({n - 1}, 3)", f"math.comb({n + 2}, 2)"],
        )
    if level == 4:
        a, b = pick(rng, (1, n // 4), (1, n // 4))
        rest = n - a - b
        return problem(
            f"How many solutions in non-negative integers does w + x + y + z = {n} have with w >= {a} and x >= {b}?",
            binomial(rest + 3, 3),
            f"math.comb({rest + 3}, 3)",
            [f"math.comb({n + 3}, 3)", f"math.comb({rest - 1}, 3)", f"math.comb({rest + 4}, 4)"],
        )
    (k,) = pick(rng, (n // 3, n - 1))
    return problem(
        f"How many solutions in non-negative integers does x + y + z = {n} have with x <= {k}?",
        binomial(n + 2, 2) - binomial(n - k + 1, 2),
        f"sum({n} - x + 1 for x in range({k + 1}))",
        [
            f"sum({n} - x + 1 for x in range({k}))",
            f"math.comb({n + 2}, 2)",
            f"math.comb({n + 2}, 2) - math.comb({n - k + 2}, 2)",
            f"math.comb({k + 2}, 2)",
        ],
    )
