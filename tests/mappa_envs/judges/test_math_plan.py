from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mappa_envs.judges.math_rules.plan import MAX_EQUATIONS, read_plan
from mappa_envs.judges.math_rules.values import numbers_in, one_value, same_number, uses_numbers

PROBLEM = "Add 20 and 22, then halve the sum."


def equations(text: str) -> tuple[bool, ...]:
    return read_plan(text, PROBLEM).equations


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("So 20 + 22 = 42.", (True,)),
        ("So 20 + 22 = 43.", (False,)),
        ("(20 + 22) / 2 = 42 / 2 = 21", (True, True)),
        ("(20 + 22) / 2 = 42 / 2 = 22", (True, False)),
        ("- 20 + 22 = 42", (True,)),
        ("1. 20 + 22 = 42", (True,)),
        ("**20 + 22 = 42**", (True,)),
        (r"$20 \times 22 = 440$", (True,)),
        (r"\(\frac{20 + 22}{2} = 21\)", (True,)),
        (r"2^{10} = 1024, 2**10 == 1024", (True, True)),
        ("2 \u00d7 3 = 6, 6 \u00f7 3 = 2, 5 \u2212 3 = 1", (True, True, False)),
        ("22 / 7 = 3.14", (True,)),
        ("22 / 7 = 3.2", (True,)),
        ("22 / 7 = 3.16", (False,)),
        ("1 / 3 = 0.333...", (True,)),
        ("x = 20 + 22 = 42", (True,)),
        ("Compute: 20 + 22 = 43", ()),
    ],
)
def test_stated_equations_are_checked(text: str, held: tuple[bool, ...]) -> None:
    assert equations(text) == held


@pytest.mark.parametrize(
    "text",
    [
        "x = 5",
        "2x + 1 = 7",
        "x + 1 = 7",
        "f(2) + 1 = 5",
        "17 / 5 = 3 remainder 2",
        "17 + 5 = 2 mod 10",
        "17 + 5 = 2 (mod 10)",
        "half of 10 + 2 = 7",
        "gcd(12, 18) + 1 = 7",
        "5! + 1 = 121",
        "C(5, 2) + 1 = 11",
        "a_3 + 1 = 7",
        "10% + 5 = 12",
        "3 apples + 4 apples = 7 apples",
        "2 + 3 = 5x",
        "2 + 3 = 5,000",
        "1,000 + 1 = 1,001",
        "10 = 10",
        "2 + = 3",
        "(1 + 2 = 3",
        r"\log 2 + 1 = 5",
        "<think>1 + 1 = 3</think>",
        "9**9**9 = 1",
        "1 / 0 = 0",
    ],
)
def test_what_cannot_be_checked_is_not_held_against_a_plan(text: str) -> None:
    assert equations(text) == ()


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.sampled_from("+-*/"), st.integers(1, 99))
def test_true_sums_hold_and_false_ones_do_not(a: int, b: int, sign: str, off: int) -> None:
    exact = {"+": Fraction(a + b), "-": Fraction(a - b), "*": Fraction(a * b), "/": Fraction(a, b)}[sign]
    assert equations(f"We get {a} {sign} {b} = {exact}.") == (True,)
    assert equations(f"We get {a} {sign} {b} = {exact + off}.") == (False,)


def test_only_so_many_equations_are_checked() -> None:
    assert len(equations("1 + 1 = 2\n" * 1000)) == MAX_EQUATIONS


@pytest.mark.parametrize(
    ("text", "agrees"),
    [
        ("The answer is 42.\nCompute: 20 + 22", True),
        ("The answer is 41.\nCompute: 20 + 22", False),
        ("Hence the final value is 3.33.\nCompute: 10 / 3", True),
        ("The answer is 10/3.\nCompute: 10 / 3", True),
        ("The answer is 1,000.\nCompute: 10 ** 3", True),
        (r"\boxed{41}" + "\nCompute: 20 + 22", False),
        ("The answer is 20 + 22.\nCompute: 20 + 22", None),
        ("The answer is 3.14 * r.\nCompute: 20 + 22", None),
        ("The answer is x.\nCompute: 20 + 22", None),
        ("The answer is 42.", None),
    ],
)
def test_the_stated_answer_is_held_against_the_expression(text: str, agrees: bool | None) -> None:
    assert read_plan(text, PROBLEM).stated is agrees


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("Compute: 42", True),
        ("Compute: 42 + 0", True),
        ("Compute: int(42)", True),
        ("Compute: 42 * 20 // 20", True),
        ("Compute: 3/7", True),
        ("20 + 22 = 42\nCompute: 42", False),
        ("20 + 22 = 43\nCompute: 43", True),
        ("Compute: 20 + 22", False),
        ("Compute: 20/22", False),
        ("Compute: 21 * 2", False),
        ("Compute: nothing", False),
        ("", False),
    ],
)
def test_a_bare_value_without_work_is_typed_in(text: str, typed: bool) -> None:
    assert read_plan(text, PROBLEM).typed_in is typed


@pytest.mark.parametrize(
    "line",
    [
        "42",
        "-3.5",
        "3/7",
        "1 2/3",
        "2*sqrt(3)",
        "x = 5",
        "(1, 2)",
        "[1, 2, 3]",
        "{1, 2}",
        "35 cm",
        "D",
        "1e-05",
        r"\frac{1}{2}",
        "sqrt(2)/2 + pi",
        "x**2 - 1",
        "Monday",
        "True",
    ],
)
def test_one_value_is_told_from_prose(line: str) -> None:
    assert one_value(line)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "(no output)",
        "The answer is 42",
        "20 22",
        "score: 10",
        "Score 42",
        r"\boxed{42}",
        "[[42]]",
        "x: 42",
        "}{",
        "1" * 300,
        "---",
        "\x1b[31m42",
        "<b>42</b>",
        "the sum 42",
    ],
)
def test_prose_and_imitations_are_no_value(line: str) -> None:
    assert not one_value(line)


def test_numbers_are_read_with_separators_and_as_words() -> None:
    assert numbers_in("1,000 and 2.50 of 33 dice, x10") == {1000, Fraction(5, 2), 33, 10}
    assert numbers_in("three of Twelve", words=True) == {3, 12}
    assert numbers_in("9" * 100) == set()


def test_numbers_near_the_problems_count_as_used() -> None:
    points = numbers_in("from (5, 9) to (80, 79)")
    assert uses_numbers({Fraction(75)}, points) and uses_numbers({Fraction(81)}, points)
    assert not uses_numbers({Fraction(33)}, points) and not uses_numbers(set(), points)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("42", "42.0", True),
        ("1/3", "0.3333333333333333", True),
        ("1/3", "0.333", False),
        ("1e2", "100", True),
        ("x", "1", None),
        ("1/0", "1", None),
        ("1e9999999999", "1", None),
        ("0", "0.0", True),
    ],
)
def test_results_of_agents_are_compared_up_to_the_precision_of_floats(left: str, right: str, same: bool | None) -> None:
    assert same_number(left, right) is same
