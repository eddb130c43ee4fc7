"""Families of number theory beyond the starter ones."""

from __future__ import annotations

import math

import numpy as np
import sympy
from sympy.ntheory import digits, multiplicity
from sympy.ntheory.modular import crt

from mappa_envs.tasks.math.families.base import Problem
from mappa_envs.tasks.math.families.build import choose, family, pick, problem


def _remainders(rng: np.random.Generator, level: int) -> Problem | None:
    """Two moduli up to level 2, three above; the largest solution below a bound at level 5."""
    low, high = [(3, 12), (11, 40), (3, 9), (9, 25), (9, 25)][level - 1]
    moduli = pick(rng, *[(low, high)] * (2 if level <= 2 else 3))
    period = math.lcm(*moduli)
    if period != math.prod(moduli) or len(set(moduli)) < len(moduli):
        return None
    rests = [pick(rng, (1, m - 1))[0] for m in moduli]
    least = int(crt(moduli, rests)[0])
    clauses = [f"{r} when divided by {m}" for m, r in zip(moduli, rests, strict=True)]
    listed = ", ".join(clauses[:-1]) + " and " + clauses[-1]
    m, r = max(zip(moduli, rests, strict=True))
    tests = " and ".join(f"x % {n} == {s}" for n, s in zip(moduli, rests, strict=True) if n != m)
    # Only the candidates of the largest modulus are tried.
    search = f"min(x for x in range({r}, {period}, {m}) if {tests})"
    if level <= 4:
        first = f"x % {moduli[0]} == {rests[0]}"
        return problem(
            f"Find the smallest positive integer that leaves the remainder {listed}.",
            least,
            search,
            [
                f"min(x for x in range({r}, {period}, {m}) if {first})",
                " * ".join(map(str, moduli)),
                f"{search} + {period}",
            ],
        )
    bound = pick(rng, (2, 9))[0] * 10_000
    return problem(
        f"Find the largest integer less than {bound} that leaves the remainder {listed}.",
        least + (bound - 1 - least) // period * period,
        f"{search} + ({bound - 1} - {search}) // {period} * {period}",
        [search, f"{search} + {bound} // {period} * {period}", f"{bound} // {period} * {period}"],
    )


def _trailing_zeros(rng: np.random.Generator, level: int) -> Problem | None:
    (n,) = pick(rng, [(5, 99), (100, 400), (10, 200), (50, 300), (50, 300)][level - 1])
    powers = [p for p in range(1, 12) if 5**p <= n]
    zeros = " + ".join(f"{n} // {5**p}" for p in powers)
    if level <= 2:
        return problem(
            f"How many zeros are there at the end of {n}!?",
            multiplicity(5, sympy.factorial(n)),
            zeros,
            [f"{n} // 5", f"{n} // 10", f"{n} // 2"],
        )
    if level == 3:
        p = choose(rng, 2, 3, 7, 11)
        top = int(math.log(n, p)) + 2
        return problem(
            f"Find the largest integer k such that {p}^k divides {n}!.",
            multiplicity(p, sympy.factorial(n)),
            f"sum({n} // {p} ** k for k in range(1, {top}))",
            [f"{n} // {p}", f"{n} // {p} ** 2", f"sum({n} // {p} ** k for k in range(1, {top})) + 1"],
        )
    if level == 4:
        (m,) = pick(rng, (10, n - 10))
        return problem(
            f"How many zeros are there at the end of {n}! / {m}!?",
            min(multiplicity(q, sympy.factorial(n) / sympy.factorial(m)) for q in (2, 5)),
            f"sum({n} // 5 ** k - {m} // 5 ** k for k in range(1, 5))",
            [f"{n} // 5 - {m} // 5", f"({n} - {m}) // 5", f"sum({n} // 5 ** k for k in range(1, 5))"],
        )
    base = choose(rng, 12, 6, 15, 20, 24)
    exponents = sympy.factorint(base)
    per_prime = ", ".join(
        f"sum({n} // {p} ** k for k in range(1, 10))" + (f" // {e}" if e > 1 else "") for p, e in exponents.items()
    )
    return problem(
        f"How many zeros are there at the end of {n}! when it is written in base {base}?",
        multiplicity(base, sympy.factorial(n)),
        f"min({per_prime})",
        [f"{n} // {base}", f"sum({n} // {base} ** k for k in range(1, 5))", f"max({per_prime})"],
    )


def _coprime_count(rng: np.random.Generator, level: int) -> Problem | None:
    (n,) = pick(rng, [(6, 99), (100, 400), (100, 400), (30, 200), (30, 200)][level - 1])
    coprime = f"math.gcd(k, {n}) == 1"
    if level <= 2:
        return problem(
            f"How many of the integers from 1 to {n} are relatively prime to {n}?",
            sympy.totient(n),
            f"sum(1 for k in range(1, {n + 1}) if {coprime})",
            [
                f"sum(1 for k in range(2, {n}) if {coprime})",
                f"{n} - 1",
                f"sum(1 for k in range(1, {n}) if {n} % k)",
            ],
        )
    if level == 3:
        return problem(
            f"Find the sum of the integers from 1 to {n} that are relatively prime to {n}.",
            n * sympy.totient(n) / 2,
            f"sum(k for k in range(1, {n + 1}) if {coprime})",
            [
                f"sum(1 for k in range(1, {n + 1}) if {coprime})",
                f"sum(range(1, {n + 1}))",
                f"sum(k for k in range(2, {n}) if {coprime})",
            ],
        )
    if level == 4:
        (laps,) = pick(rng, (2, 9))
        return problem(
            f"How many of the integers from 1 to {laps * n} are relatively prime to {n}?",
            laps * sympy.totient(n),
            f"sum(1 for k in range(1, {laps * n + 1}) if {coprime})",
            [
                f"sum(1 for k in range(1, {n + 1}) if {coprime})",
                f"sum(1 for k in range(2, {laps * n}) if {coprime})",
                f"{laps * n} - {laps}",
            ],
        )
    g = choose(rng, *sympy.divisors(n)[1:-1] or [1])
    if g == 1:
        return None
    return problem(
        f"For how many integers k from 1 to {n} is the greatest common divisor of k and {n} equal to {g}?",
        sympy.totient(n // g),
        f"sum(1 for k in range(1, {n + 1}) if math.gcd(k, {n}) == {g})",
        [
            f"sum(1 for k in range(1, {n + 1}) if k % {g} == 0)",
            f"sum(1 for k in range(1, {n + 1}) if {coprime})",
            f"{n} // {g} - 1",
        ],
    )


def _number_bases(rng: np.random.Generator, level: int) -> Problem | None:
    if level <= 3:
        length, bases = [(3, (2, 3, 4)), (4, (3, 4, 5, 6)), (6, (6, 7, 8, 9))][level - 1]
        base = choose(rng, *bases)
        written = [pick(rng, (1, base - 1))[0], *pick(rng, *[(0, base - 1)] * (length - 1))]
        text = "".join(map(str, written))
        terms = [f"{d} * {base} ** {length - 1 - i}" for i, d in enumerate(written)]
        return problem(
            f"Write the base-{base} number {text} in base ten.",
            int(text, base),
            " + ".join(terms),
            [
                " + ".join(f"{d} * {base} ** {i}" for i, d in enumerate(written)),
                f"{text} // {base}",
                f"{text} * {base}",
                " + ".join(f"{d} * {base} ** {length - i}" for i, d in enumerate(written)),
            ],
        )
    base, n = choose(rng, 2, 3, 5, 7), pick(rng, (1000, 99_999))[0]
    places = len(digits(n, base)) - 1
    if level == 4:
        return problem(
            f"Find the sum of the digits of {n} when it is written in base {base}.",
            sum(digits(n, base)[1:]),
            f"sum({n} // {base} ** k % {base} for k in range({places}))",
            [
                f"sum(int(c) for c in str({n}))",
                f"sum({n} // {base} ** k % {base} for k in range({places - 1}))",
                f"{places}",
            ],
        )
    digit = pick(rng, (0, base - 1))[0]
    return problem(
        f"How many times does the digit {digit} occur when {n} is written in base {base}?",
        digits(n, base)[1:].count(digit),
        f"sum(1 for k in range({places}) if {n} // {base} ** k % {base} == {digit})",
        [
            f"sum(1 for c in str({n}) if c == '{digit}')",
            f"{places} - sum(1 for k in range({places}) if {n} // {base} ** k % {base} == {digit})",
            f"{places}",
        ],
    )


def _congruence(rng: np.random.Generator, level: int) -> Problem | None:
    m = pick(rng, [(5, 40), (40, 150), (100, 400), (100, 400), (100, 300)][level - 1])[0]
    a, r = pick(rng, (2, m - 1), (1, m - 1))
    if level <= 3:
        if math.gcd(a, m) > 1:
            return None
        return problem(
            f"Find the smallest positive integer x such that {a}x leaves the remainder {r} when divided by {m}.",
            sympy.mod_inverse(a, m) * r % m,
            f"min(x for x in range(1, {m}) if {a} * x % {m} == {r})",
            [
                f"{a} * {r} % {m}",
                f"({r} - {a}) % {m}",
                f"min(x for x in range(1, {m}) if {a} * x % {m} == 1)",
            ],
        )
    if level == 4:
        g = math.gcd(a, m)
        if g == 1:
            return None
        r = g * pick(rng, (1, m // g - 1))[0]
        solutions = f"sum(1 for x in range({m}) if {a} * x % {m} == {r})"
        return problem(
            f"How many integers x with 0 <= x < {m} are there such that {a}x leaves the remainder {r} when "
            "divided "
            f"by {m}?",
            sympy.igcd(a, m),
            solutions,
            [
                f"{m} // math.gcd({a}, {m})",
                f"min(x for x in range({m}) if {a} * x % {m} == {r})",
                f"{solutions} - 1",
            ],
        )
    roots = sympy.sqrt_mod(r, m, all_roots=True)
    if not roots:
        return None
    return problem(
        f"Find the sum of all integers x with 0 <= x < {m} such that x^2 leaves the remainder {r} when divided by {m}.",
        sum(roots),
        f"sum(x for x in range({m}) if x ** 2 % {m} == {r})",
        [
            f"sum(1 for x in range({m}) if x ** 2 % {m} == {r})",
            f"min(x for x in range({m}) if x ** 2 % {m} == {r})",
            f"{m}",
        ],
    )


def _amounts(a: int, b: int, top: int) -> list[bool]:
    """Tell for each amount up to `top` whether stamps worth `a` and `b` can make it."""
    made = [True] + [False] * top
    for value in range(1, top + 1):
        made[value] = (value >= a and made[value - a]) or (value >= b and made[value - b])
    return made


def _stamps(rng: np.random.Generator, level: int) -> Problem | None:
    high = [20, 60, 40, 25, 40][level - 1]
    a, b = sorted(pick(rng, (3, high), (3, high)))
    if math.gcd(a, b) > 1:
        return None
    missing = [value for value, made in enumerate(_amounts(a, b, a * b)) if not made]
    start = f"Stamps are worth {a} cents and {b} cents, and any number of each may be used."
    largest = f"{a} * {b} - {a} - {b}"
    if level <= 2:
        return problem(
            f"{start} Find the largest amount in cents that cannot be made.",
            missing[-1],
            largest,
            [f"{a} * {b}", f"{largest} + 1", f"({a} - 1) * ({b} - 1) // 2", f"{a} + {b}"],
        )
    if level == 3:
        return problem(
            f"{start} How many positive amounts in cents cannot be made?",
            len(missing),
            f"({a} - 1) * ({b} - 1) // 2",
            [largest, f"({a} - 1) * ({b} - 1)", f"{a} * {b} // 2"],
        )
    if level == 4:
        return problem(
            f"{start} Find the sum of the positive amounts in cents that cannot be made.",
            sum(missing),
            f"({a} - 1) * ({b} - 1) * (2 * {a} * {b} - {a} - {b} - 1) // 12",
            [f"({a} - 1) * ({b} - 1) // 2", f"sum(range(1, {largest} + 1))", largest],
        )
    (n,) = pick(rng, (a * b, 2000))
    ways = f"sum(1 for x in range({n // a + 1}) if ({n} - {a} * x) % {b} == 0)"
    return problem(
        f"{start} In how many ways can {n} cents be made, if only the number of stamps of each kind counts?",
        sum(1 for y in range(n // b + 1) if (n - b * y) % a == 0),
        ways,
        [f"{n} // {a} + {n} // {b}", f"{ways} + 1", f"{n} // {a}", f"{ways} - 1"],
    )


NUMBER_THEORY = (
    family("remainders", "number_theory", "Chinese remainders.", _remainders),
    family("trailing_zeros", "number_theory", "Prime powers in factorials.", _trailing_zeros),
    family("coprime_count", "number_theory", "Counting and adding coprime integers.", _coprime_count),
    family("number_bases", "number_theory", "Numbers written in other bases.", _number_bases),
    family("congruence", "number_theory", "Linear and quadratic congruences.", _congruence),
    family("stamps", "number_theory", "Amounts that two kinds of stamps make.", _stamps),
)
