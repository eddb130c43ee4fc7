"""Drafts of the starter families of number theory."""

from __future__ import annotations

import numpy as np
import sympy
from sympy import divisor_count, divisor_sigma
from sympy.ntheory import digits

from mappa_envs.tasks.math.families.base import Problem
from mappa_envs.tasks.math.families.build import choose, level_limit, pick, problem


def draft_modpow(rng: np.random.Generator, level: int) -> Problem | None:
    """Remainders of powers and of sums and products of them."""
    if level <= 3:
        highs = {1: (15, 12, 30), 2: (99, 60, 200), 3: (99, 999, 997)}[level]
        a, n, m = pick(rng, (2, highs[0]), (2, highs[1]), (3, highs[2]))
        return problem(
            f"Find the remainder when {a}^{n} is divided by {m}.",
            sympy.Mod(sympy.Integer(a) ** n, m),
            f"pow({a}, {n}, {m})",
            [f"({a} * {n}) % {m}", f"({a} ** {n}) // {m}", f"pow({a}, {n - 1}, {m})", f"pow({n}, {a}, {m})"],
        )
    a, n, b, k, m = pick(rng, (2, 50), (20, 400), (2, 50), (20, 400), (50, 999))
    if level == 4:
        return problem(
            f"Find the remainder when {a}^{n} + {b}^{k} is divided by {m}.",
            sympy.Mod(sympy.Integer(a) ** n + sympy.Integer(b) ** k, m),
            f"(pow({a}, {n}, {m}) + pow({b}, {k}, {m})) % {m}",
            [
                f"pow({a}, {n}, {m}) + pow({b}, {k}, {m})",
                f"pow({a + b}, {n + k}, {m})",
                f"({a} * {n} + {b} * {k}) % {m}",
            ],
        )
    (c,) = pick(rng, (2, 99))
    return problem(
        f"Find the remainder when {a}^{n} * {b}^{k} - {c} is divided by {m}.",
        sympy.Mod(sympy.Integer(a) ** n * sympy.Integer(b) ** k - c, m),
        f"(pow({a}, {n}, {m}) * pow({b}, {k}, {m}) - {c}) % {m}",
        [
            f"pow({a}, {n}, {m}) * pow({b}, {k}, {m}) % {m} - {c}",
            f"(pow({a * b}, {n + k}, {m}) - {c}) % {m}",
            f"(pow({a}, {n}, {m}) * pow({b}, {k}, {m}) + {c}) % {m}",
        ],
    )


def draft_gcd(rng: np.random.Generator, level: int) -> Problem | None:
    """Greatest common divisors of two or three numbers, or of powers less one."""
    if level <= 3:
        top = {1: 99, 2: 999, 3: 9999}[level]
        g = pick(rng, (2, {1: 16, 2: 60, 3: 300}[level]))[0]
        a, b = (g * x for x in pick(rng, (2, top // g), (2, top // g)))
        if a == b:
            return None
        return problem(
            f"Find the greatest common divisor of {a} and {b}.",
            sympy.igcd(a, b),
            f"math.gcd({a}, {b})",
            [f"math.lcm({a}, {b})", f"{a} % {b}", f"abs({a} - {b})", f"min({a}, {b})"],
        )
    if level == 4:
        g = pick(rng, (3, 90))[0]
        a, b, c = (g * x for x in pick(rng, *[(20, 9000 // g)] * 3))
        if len({a, b, c}) < 3:
            return None
        return problem(
            f"Find the greatest common divisor of {a}, {b} and {c}.",
            sympy.igcd(a, b, c),
            f"math.gcd(math.gcd({a}, {b}), {c})",
            [f"math.gcd({a}, {b})", f"math.gcd({b}, {c})", f"math.gcd({a}, {c})", f"min({a}, {b}, {c})"],
        )
    a, g = pick(rng, (2, 9), (2, 8))
    m, n = (g * x for x in pick(rng, (2, 20), (2, 20)))
    if m == n:
        return None
    return problem(
        f"Find the greatest common divisor of {a}^{m} - 1 and {a}^{n} - 1.",
        sympy.Integer(a) ** sympy.igcd(m, n) - 1,
        f"math.gcd({a} ** {m} - 1, {a} ** {n} - 1)",
        [f"{a} - 1", f"math.gcd({m}, {n})", f"{a} ** math.gcd({m}, {n})", f"{a} ** abs({m} - {n}) - 1"],
    )


def draft_lcm(rng: np.random.Generator, level: int) -> Problem | None:
    """Least common multiples, remainders and counts that rest on them."""
    if level <= 2:
        low, high = (2, 99) if level == 1 else (20, 999)
        a, b = pick(rng, (low, high), (low, high))
        if a == b:
            return None
        return problem(
            f"Find the least common multiple of {a} and {b}.",
            sympy.ilcm(a, b),
            f"math.lcm({a}, {b})",
            [f"{a} * {b}", f"math.gcd({a}, {b})", f"max({a}, {b})", f"{a} + {b}"],
            max_answer=level_limit(level),
        )
    g = pick(rng, (2, 30))[0]
    a, b, c = (g * x for x in pick(rng, *[(2, 40)] * 3))
    if len({a, b, c}) < 3:
        return None
    if level == 3:
        return problem(
            f"Find the least common multiple of {a}, {b} and {c}.",
            sympy.ilcm(a, b, c),
            f"math.lcm(math.lcm({a}, {b}), {c})",
            [
                f"math.lcm({a}, {b})",
                f"{a} * {b} * {c}",
                f"{a} * {b} * {c} // math.gcd(math.gcd({a}, {b}), {c})",
            ],
        )
    if level == 4:
        r = pick(rng, (1, min(a, b, c) - 1))[0]
        return problem(
            f"Find the smallest integer greater than {r} that leaves the remainder {r} when divided by "
            f"each of {a}, {b} and {c}.",
            sympy.ilcm(a, b, c) + r,
            f"math.lcm(math.lcm({a}, {b}), {c}) + {r}",
            [
                f"math.lcm(math.lcm({a}, {b}), {c})",
                f"{a} * {b} * {c} + {r}",
                f"math.lcm(math.lcm({a}, {b}), {c}) - {r}",
            ],
        )
    top = pick(rng, (10_000, 999_999))[0]
    a, b = sorted(pick(rng, (6, 60), (6, 60)))
    if b % a == 0:
        return None
    return problem(
        f"How many positive integers not exceeding {top} are divisible by {a} or by {b}?",
        sympy.floor(sympy.Rational(top, a))
        + sympy.floor(sympy.Rational(top, b))
        - sympy.floor(sympy.Rational(top, sympy.ilcm(a, b))),
        f"{top} // {a} + {top} // {b} - {top} // math.lcm({a}, {b})",
        [
            f"{top} // {a} + {top} // {b}",
            f"{top} // {a} + {top} // {b} - {top} // ({a} * {b})",
            f"{top} // math.lcm({a}, {b})",
        ],
    )


def draft_divisors(rng: np.random.Generator, level: int) -> Problem | None:
    """Counts and sums of divisors."""
    if level <= 2:
        (n,) = pick(rng, (2, 99) if level == 1 else (100, 999))
        return problem(
            f"How many positive divisors does {n} have?",
            divisor_count(n),
            f"sum(1 for d in range(1, {n} + 1) if {n} % d == 0)",
            [
                f"sum(1 for d in range(1, {n}) if {n} % d == 0)",
                f"sum(1 for d in range(2, {n}) if {n} % d == 0)",
                f"sum(d for d in range(1, {n} + 1) if {n} % d == 0)",
            ],
        )
    p, q, r = pick(rng, (1, 5), (1, 4), (0, 2))
    n = 2**p * 3**q * 5**r * choose(rng, 1, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    if level == 3:
        root = sympy.integer_nthroot(n, 2)[0]
        half = f"sum(2 for d in range(1, {root + 1}) if {n} % d == 0)"
        if not 1000 <= n <= 99_999:
            return None
        return problem(
            f"How many positive divisors does {n} have?",
            divisor_count(n),
            half if root**2 != n else f"{half} - 1",
            [f"sum(1 for d in range(1, {root + 1}) if {n} % d == 0)", f"{half} - 2", f"{half} + 1"],
        )
    if not 100 <= n <= 999:
        return None
    if level == 4:
        (k,) = (choose(rng, 2, 3, 4, 6, 10, 12),)
        if n % k:
            return None
        return problem(
            f"How many positive divisors of {n} are multiples of {k}?",
            divisor_count(n // k),
            f"sum(1 for d in range({k}, {n + 1}, {k}) if {n} % d == 0)",
            [
                f"sum(1 for d in range(1, {n + 1}) if {n} % d == 0)",
                f"sum(1 for d in range({k}, {n}, {k}) if {n} % d == 0)",
                f"sum(1 for d in range(1, {n + 1}) if {n} % d == 0 and d % {k} > 0)",
            ],
        )
    (k,) = (choose(rng, 2, 3, 5),)
    if n % k:
        return None
    odd_part = n // k ** sympy.multiplicity(k, n)
    return problem(
        f"Find the sum of the positive divisors of {n} that are not multiples of {k}.",
        divisor_sigma(odd_part),
        f"sum(d for d in range(1, {n + 1}) if {n} % d == 0 and d % {k} > 0)",
        [
            f"sum(d for d in range(1, {n + 1}) if {n} % d == 0)",
            f"sum(1 for d in range(1, {n + 1}) if {n} % d == 0 and d % {k} > 0)",
            f"sum(d for d in range(2, {n + 1}) if {n} % d == 0 and d % {k} > 0)",
        ],
    )


def draft_digit_sum(rng: np.random.Generator, level: int) -> Problem | None:
    """Digit sums of powers, differences and products."""
    highs = {1: (40, 10), 2: (150, 30), 3: (300, 60), 4: (99, 60), 5: (99, 40)}
    a, n = pick(rng, (2, highs[level][0]), (2, highs[level][1]))
    if level <= 3:
        return problem(
            f"Find the sum of the digits of {a}^{n}.",
            sympy.Integer(sum(digits(a**n)[1:])),
            f"sum(int(c) for c in str({a} ** {n}))",
            [f"sum(int(c) for c in str({a} * {n}))", f"len(str({a} ** {n}))", f"{a} ** {n} % 10"],
        )
    if level == 4:
        (b,) = pick(rng, (2, a**2))
        if b >= a**n:
            return None
        return problem(
            f"Find the sum of the digits of {a}^{n} - {b}.",
            sympy.Integer(sum(digits(a**n - b)[1:])),
            f"sum(int(c) for c in str({a} ** {n} - {b}))",
            [
                f"sum(int(c) for c in str({a} ** {n})) - sum(int(c) for c in str({b}))",
                f"sum(int(c) for c in str({a} ** {n} + {b}))",
                f"sum(int(c) for c in str({a} ** {n}))",
            ],
        )
    b, k = pick(rng, (2, 99), (2, 40))
    return problem(
        f"Find the sum of the digits of {a}^{n} * {b}^{k}.",
        sympy.Integer(sum(digits(a**n * b**k)[1:])),
        f"sum(int(c) for c in str({a} ** {n} * {b} ** {k}))",
        [
            f"sum(int(c) for c in str({a} ** {n})) * sum(int(c) for c in str({b} ** {k}))",
            f"sum(int(c) for c in str({a} ** {n} + {b} ** {k}))",
            f"sum(int(c) for c in str({a} ** {n})) + sum(int(c) for c in str({b} ** {k}))",
        ],
    )
