"""Families of probability; most answers are fractions."""

from __future__ import annotations

import itertools

import numpy as np
import sympy
from sympy import Rational, binomial

from mappa_envs.tasks.math.families.base import Problem
from mappa_envs.tasks.math.families.build import choose, family, pick, problem


def _sums(*sides: int) -> list[int]:
    return [sum(faces) for faces in itertools.product(*(range(1, s + 1) for s in sides))]


def _dice_sum(rng: np.random.Generator, level: int) -> Problem | None:
    s = choose(rng, *[(4, 5, 6, 8, 9), (6, 8, 10, 12, 20), (4, 5, 6, 7, 8), (6, 8, 10, 12), (4, 6, 8)][level - 1])
    if level <= 2:
        (t,) = pick(rng, (2, 2 * s))
        count = f"sum(1 for a in range(1, {s + 1}) for b in range(1, {s + 1}) if a + b == {t})"
        return problem(
            f"Two fair dice with faces 1 to {s} are rolled. What is the probability that the sum is {t}?",
            Rational(_sums(s, s).count(t), s**2),
            f"{count} / {s} ** 2",
            [f"{count} / {2 * s - 1}", f"1 / {2 * s - 1}", f"{count} / {2 * s}", f"1 / {s} ** 2"],
        )
    if level == 3:
        (t,) = pick(rng, (3, 3 * s))
        count = (
            f"sum(1 for a in range(1, {s + 1}) for b in range(1, {s + 1}) for c in range(1, {s + 1}) "
            f"if a + b + c == {t})"
        )
        return problem(
            f"Three fair dice with faces 1 to {s} are rolled. What is the probability that the sum is {t}?",
            Rational(_sums(s, s, s).count(t), s**3),
            f"{count} / {s} ** 3",
            [f"1 / {3 * s - 2}", f"{count} / {s} ** 2", f"{count} / {3 * s - 2}"],
        )
    if level == 4:
        r, (t,) = choose(rng, 4, 6, 8, 10), pick(rng, (5, s + 4))
        count = f"sum(1 for a in range(1, {s + 1}) for b in range(1, {r + 1}) if a + b >= {t})"
        sums = _sums(s, r)
        return problem(
            f"A fair die with faces 1 to {s} and a fair die with faces 1 to {r} are rolled. What is the "
            "probability "
            f"that the sum is at least {t}?",
            Rational(sum(1 for total in sums if total >= t), len(sums)),
            f"{count} / ({s} * {r})",
            [
                f"1 - {count} / ({s} * {r})",
                f"({s + r} - {t} + 1) / {s + r - 1}",
                f"sum(1 for a in range(1, {s + 1}) for b in range(1, {r + 1}) if a + b > {t}) / ({s} * {r})",
            ],
        )
    m, (n,) = choose(rng, 2, 3, 4, 5, 7), pick(rng, (2, 3))
    dice = "Two" if n == 2 else "Three"
    names = "ab" if n == 2 else "abc"
    loops = " ".join(f"for {x} in range(1, {s + 1})" for x in names)
    (r,) = pick(rng, (0, m - 1))
    count = f"sum(1 {loops} if ({' + '.join(names)}) % {m} == {r})"
    total = _sums(*[s] * n)
    return problem(
        f"{dice} fair dice with faces 1 to {s} are rolled. What is the probability that the sum leaves the "
        "remainder "
        f"{r} when divided by {m}?",
        Rational(sum(1 for value in total if value % m == r), len(total)),
        f"{count} / {s} ** {n}",
        [f"1 / {m}", f"{count} / {n * s - n + 1}", f"1 / {s}", f"1 - {count} / {s} ** {n}"],
    )


def _urn(rng: np.random.Generator, level: int) -> Problem | None:
    high = [8, 20, 12, 12, 8][level - 1]
    red, blue, green = pick(rng, *[(2, high)] * 3)
    drawn = 2 if level <= 2 else pick(rng, (3, 5))[0]
    total = red + blue
    start = f"An urn holds {red} red and {blue} blue balls, and {drawn} are drawn without putting any back."
    if level <= 2:
        return problem(
            f"{start} What is the probability that both are red?",
            Rational(red, total) * Rational(red - 1, total - 1),
            f"math.comb({red}, 2) / math.comb({total}, 2)",
            [
                f"({red} / {total}) ** 2",
                f"{red} / {total}",
                f"math.comb({red}, 2) / {total} ** 2",
                f"{red} * {red - 1} / {total} ** 2",
            ],
        )
    if drawn >= min(red, blue):
        return None
    everything = f"math.comb({total}, {drawn})"
    if level == 3:
        (j,) = pick(rng, (1, drawn - 1))
        return problem(
            f"{start} What is the probability that exactly {j} of them {'is' if j == 1 else 'are'} red?",
            binomial(red, j) * binomial(blue, drawn - j) / binomial(total, drawn),
            f"math.comb({red}, {j}) * math.comb({blue}, {drawn - j}) / {everything}",
            [
                f"math.comb({drawn}, {j}) * {red} ** {j} * {blue} ** {drawn - j} / {total} ** {drawn}",
                f"math.comb({red}, {j}) / {everything}",
                f"{red} / {total}",
            ],
        )
    if level == 4:
        none = sympy.prod([Rational(blue - i, total - i) for i in range(drawn)])
        return problem(
            f"{start} What is the probability that at least one of them is red?",
            1 - none,
            f"1 - math.comb({blue}, {drawn}) / {everything}",
            [
                f"math.comb({blue}, {drawn}) / {everything}",
                f"1 - ({blue} / {total}) ** {drawn}",
                f"{red} * math.comb({blue}, {drawn - 1}) / {everything}",
            ],
        )
    total += green
    same = sum(sympy.prod([Rational(n - i, total - i) for i in range(3)]) for n in (red, blue, green))
    parts = " + ".join(f"math.comb({n}, 3)" for n in (red, blue, green))
    return problem(
        f"An urn holds {red} red, {blue} blue and {green} green balls, and 3 are drawn without putting any "
        "back. What "
        "is the probability that all three have the same colour?",
        same,
        f"({parts}) / math.comb({total}, 3)",
        [
            f"({red} ** 3 + {blue} ** 3 + {green} ** 3) / {total} ** 3",
            f"{red} * {blue} * {green} / math.comb({total}, 3)",
            f"1 - ({parts}) / math.comb({total}, 3)",
        ],
    )


def _coin_flips(rng: np.random.Generator, level: int) -> Problem | None:
    (n,) = pick(rng, [(3, 12), (8, 20), (3, 7), (4, 12), (3, 6)][level - 1])
    (k,) = pick(rng, (1, n - 1))
    heads = f"{k} {'head' if k == 1 else 'heads'}"
    if level <= 2:
        return problem(
            f"A fair coin is tossed {n} times. What is the probability of exactly {heads}?",
            binomial(n, k) / sympy.Integer(2) ** n,
            f"math.comb({n}, {k}) / 2 ** {n}",
            [f"{k} / {n}", f"1 / 2 ** {n}", f"1 / {n + 1}", f"math.perm({n}, {k}) / 2 ** {n}"],
        )
    if level == 4:
        return problem(
            f"A fair coin is tossed {n} times. What is the probability of at least {heads}?",
            1 - sum(binomial(n, i) for i in range(k)) / sympy.Integer(2) ** n,
            f"sum(math.comb({n}, i) for i in range({k}, {n + 1})) / 2 ** {n}",
            [
                f"math.comb({n}, {k}) / 2 ** {n}",
                f"sum(math.comb({n}, i) for i in range({k + 1}, {n + 1})) / 2 ** {n}",
                f"{n - k + 1} / {n + 1}",
            ],
        )
    q = choose(rng, 3, 4, 5, 6)
    (p,) = pick(rng, (1, q - 1))
    chance = Rational(p, q)
    start = f"A coin shows heads with probability {p}/{q}."
    if 2 * p == q:
        return None
    if level == 3:
        return problem(
            f"{start} It is tossed {n} times. What is the probability of exactly {heads}?",
            binomial(n, k) * chance**k * (1 - chance) ** (n - k),
            f"math.comb({n}, {k}) * {p} ** {k} * {q - p} ** {n - k} / {q} ** {n}",
            [
                f"{p} ** {k} * {q - p} ** {n - k} / {q} ** {n}",
                f"math.comb({n}, {k}) / 2 ** {n}",
                f"math.comb({n}, {k}) * {p} ** {n - k} * {q - p} ** {k} / {q} ** {n}",
            ],
        )
    # Summing the powers of the difference of the two chances leaves the even terms.
    return problem(
        f"{start} It is tossed {n} times. What is the probability of an even number of heads?",
        (1 + (1 - 2 * chance) ** n) / 2,
        f"sum(math.comb({n}, i) * {p} ** i * {q - p} ** ({n} - i) for i in range(0, {n + 1}, 2)) / {q} ** {n}",
        [
            "1 / 2",
            f"sum(math.comb({n}, i) * {p} ** i * {q - p} ** ({n} - i) for i in range(1, {n + 1}, 2)) / {q} ** {n}",
            f"sum(math.comb({n}, i) * {p} ** i * {q - p} ** ({n} - i) for i in range(2, {n + 1}, 2)) / {q} ** {n}",
        ],
    )


def _taking_turns(rng: np.random.Generator, level: int) -> Problem | None:
    (s,) = pick(rng, [(4, 20), (10, 60), (4, 20), (4, 16), (4, 20)][level - 1])
    (w,) = pick(rng, (1, s - 1))
    p, miss = Rational(w, s), f"(1 - {w} / {s})"
    goal = "a 1" if w == 1 else f"at most {w}"
    start = f"fair die with faces 1 to {s}, and whoever first rolls {goal} wins."
    if level <= 2:
        return problem(
            f"Ann and Bob take turns rolling a {start} Ann begins. What is the probability that Ann wins?",
            p / (1 - (1 - p) ** 2),
            f"{s} / (2 * {s} - {w})",
            ["1 / 2", f"{w} / {s}", f"1 - {s} / (2 * {s} - {w})", f"{w} / (2 * {s} - {w})"],
        )
    if level == 3:
        return problem(
            f"Ann, Bob and Cleo take turns, in this order, rolling a {start} What is the probability that Bob wins?",
            p * (1 - p) / (1 - (1 - p) ** 3),
            f"{miss} / (1 + {miss} + {miss} ** 2)",
            ["1 / 3", f"1 / (1 + {miss} + {miss} ** 2)", f"{w} / {s} * {miss}"],
        )
    if level == 4:
        (v,) = pick(rng, (1, s - 1))
        q = Rational(v, s)
        if v == w:
            return None
        return problem(
            f"Ann and Bob take turns rolling a fair die with faces 1 to {s}. Ann wins when she rolls at "
            f"most {w}, Bob "
            f"when he rolls at most {v}. Ann begins. What is the probability that Ann wins?",
            p / (p + q - p * q),
            f"{w} * {s} / ({s} ** 2 - {s - w} * {s - v})",
            [f"{w} / ({w} + {v})", f"{w} / {s}", f"1 - {w} * {s} / ({s} ** 2 - {s - w} * {s - v})"],
        )
    (n,) = pick(rng, (2, 4))
    return problem(
        f"A fair die with faces 1 to {s} is rolled until it shows {goal}. What is the probability that "
        "this takes "
        f"more than {n} rolls?",
        1 - sum(p * (1 - p) ** i for i in range(n)),
        f"{miss} ** {n}",
        [f"1 - {miss} ** {n}", f"{miss} ** {n - 1}", f"{miss} ** {n} * {w} / {s}"],
    )


def _expected_value(rng: np.random.Generator, level: int) -> Problem | None:
    (s,) = pick(rng, [(4, 50), (4, 30), (4, 15), (5, 30), (4, 10)][level - 1])
    a, b = pick(rng, (2, 9), (1, 20))
    faces = f"range(1, {s + 1})"
    if level == 1:
        return problem(
            f"A fair die with faces 1 to {s} is rolled. A player gets {a} points per pip and {b} more. "
            "What is the "
            "expected number of points?",
            a * Rational(s + 1, 2) + b,
            f"sum({a} * k + {b} for k in {faces}) / {s}",
            [f"sum({a} * k for k in {faces}) / {s}", f"{a} * {s} / 2 + {b}", f"{a} * {s} + {b}"],
        )
    if level == 2:
        return problem(
            f"Two fair dice with faces 1 to {s} are rolled. What is the expected value of the larger "
            "number shown "
            "(of either, if they are equal)?",
            Rational(sum(max(x, y) for x in range(1, s + 1) for y in range(1, s + 1)), s**2),
            f"sum(k * (2 * k - 1) for k in {faces}) / {s} ** 2",
            [
                f"({s} + 1) / 2",
                f"sum(k * (2 * ({s} - k) + 1) for k in {faces}) / {s} ** 2",
                f"({s} + 1) * 2 / 3",
            ],
        )
    if level == 3:
        r = pick(rng, (3, 15))[0]
        if r == s:
            return None
        return problem(
            f"A fair die with faces 1 to {s} and a fair die with faces 1 to {r} are rolled. What is the "
            "expected value "
            "of the product of the two numbers?",
            Rational(sum(x * y for x in range(1, s + 1) for y in range(1, r + 1)), s * r),
            f"({s} + 1) * ({r} + 1) / 4",
            [f"{s} * {r} / 4", f"({s} + 1) / 2 + ({r} + 1) / 2", f"({s} * {r} + 1) / 2"],
        )
    if level == 4:
        red = pick(rng, (2, s - 1))[0]
        # With the red balls as dividers, every gap is as long as any other on average.
        waits = [(k, binomial(s - k, red - 1) / binomial(s, red)) for k in range(1, s - red + 2)]
        return problem(
            f"From an urn with {s} balls, {red} of them red, balls are drawn without putting any back "
            "until a red one "
            "appears. What is the expected number of draws?",
            sum(k * chance for k, chance in waits),
            f"({s} + 1) / ({red} + 1)",
            [f"{s} / {red}", f"({s} - {red}) / ({red} + 1)", f"{s} / ({red} + 1)"],
        )
    kinds = " + ".join(f"{s} / {k}" for k in range(1, s + 1))
    (goal,) = pick(rng, (2, s))
    seen = sum(Rational(s, s - k) for k in range(goal))
    return problem(
        f"A fair die with faces 1 to {s} is rolled until {goal} different faces have shown. What is the "
        "expected "
        "number of rolls?",
        seen,
        f"sum({s} / k for k in range({s - goal + 1}, {s + 1}))",
        [kinds if goal < s else f"{s} * {s}", str(goal), f"sum({s} / k for k in range(1, {goal + 1}))"],
    )


PROBABILITY = (
    family("dice_sum", "probability", "Sums of dice.", _dice_sum),
    family("urn", "probability", "Draws without putting back.", _urn),
    family("coin_flips", "probability", "Numbers of heads.", _coin_flips),
    family("taking_turns", "probability", "Games that go on until somebody wins.", _taking_turns),
    family("expected_value", "probability", "Expected values of dice and draws.", _expected_value),
)
