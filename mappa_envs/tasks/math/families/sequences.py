"""Families of sequences and sums beyond the starter ones."""

from __future__ import annotations

import numpy as np
import sympy
from sympy import Rational, Symbol

from mappa_envs.tasks.math.families.base import Problem
from mappa_envs.tasks.math.families.build import choose, family, pick, problem

_K = Symbol("k", integer=True)


def _geometric_series(rng: np.random.Generator, level: int) -> Problem | None:
    a, r, n = pick(
        rng,
        *[
            ((1, 20), (2, 5), (3, 5)),
            ((1, 50), (2, 7), (4, 8)),
            ((1, 30), (2, 4), (5, 12)),
            ((1, 60), (2, 12), (2, 8)),
            ((1, 60), (2, 9), (2, 9)),
        ][level - 1],
    )
    start = f"A geometric sequence has first term {a} and common ratio"
    if level <= 3:
        ratio = -r if level == 3 else r
        shown = f"({ratio})" if ratio < 0 else str(ratio)
        return problem(
            f"{start} {ratio}. Find the sum of its first {n} terms.",
            sympy.Integer(a) * (1 - sympy.Integer(ratio) ** n) / (1 - ratio),
            f"sum({a} * {shown} ** k for k in range({n}))",
            [
                f"sum({a} * {shown} ** k for k in range({n + 1}))",
                f"sum({a} * {shown} ** k for k in range(1, {n}))",
                f"{a} * {shown} ** {n - 1}",
                f"{n} * {a} * {shown}",
            ],
        )
    q = n + r
    p = choose(rng, *(i for i in range(1, q) if sympy.igcd(i, q) == 1))
    if level == 4:
        return problem(
            f"{start} {p}/{q}. Find the sum of all its terms.",
            Rational(a) / (1 - Rational(p, q)),
            f"{a} * {q} / {q - p}",
            [f"{a} * {q} / {p}", f"{a} * {p} / {q - p}", f"{a} * {q} / {q + p}"],
        )
    return problem(
        f"{start} {p}/{q}. Find the sum of the squares of all its terms.",
        Rational(a) ** 2 / (1 - Rational(p, q) ** 2),
        f"{a} ** 2 * {q} ** 2 / ({q} ** 2 - {p} ** 2)",
        [
            f"({a} * {q} / {q - p}) ** 2",
            f"{a} * {q} ** 2 / ({q} ** 2 - {p} ** 2)",
            f"{a} ** 2 * {q} / {q - p}",
        ],
    )


def _recurrence(rng: np.random.Generator, level: int) -> Problem | None:
    a, m, c, n = pick(
        rng,
        *[
            ((1, 9), (2, 3), (1, 9), (3, 5)),
            ((1, 20), (2, 5), (1, 20), (4, 6)),
            ((1, 20), (2, 4), (-20, -1), (5, 9)),
            ((1, 9), (2, 5), (1, 9), (4, 8)),
            ((1, 9), (2, 7), (1, 9), (20, 99)),
        ][level - 1],
    )
    values = [sympy.Integer(a)]
    for index in range(1, n):
        values.append(m * values[-1] + (c if level != 4 else c * index))
    step = f"{m} times the term before it {'minus' if c < 0 else 'plus'} {abs(c)}"
    constant = f"({c})" if c < 0 else str(c)
    if level <= 3:
        powers = f"{a} * {m} ** {n - 1}"
        closed = f"{powers} + {constant} * ({m} ** {n - 1} - 1) // {m - 1}"
        return problem(
            f"A sequence starts with {a}, and each later term is {step}. Find its term number {n}.",
            values[-1],
            closed,
            [
                f"{a} * {m} ** {n} + {constant} * ({m} ** {n} - 1) // {m - 1}",
                f"{powers} + {constant} * {n - 1}",
                powers,
                f"({a} + {constant}) * {m} ** {n - 1}",
            ],
        )
    if level == 4:
        return problem(
            f"Let a_1 = {a} and a_(n+1) = {m} * a_n + {c} * n. Find a_{n}.",
            values[-1],
            f"{a} * {m} ** {n - 1} + sum({c} * k * {m} ** ({n - 1} - k) for k in range(1, {n}))",
            [
                f"{a} * {m} ** {n - 1}",
                f"{a} * {m} ** {n - 1} + {c} * ({m} ** {n - 1} - 1) // {m - 1}",
                f"{a} * {m} ** {n - 1} + {c} * {n - 1}",
            ],
        )
    (d,) = pick(rng, (7, 97))
    return problem(
        f"A sequence starts with {a}, and each later term is {step}. Find the remainder when its term "
        f"number {n} is "
        f"divided by {d}.",
        values[-1] % d,
        f"({a} * {m} ** {n - 1} + {c} * ({m} ** {n - 1} - 1) // {m - 1}) % {d}",
        [
            f"{a} * {m} ** {n - 1} % {d}",
            f"({a} * {m} ** {n} + {c} * ({m} ** {n} - 1) // {m - 1}) % {d}",
            f"({a} * {m} * {n - 1} + {c}) % {d}",
        ],
    )


def _telescoping(rng: np.random.Generator, level: int) -> Problem | None:
    n, s, d = pick(
        rng,
        *[
            ((3, 99), (0, 3), (1, 1)),
            ((50, 400), (0, 9), (1, 1)),
            ((5, 60), (1, 9), (2, 5)),
            ((3, 99), (0, 0), (1, 1)),
            ((5, 60), (0, 0), (2, 3)),
        ][level - 1],
    )
    if level <= 2:
        first, last = f"1/({s + 1} * {s + 2})", f"1/({s + n} * {s + n + 1})"
        return problem(
            f"Find the sum {first} + {f'1/({s + 2} * {s + 3})'} + ... + {last}.",
            Rational(1, s + 1) - Rational(1, s + n + 1),
            f"sum(1 / (k * (k + 1)) for k in range({s + 1}, {s + n + 1}))",
            [
                f"{n} / ({s + n} * {s + n + 1})",
                f"1 - 1 / {s + n + 1}" if s else f"1 - 1 / {n}",
                f"1 / {s + n + 1}",
                f"1 / {s + 1}",
            ],
        )
    if level == 3:
        top = s + d * n
        return problem(
            f"Find the sum 1/({s} * {s + d}) + 1/({s + d} * {s + 2 * d}) + ... + 1/({top - d} * {top}).",
            (Rational(1, s) - Rational(1, top)) / d,
            f"sum(1 / (k * (k + {d})) for k in range({s}, {top}, {d}))",
            [f"1 / {s} - 1 / {top}", f"{n} / ({top - d} * {top})", f"(1 / {s} - 1 / {top - d}) / {d}"],
        )
    if level == 4:
        return problem(
            f"Find the sum 1/(1 * 2 * 3) + 1/(2 * 3 * 4) + ... + 1/({n} * {n + 1} * {n + 2}).",
            (Rational(1, 2) - Rational(1, (n + 1) * (n + 2))) / 2,
            f"sum(1 / (k * (k + 1) * (k + 2)) for k in range(1, {n + 1}))",
            [
                f"1 / 2 - 1 / ({n + 1} * {n + 2})",
                f"{n} / ({n + 1} * {n + 2})",
                f"1 / 4 - 1 / (2 * {n} * {n + 1})",
            ],
        )
    (m,) = pick(rng, (2, n))
    return problem(
        f"Find the product (1 - 1/{m}^2)(1 - 1/{m + 1}^2) ... (1 - 1/{m + n}^2).",
        Rational(m - 1, m) * Rational(m + n + 1, m + n),
        f"math.prod((k - 1) * (k + 1) for k in range({m}, {m + n + 1})) / math.prod(k * k for k in "
        f"range({m}, {m + n + 1}))",
        [f"({m} - 1) / ({m + n} + 1)", f"({m} - 1) / {m}", f"1 - 1 / {m + n} ** 2"],
    )


def _power_sums(rng: np.random.Generator, level: int) -> Problem | None:
    n, m = pick(
        rng,
        *[
            ((3, 60), (0, 0)),
            ((20, 120), (0, 0)),
            ((30, 120), (5, 29)),
            ((10, 60), (1, 9)),
            ((10, 90), (2, 9)),
        ][level - 1],
    )
    if level <= 2:
        return problem(
            f"Find the sum of the squares of the integers from 1 to {n}.",
            sympy.summation(_K**2, (_K, 1, n)),
            f"sum(k ** 2 for k in range(1, {n + 1}))",
            [
                f"sum(k ** 2 for k in range(1, {n}))",
                f"sum(k for k in range(1, {n + 1})) ** 2",
                f"{n} ** 2",
                f"{n} ** 3 // 3",
            ],
        )
    if level == 3:
        return problem(
            f"Find the sum of the cubes of the integers from {m} to {n}.",
            sympy.summation(_K**3, (_K, m, n)),
            f"sum(k ** 3 for k in range({m}, {n + 1}))",
            [
                f"sum(k ** 3 for k in range({m}, {n}))",
                f"sum(k for k in range({m}, {n + 1})) ** 2",
                f"sum(k ** 3 for k in range({m + 1}, {n + 1}))",
            ],
        )
    if level == 4:
        return problem(
            f"Find the sum 1 * {m + 1} + 2 * {m + 2} + ... + {n} * {n + m}.",
            sympy.summation(_K * (_K + m), (_K, 1, n)),
            f"sum(k * (k + {m}) for k in range(1, {n + 1}))",
            [
                f"sum(k ** 2 for k in range(1, {n + 1}))",
                f"sum(k * (k + {m}) for k in range(1, {n}))",
                f"sum(k ** 2 for k in range(1, {n + 1})) + {m} * {n}",
            ],
        )
    return problem(
        f"Find the sum of the squares of those integers from 1 to {n} that are not divisible by {m}.",
        sympy.summation(_K**2, (_K, 1, n)) - m**2 * sympy.summation(_K**2, (_K, 1, n // m)),
        f"sum(k ** 2 for k in range(1, {n + 1}) if k % {m} > 0)",
        [
            f"sum(k ** 2 for k in range(1, {n + 1}))",
            f"sum(k ** 2 for k in range({m}, {n + 1}, {m}))",
            f"sum(k for k in range(1, {n + 1}) if k % {m} > 0)",
        ],
    )


def _fibonacci(n: int) -> str:
    return f"sum(math.comb({n - 1} - k, k) for k in range({(n - 1) // 2 + 1}))"


def _two_term_sum(rng: np.random.Generator, level: int) -> Problem | None:
    n, a, b = pick(
        rng,
        *[
            ((5, 10), (1, 9), (1, 9)),
            ((8, 15), (1, 30), (1, 30)),
            ((8, 15), (-20, 20), (-20, 20)),
            ((8, 16), (1, 9), (1, 9)),
            ((30, 150), (1, 9), (1, 9)),
        ][level - 1],
    )
    values = [a, b]
    while len(values) < n:
        values.append(values[-1] + values[-2])
    start = f"A sequence starts with {a}, {b}, and each later term is the sum of the two terms before it."
    aa, bb = (f"({v})" if v < 0 else str(v) for v in (a, b))
    term = f"{aa} * {_fibonacci(n - 2)} + {bb} * {_fibonacci(n - 1)}"
    if level <= 3:
        return problem(
            f"{start} Find its term number {n}.",
            values[-1],
            term,
            [
                f"{aa} * {_fibonacci(n - 1)} + {bb} * {_fibonacci(n)}",
                f"{bb} * {_fibonacci(n)}",
                f"{aa} + {n - 1} * {bb}",
                _fibonacci(n),
            ],
        )
    if level == 4:
        return problem(
            f"{start} Find the sum of its first {n} terms.",
            sum(values),
            f"{aa} * {_fibonacci(n)} + {bb} * {_fibonacci(n + 1)} - {bb}",
            [term, f"{aa} * {_fibonacci(n)} + {bb} * {_fibonacci(n + 1)}", f"{n} * ({aa} + {bb})"],
        )
    (d,) = pick(rng, (3, 60))
    return problem(
        f"{start} Find the remainder when its term number {n} is divided by {d}.",
        values[-1] % d,
        f"({term}) % {d}",
        [
            f"({aa} * {_fibonacci(n - 1)} + {bb} * {_fibonacci(n)}) % {d}",
            f"({aa} + {n - 1} * {bb}) % {d}",
            f"({aa} + {bb}) * {n} % {d}",
        ],
    )


SEQUENCES = (
    family("geometric_series", "sequences", "Finite and infinite geometric series.", _geometric_series),
    family("recurrence", "sequences", "First-order recurrences.", _recurrence),
    family("telescoping", "sequences", "Sums and products that telescope.", _telescoping),
    family("power_sums", "sequences", "Sums of squares, cubes and products.", _power_sums),
    family("two_term_sum", "sequences", "Sequences in which two terms add up to the next.", _two_term_sum),
)
