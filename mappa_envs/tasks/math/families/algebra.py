"""Families of algebra."""

from __future__ import annotations

import numpy as np
import sympy
from sympy import Matrix, Poly, Rational, Symbol, binomial

from mappa_envs.tasks.math.families.base import Problem
from mappa_envs.tasks.math.families.build import choose, family, pick, problem

_X = Symbol("x")


def polynomial_text(coefficients: list[int], variable: str = "x") -> str:
    """Write a polynomial, highest power first, e.g. `2x^2 - x + 7`."""
    degree = len(coefficients) - 1
    text = ""
    for index, c in enumerate(coefficients):
        power = degree - index
        if c == 0:
            continue
        number = "" if abs(c) == 1 and power else str(abs(c))
        letter = "" if power == 0 else variable if power == 1 else f"{variable}^{power}"
        sign = ("-" if c < 0 else "") if not text else (" - " if c < 0 else " + ")
        text += f"{sign}{number}{letter}"
    return text or "0"


def _signed(text: str, c: int) -> str:
    return f"{text} - {-c}" if c < 0 else f"{text} + {c}"


def _horner(coefficients: list[int], at: str) -> str:
    text = str(coefficients[0])
    for c in coefficients[1:]:
        text = _signed(f"({text}) * {at}" if " " in text else f"{text} * {at}", c)
    return text


def _linear_system(rng: np.random.Generator, level: int) -> Problem | None:
    """Two equations; whole solutions up to level 3, fractions above."""
    high = [5, 12, 30, 12, 40][level - 1]
    low = -high if level >= 3 else 1
    a, b, c, d = pick(rng, *[(1, high), (low, high), (1, high), (low, high)])
    x, y = pick(rng, *[(1, [9, 20, 50, 1, 1][level - 1])] * 2)
    e, f = (a * x + b * y, c * x + d * y) if level <= 3 else tuple(pick(rng, (1, 99), (1, 99)))
    if a * d - b * c == 0 or 0 in (b, d):
        return None
    solution = Matrix([[a, b], [c, d]]).LUsolve(Matrix([e, f]))
    first, second = (f"{_linear_text(p, q)} = {r}" for p, q, r in ((a, b, e), (c, d, f)))
    determinant = f"({a} * {d} - {b} * {c})"
    numerator_x, numerator_y = f"({e} * {d} - {b} * {f})", f"({a} * {f} - {e} * {c})"
    if level in (1, 2, 4):
        return problem(
            f"If {first} and {second}, find x + y.",
            solution[0] + solution[1],
            f"({numerator_x} + {numerator_y}) / {determinant}",
            [
                f"({numerator_x} - {numerator_y}) / {determinant}",
                f"{numerator_x} / {determinant}",
                f"({e} + {f}) / ({a} + {c})",
            ],
        )
    return problem(
        f"If {first} and {second}, find xy.",
        solution[0] * solution[1],
        f"{numerator_x} * {numerator_y} / {determinant} ** 2",
        [
            f"{numerator_x} * {numerator_y} / {determinant}",
            f"({numerator_x} + {numerator_y}) / {determinant}",
            f"-{numerator_x} * {numerator_y} / {determinant} ** 2",
        ],
    )


def _linear_text(a: int, b: int) -> str:
    left = polynomial_text([a, 0])
    return f"{left} {'-' if b < 0 else '+'} {polynomial_text([abs(b), 0], 'y')}"


def _polynomial_remainder(rng: np.random.Generator, level: int) -> Problem | None:
    degree, size, points = [(2, 9, 4), (3, 9, 6), (4, 20, 6), (5, 20, 8), (6, 12, 5)][level - 1]
    coefficients = [pick(rng, (1, size))[0], *pick(rng, *[(-size, size)] * degree)]
    at = pick(rng, (1, points))[0] * (1 if level <= 2 else choose(rng, 1, -1))
    value = f"({at})" if at < 0 else str(at)
    poly = Poly(coefficients, _X)
    if level <= 3:
        return problem(
            f"Find the remainder when {polynomial_text(coefficients)} is divided by {polynomial_text([1, -at])}.",
            poly.rem(Poly(_X - at, _X)).as_expr(),
            _horner(coefficients, value),
            [
                _horner(coefficients, str(-at) if at < 0 else f"({-at})"),
                str(coefficients[-1]),
                _horner(coefficients, "1"),
            ],
        )
    other = pick(rng, (1, points))[0] * choose(rng, 1, -1)
    if other in (at, -at):
        return None
    slope = poly.rem(Poly((_X - at) * (_X - other), _X)).coeff_monomial(_X)
    other_value = f"({other})" if other < 0 else str(other)
    rise = f"({_horner(coefficients, value)} - ({_horner(coefficients, other_value)}))"
    return problem(
        f"When {polynomial_text(coefficients)} is divided by "
        f"{polynomial_text([1, -at - other, at * other])}, the remainder is ux + v. Find u.",
        slope,
        f"{rise} // ({at - other})",
        [f"{rise} // ({at + other})", rise, _horner(coefficients, value)],
    )


def _binomial_term(rng: np.random.Generator, level: int) -> Problem | None:
    a, b, n = pick(
        rng,
        *[
            ((1, 3), (1, 4), (3, 6)),
            ((1, 5), (2, 6), (4, 8)),
            ((2, 5), (-6, 6), (6, 10)),
            ((1, 4), (-5, 5), (5, 9)),
            ((1, 3), (-4, 4), (4, 8)),
        ][level - 1],
    )
    k = pick(rng, (1, n - 1))[0]
    if b == 0:
        return None
    bb = f"({b})" if b < 0 else str(b)
    inner = polynomial_text([a, b])
    term = f"math.comb({n}, {k}) * {a} ** {k} * {bb} ** {n - k}"
    if level <= 3:
        return problem(
            f"Find the coefficient of x^{k} in the expansion of ({inner})^{n}."
            if k > 1
            else f"Find the coefficient of x in the expansion of ({inner})^{n}.",
            Poly((a * _X + b) ** n, _X).coeff_monomial(_X**k),
            term,
            [
                f"math.comb({n}, {k})",
                f"math.comb({n}, {k}) * {a} * {bb} ** {n - k}",
                f"math.comb({n}, {k}) * {a} ** {n - k} * {bb} ** {k}",
                f"{a} ** {k} * {bb} ** {n - k}",
            ],
        )
    c = pick(rng, (2, 9))[0]
    if level == 4:
        previous = f"math.comb({n}, {k - 1}) * {a} ** {k - 1} * {bb} ** {n - k + 1}"
        return problem(
            f"Find the coefficient of x^{k} in the expansion of (x + {c})({inner})^{n}."
            if k > 1
            else f"Find the coefficient of x in the expansion of (x + {c})({inner})^{n}.",
            Poly((_X + c) * (a * _X + b) ** n, _X).coeff_monomial(_X**k),
            f"{c} * {term} + {previous}",
            [term, f"{c} * {term}", f"{term} + {previous}"],
        )
    m = pick(rng, (2, 6))[0]
    convolution = (
        f"sum(math.comb({m}, i) * {c} ** ({m} - i) * math.comb({n}, {k} - i) * {a} ** ({k} - i) "
        f"* {bb} ** ({n - k} + i) for i in range({min(k, m) + 1}))"
    )
    return problem(
        f"Find the coefficient of x^{k} in the expansion of (x + {c})^{m} ({inner})^{n}."
        if k > 1
        else f"Find the coefficient of x in the expansion of (x + {c})^{m} ({inner})^{n}.",
        Poly((_X + c) ** m * (a * _X + b) ** n, _X).coeff_monomial(_X**k),
        convolution,
        [term, f"{c} ** {m} * {term}", f"math.comb({m + n}, {k})"],
    )


def _logarithm(rng: np.random.Generator, level: int) -> Problem | None:
    base = choose(rng, 2, 3, 5, 7, 11, 6, 10)
    p, q = pick(rng, (1, 4), (1, 7))
    low, high = base**p, base**q
    bound = [1000, 10_000, 10**6, 10**6, 10**6][level - 1]
    if p == q or max(low, high) > bound:
        return None
    # How often the base divides the number is its logarithm.
    top, bottom = (f"sum(1 for k in range(1, 22) if {n} % {base} ** k == 0)" for n in (high, low))
    exact = sympy.log(high, low) if q % p == 0 else Rational(q, p)
    if level <= 2:
        return problem(
            f"Find the logarithm of {high} to the base {low}.",
            sympy.simplify(exact),
            f"{top} / {bottom}",
            [f"{bottom} / {top}", f"{high} / {low}", f"{top} - {bottom}", top],
        )
    r, s = pick(rng, (1, 4), (1, 7))
    if r == s or base**r > bound or base**s > bound:
        return None
    one, two = (f"sum(1 for k in range(1, 22) if {base**n} % {base} ** k == 0)" for n in (s, r))
    if level == 3:
        return problem(
            f"Find the sum of the logarithm of {high} to the base {low} and the logarithm of {base**s} to "
            "the base "
            f"{base**r}.",
            Rational(q, p) + Rational(s, r),
            f"{top} / {bottom} + {one} / {two}",
            [f"({top} + {one}) / ({bottom} + {two})", f"{bottom} / {top} + {two} / {one}", f"{top} + {one}"],
        )
    if level == 4:
        return problem(
            f"Find x if {low}^x = {high} * {base**s}.",
            Rational(q + s, p),
            f"({top} + {one}) / {bottom}",
            [f"{top} * {one} / {bottom}", f"{bottom} / ({top} + {one})", f"{top} / {bottom}"],
        )
    return (
        problem(
            f"Find x if {low}^x = {high} * {base**r}^x.",
            Rational(q, p - r) if p != r else Rational(0),
            f"{top} / ({bottom} - {two})" if p != r else "0",
            [f"{top} / ({bottom} + {two})", f"({top} + {two}) / {bottom}", f"{top} / {bottom}"],
        )
        if p != r
        else None
    )


def _cubic_roots(rng: np.random.Generator, level: int) -> Problem | None:
    size = [6, 20, 12, 20, 12][level - 1]
    a, b, c = pick(rng, *([(1, size)] * 3 if level <= 2 else [(-size, size)] * 3))
    if 0 in (a, b, c):
        return None
    start = f"Let r, s and t be the roots of {polynomial_text([1, -a, b, -c])} = 0."
    companion = Matrix([[a, -b, c], [1, 0, 0], [0, 1, 0]])
    aa, bb, cc = (f"({n})" if n < 0 else str(n) for n in (a, b, c))
    squares = f"{aa} ** 2 - 2 * {bb}"
    if level <= 2:
        return problem(
            f"{start} Find r^2 + s^2 + t^2.",
            (companion**2).trace(),
            squares,
            [f"{aa} ** 2", f"{aa} ** 2 - {bb}", f"{aa} ** 2 + 2 * {bb}"],
        )
    if level == 3:
        return problem(
            f"{start} Find 1/r + 1/s + 1/t.",
            companion.inv().trace(),
            f"{bb} / {cc}",
            [f"{aa} / {cc}", f"{cc} / {bb}", f"-{bb} / {cc}"],
        )
    if level == 4:
        return problem(
            f"{start} Find r^3 + s^3 + t^3.",
            (companion**3).trace(),
            f"{aa} ** 3 - 3 * {aa} * {bb} + 3 * {cc}",
            [f"{aa} ** 3", f"{aa} ** 3 - 3 * {aa} * {bb}", f"{aa} ** 3 + 3 * {cc}"],
        )
    k = choose(rng, 1, 2, 3, -1, -2)
    shifted = f"1/(r {'-' if k < 0 else '+'} {abs(k)})"
    at = sympy.eye(3) * k + companion
    if at.det() == 0:
        return None
    value = f"({k}) ** 3 + {aa} * ({k}) ** 2 + {bb} * ({k}) + {cc}"
    return problem(
        f"{start} Find {shifted} + {shifted.replace('r', 's')} + {shifted.replace('r', 't')}.",
        at.inv().trace(),
        f"(3 * ({k}) ** 2 + 2 * {aa} * ({k}) + {bb}) / ({value})",
        [f"{bb} / ({value})", f"{bb} / {cc}", f"({value}) / {bb}"],
    )


def _shared_work(rng: np.random.Generator, level: int) -> Problem | None:
    high = [20, 60, 60, 40, 40][level - 1]
    a, b, c = pick(rng, *[(2, high)] * 3)
    if len({a, b, c}) < 3:
        return None
    unit = "hours"
    if level <= 2:
        return problem(
            f"One pipe fills a tank in {a} {unit} and another in {b} {unit}. In how many {unit} do they "
            "fill it "
            "together?",
            1 / (Rational(1, a) + Rational(1, b)),
            f"{a} * {b} / ({a} + {b})",
            [f"({a} + {b}) / 2", f"({a} + {b}) / ({a} * {b})", f"min({a}, {b}) / 2"],
        )
    if level == 3:
        if Rational(1, a) <= Rational(1, b):
            return None
        return problem(
            f"A pipe fills a tank in {a} {unit} and a drain empties it in {b} {unit}. In how many {unit} "
            "does the "
            "tank fill with both open?",
            1 / (Rational(1, a) - Rational(1, b)),
            f"{a} * {b} / ({b} - {a})",
            [f"{a} * {b} / ({a} + {b})", f"{b} - {a}", f"({b} - {a}) / ({a} * {b})"],
        )
    if level == 4:
        return problem(
            f"Three pipes fill a tank in {a}, {b} and {c} {unit}. In how many {unit} do they fill it together?",
            1 / (Rational(1, a) + Rational(1, b) + Rational(1, c)),
            f"{a} * {b} * {c} / ({a} * {b} + {b} * {c} + {a} * {c})",
            [f"({a} + {b} + {c}) / 3", f"{a} * {b} * {c} / ({a} + {b} + {c})", f"{a} * {b} / ({a} + {b})"],
        )
    alone = pick(rng, (1, a - 1))[0]
    return problem(
        f"One pipe fills a tank in {a} {unit} and another in {b} {unit}. The first runs alone for {alone} "
        f"{'hour' if alone == 1 else unit}, then both run. How many {unit} after the first was opened is "
        "the tank "
        "full?",
        alone + (1 - Rational(alone, a)) / (Rational(1, a) + Rational(1, b)),
        f"{alone} + ({a} - {alone}) * {b} / ({a} + {b})",
        [
            f"({a} - {alone}) * {b} / ({a} + {b})",
            f"{alone} + {a} * {b} / ({a} + {b})",
            f"{a} * {b} / ({a} + {b})",
        ],
    )


def _absolute_values(rng: np.random.Generator, level: int) -> Problem | None:
    high = [20, 99, 40, 60, 60][level - 1]
    a, b, c = pick(rng, (1, high), (1, high), (2, high))
    if level <= 2:
        return problem(
            f"How many integers x satisfy |x - {a}| <= {c}?",
            len(range(a - c, a + c + 1)),
            f"2 * {c} + 1",
            [f"2 * {c}", f"{c} + 1", f"{a} + {c}", f"2 * {c} - 1"],
        )
    if a >= b or b - a >= c:
        return None
    window = f"range({a - c}, {b + c + 1})"
    total = f"abs(x - {a}) + abs(x - {b}) <= {c}"
    size = 2 * ((c - (b - a)) // 2) + b - a + 1
    if level == 3:
        return problem(
            f"How many integers x satisfy |x - {a}| + |x - {b}| <= {c}?",
            size,
            f"sum(1 for x in {window} if {total})",
            [f"2 * {c} + 1", f"{b} - {a} + 1", f"sum(1 for x in {window} if {total}) - 1"],
        )
    if level == 4:
        middle = Rational(a + b, 2)
        return problem(
            f"Find the sum of all integers x that satisfy |x - {a}| + |x - {b}| <= {c}.",
            size * middle,
            f"sum(x for x in {window} if {total})",
            [f"sum(1 for x in {window} if {total})", f"sum(x for x in range({a}, {b + 1}))", f"{a} + {b}"],
        )
    if c > 16 or c % 2 == 0:
        return None
    pairs = f"range({-c}, {c + 1})"
    return problem(
        f"How many pairs (x, y) of integers satisfy |x - {a}| + |y - {b}| <= {c}?",
        4 * binomial(c + 1, 2) + 1,
        f"sum(1 for x in {pairs} for y in {pairs} if abs(x) + abs(y) <= {c})",
        [f"(2 * {c} + 1) ** 2", f"2 * {c} ** 2 + 2 * {c}", f"4 * {c} + 1"],
    )


ALGEBRA = (
    family("linear_system", "algebra", "Two linear equations in two unknowns.", _linear_system),
    family("polynomial_remainder", "algebra", "Remainders of polynomials.", _polynomial_remainder),
    family("binomial_term", "algebra", "Coefficients in powers of binomials.", _binomial_term),
    family("logarithm", "algebra", "Logarithms and exponential equations.", _logarithm),
    family("cubic_roots", "algebra", "Symmetric functions of a cubic's roots.", _cubic_roots),
    family("shared_work", "algebra", "Pipes that fill a tank together.", _shared_work),
    family("absolute_values", "algebra", "Integers with bounded absolute values.", _absolute_values),
)
