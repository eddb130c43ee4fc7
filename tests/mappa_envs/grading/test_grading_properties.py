from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mappa_envs.grading.answers import grade_sync, parse_gold, warm_up

INTEGERS = st.integers(-(10**12), 10**12)
SPELLINGS: list[Callable[[int], str]] = [
    str,
    lambda n: f"{n:,}",
    lambda n: f"{n:,}".replace(",", "{,}"),
    lambda n: f"{n:,}".replace(",", "\\,"),
    lambda n: f"{n}.0",
    lambda n: f"{n}.",
    lambda n: f"{'-' if n < 0 else ''}00{abs(n)}",
    lambda n: str(n).replace("-", "\u2212"),
    lambda n: f"\\frac{{{3 * n}}}{{3}}",
    lambda n: f"{2 * n}/2",
    lambda n: f"x = {n}",
    lambda n: f"({n})",
    lambda n: f"\\left({n}\\right)",
    lambda n: f"\\mathbf{{{n}}}",
    lambda n: f"{n - 1} + 1",
    lambda n: f"\\text{{(C) }}{n}",
    lambda n: f"\u200b{n}\u00a0",
]
WITH_UNITS: list[Callable[[int], str]] = [
    lambda n: f"{n}^\\circ",
    lambda n: f"{n}\\text{{ cm}}",
    lambda n: f"{n} square feet",
    lambda n: f"\\${n}",
    lambda n: f"{n} apples",
]


@pytest.fixture(scope="module", autouse=True)
def _workers() -> None:
    warm_up()


def _verdict(answer: str, gold: str) -> str:
    return grade_sync(f"Thus $\\boxed{{{answer}}}$.", gold).verdict


@given(INTEGERS, st.sampled_from(SPELLINGS), st.sampled_from([*SPELLINGS, *WITH_UNITS]))
def test_an_integer_equals_itself_in_every_spelling(
    n: int, one: Callable[[int], str], other: Callable[[int], str]
) -> None:
    assert _verdict(one(n), other(n)) == "correct"
    assert _verdict(other(n), one(n)) == "correct"


@given(INTEGERS, st.sampled_from([-1, 1, 10, -1000]), st.sampled_from(SPELLINGS), st.sampled_from(WITH_UNITS))
def test_an_integer_differs_from_its_neighbours_in_every_spelling(
    n: int, step: int, one: Callable[[int], str], other: Callable[[int], str]
) -> None:
    assert _verdict(one(n), other(n + step)) == "incorrect"
    assert _verdict(other(n), one(n + step)) == "incorrect"
    assert _verdict(one(n), one(n + step)) == "incorrect"


@given(st.integers(1, 10**6), st.integers(2, 10**6), st.booleans())
def test_a_fraction_equals_itself_in_every_spelling(top: int, bottom: int, negative: bool) -> None:
    value = Fraction(top, bottom)
    assume(value.denominator > 1)
    sign = "-" if negative else ""
    gold = f"{sign}\\frac{{{value.numerator}}}{{{value.denominator}}}"
    whole, rest = divmod(value, 1)
    spellings = [
        f"{sign}{top}/{bottom}",
        f"{sign}\\dfrac{{{top}}}{{{bottom}}}",
        f"\\frac{{{sign}{top}}}{{{bottom}}}",
        f"{sign}({top}/{bottom})",
        f"y={sign}\\frac{{{7 * top}}}{{{7 * bottom}}}",
    ]
    if whole:
        spellings.append(f"{sign}{whole}\\frac{{{rest.numerator}}}{{{rest.denominator}}}")
        spellings.append(f"{sign}{whole} {rest.numerator}/{rest.denominator}")
    for spelling in spellings:
        assert _verdict(spelling, gold) == "correct", spelling
        assert _verdict(gold, spelling) == "correct", spelling
    near = f"{sign}\\frac{{{value.numerator + 1}}}{{{value.denominator}}}"
    for spelling in spellings:
        assert _verdict(spelling, near) == "incorrect", spelling


@given(st.integers(1, 999), st.integers(2, 999), st.integers(6, 15))
def test_a_decimal_of_a_fraction_counts_from_six_right_figures(top: int, bottom: int, figures: int) -> None:
    value = Fraction(top, bottom)
    assume(value.denominator > 1 and 10**figures % value.denominator)
    places = figures + len(str(bottom))
    digits = f"{float(round(value, places)):.{places}f}"
    assume(len(digits.replace(".", "").lstrip("0")) <= 15)
    gold = f"\\frac{{{top}}}{{{bottom}}}"
    assert _verdict(digits, gold) == "correct"
    wrong = digits[:-1] + str((int(digits[-1]) + 5) % 10)
    assert _verdict(wrong, gold) == "incorrect"


@given(st.lists(st.integers(-99, 99), min_size=2, max_size=6, unique=True))
def test_sets_and_bare_lists_ignore_order_and_tuples_do_not(items: list[int]) -> None:
    turned = items[1:] + items[:1]
    joined, other = ", ".join(map(str, items)), ", ".join(map(str, turned))
    assert _verdict(f"\\{{{other}\\}}", f"\\{{{joined}\\}}") == "correct"
    assert _verdict(other, joined) == "correct"
    assert _verdict(f"({other})", f"({joined})") == "incorrect"
    assert _verdict(f"({joined})", f"({joined})") == "correct"
    assert _verdict(", ".join(map(str, items[1:])), joined) == "incorrect"
    assert _verdict(f"{joined}, 1000", joined) == "incorrect"


@settings(max_examples=15, deadline=None)
@given(st.integers(-9, 9), st.integers(-9, 9), st.sampled_from("xyt"))
def test_a_product_of_factors_equals_its_expansion(a: int, b: int, name: str) -> None:
    factors = f"({name} - {a})({name} - {b})".replace("- -", "+ ")
    expansion = f"{name}^2 - {a + b}{name} + {a * b}".replace("- -", "+ ").replace("+ -", "- ")
    assert _verdict(factors, expansion) == "correct"
    assert _verdict(factors + " + 1", expansion) == "incorrect"


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 30), st.integers(1, 20), st.integers(1, 20))
def test_surds_are_compared_by_value(n: int, a: int, b: int) -> None:
    assert _verdict(f"\\sqrt{{{n * b * b}}} + {a}", f"{a} + {b}\\sqrt{{{n}}}") == "correct"
    assert _verdict(f"\\sqrt{{{n * b * b + 1}}} + {a}", f"{a} + {b}\\sqrt{{{n}}}") == "incorrect"


LATEX = st.lists(
    st.sampled_from(
        [
            *list("0123456789xyzei+-*/^_=<>!|,;:.()[]{} &%'$@"),
            *["\\frac", "\\sqrt", "\\text{", "\\{", "\\}", "\\\\", "\\pi", "\\infty", "\\cup", "\\pm", "\\le", "^{"],
            *["\\left", "\\right", "\\begin{pmatrix}", "\\end{pmatrix}", "\\circ", "\\boxed{", " and ", " or ", " cm"],
            *["\\sum_{", "\\int_", "\\binom", "\\sin", "\\log_", "\\overline{", "\\cdot", "\\approx", "10^", "99!"],
        ]
    ),
    max_size=14,
).map("".join)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(LATEX, st.sampled_from(["5", "\\frac{1}{2}", "(1,2)", "\\{1,2\\}", "x=5", "Evelyn", "D", "28\\%"]))
def test_any_latex_gets_a_verdict_within_the_deadline(text: str, gold: str) -> None:
    start = time.monotonic()
    found = grade_sync(f"\\boxed{{{text}}}", gold)
    assert found.verdict in ("correct", "incorrect", "undecided")
    assert found.reason
    # 1 s of algebra at most; the rest is room for the start of a worker on a busy machine.
    assert time.monotonic() - start < 20


@given(st.text(max_size=200))
def test_any_text_gets_a_verdict(text: str) -> None:
    assert grade_sync(text, "12345").verdict in ("correct", "incorrect", "undecided")


@given(st.one_of(INTEGERS.map(str), st.from_regex(r"\d{1,3}\.\d{1,4}", fullmatch=True)))
def test_what_a_problem_set_writes_is_a_readable_gold_that_equals_itself(text: str) -> None:
    golds = parse_gold(text)
    assert grade_sync(f"\\boxed{{{text}}}", golds).verdict == "correct"
