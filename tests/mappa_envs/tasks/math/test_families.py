from __future__ import annotations

import random
import re
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import sympy

from mappa_envs.errors import TaskError
from mappa_envs.grading.answers import grade_sync
from mappa_envs.grading.expressions import evaluate
from mappa_envs.tasks.math.families import FAMILIES, MAX_LEVEL, STARTER_FAMILIES, Problem
from mappa_envs.tasks.math.families.build import _value, answer_text, family, problem

CELLS = [(name, level) for name in FAMILIES for level in range(1, MAX_LEVEL + 1)]
DRAWS = 40
EVALUATED = 2

# The wordings that a tiny model is trained on; a change here is a change of the training data.
STARTER_WORDINGS = {
    "modpow": r"Find the remainder when (\d+)\^(\d+) is divided by (\d+)\.",
    "gcd": r"Find the greatest common divisor of (\d+) and (\d+)\.",
    "lcm": r"Find the least common multiple of (\d+) and (\d+)\.",
    "divisors": r"How many positive divisors does (\d+) have\?",
    "arithmetic_series": r"An arithmetic sequence has first term (\d+) and common difference (\d+)\. "
    r"Find the sum of its first (\d+) terms\.",
    "committee": r"In how many ways can a committee of (\d+) people be chosen from (\d+) people\?",
    "root_squares": r"Let r and s be the roots of x\^2 - (\d+)x \+ (\d+) = 0\. Find r\^2 \+ s\^2\.",
    "lattice_paths": r"How many shortest paths along grid lines lead from \(0, 0\) to \((\d+), (\d+)\)\?",
    "stars_bars": r"How many solutions in non-negative integers does x \+ y \+ z = (\d+) have\?",
    "digit_sum": r"Find the sum of the digits of (\d+)\^(\d+)\.",
}


@cache
def draws(name: str, level: int, count: int = DRAWS) -> list[Problem]:
    return [FAMILIES[name].make(np.random.default_rng([level, i]), level) for i in range(count)]


def exact(answer: str) -> Fraction:
    found = re.fullmatch(r"(-?)\\frac\{(\d+)\}\{(\d+)\}", answer)
    return Fraction(int(found[1] + found[2]), int(found[3])) if found else Fraction(int(answer))


def test_there_are_at_least_25_families_over_six_topics() -> None:
    assert len(FAMILIES) >= 25
    assert len({f.topic for f in FAMILIES.values()}) == 6
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) and FAMILIES[name].name == name for name in FAMILIES)
    assert len(STARTER_FAMILIES) == 10 and set(STARTER_WORDINGS) == set(STARTER_FAMILIES)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_gives_the_same_problem_for_the_same_seed(name: str) -> None:
    for level in range(1, MAX_LEVEL + 1):
        again = [FAMILIES[name].make(np.random.default_rng([level, i]), level) for i in range(5)]
        assert again == draws(name, level)[:5]


@pytest.mark.parametrize(("name", "level"), CELLS)
def test_the_expression_gives_the_answer_and_no_mistake_does(name: str, level: int) -> None:
    for index, made in enumerate(draws(name, level)):
        answer = exact(made.answer)
        assert _value(made.expression) == answer, made
        assert len(made.mistakes) >= 2 and len(set(made.mistakes)) == len(made.mistakes)
        assert all(_value(mistake) != answer for mistake in made.mistakes), made
        assert max(abs(answer.numerator), answer.denominator) < 10**12
        assert answer_text_roundtrip(made.answer)
        if index < EVALUATED:
            # The language that agents and the rule judge use agrees, and stays exact.
            assert evaluate(made.expression) == answer
            assert not isinstance(evaluate(made.expression), float)
            assert all(evaluate(mistake) == _value(mistake) for mistake in made.mistakes)
            assert grade_sync(rf"\boxed{{{made.answer}}}", [made.answer]).verdict == "correct"
            assert grade_sync(rf"\boxed{{{answer_text(sympify(answer + 1))}}}", [made.answer]).verdict == "incorrect"


def sympify(value: Fraction) -> sympy.Rational:
    return sympy.Rational(value.numerator, value.denominator)


def answer_text_roundtrip(text: str) -> bool:
    value = exact(text)
    return answer_text(sympify(value)) == text


@pytest.mark.parametrize(("name", "level"), CELLS)
def test_problems_are_distinct_and_statements_are_clean(name: str, level: int) -> None:
    made = draws(name, level)
    prompts = {item.prompt for item in made}
    assert len(prompts) >= 20
    assert len({item.answer for item in made}) >= 4
    for prompt in prompts:
        assert prompt[-1] in ".?" and "  " not in prompt and prompt == prompt.strip()
        assert "{" not in prompt and "}" not in prompt and "+ -" not in prompt and "- -" not in prompt
        assert len(re.findall(r"\d", prompt)) >= 1 and len(prompt) < 400 and prompt.isascii()


@pytest.mark.parametrize("name", FAMILIES)
def test_the_statement_holds_the_numbers_that_decide_the_answer(name: str) -> None:
    # Two problems with the same statement must be the same problem.
    for level in range(1, MAX_LEVEL + 1):
        by_prompt: dict[str, str] = {}
        for made in draws(name, level):
            assert by_prompt.setdefault(made.prompt, made.answer) == made.answer


@pytest.mark.parametrize("name", STARTER_FAMILIES)
def test_starter_families_have_one_short_wording_and_small_numbers(name: str) -> None:
    for level, digits, answer_digits in ((1, 2, 4), (2, 3, 6)):
        for made in draws(name, level, 200):
            numbers = re.fullmatch(STARTER_WORDINGS[name], made.prompt)
            assert numbers, made.prompt
            assert all(len(number) <= digits for number in numbers.groups())
            assert re.fullmatch(rf"\d{{1,{answer_digits}}}", made.answer)
            # The literal numbers of the statement stand in the expression.
            assert all(re.search(rf"\b{number}\b", made.expression) for number in numbers.groups())
            for text in (made.expression, *made.mistakes):
                assert "  " not in text and not re.search(r",\S|\w[*+%/]|[*+%/]\w", text), text


@pytest.mark.parametrize(
    ("name", "prompt", "answer"),
    [
        ("gcd", "Find the greatest common divisor of 63 and 81.", "9"),
        ("divisors", "How many positive divisors does 48 have?", "10"),
        ("stars_bars", "How many solutions in non-negative integers does x + y + z = 47 have?", "1176"),
        (
            "shared_work",
            "One pipe fills a tank in 10 hours and another in 11 hours. In how many hours do they fill it together?",
            r"\frac{110}{21}",
        ),
    ],
)
def test_level_one_problems_with_answers_worked_out_by_hand(name: str, prompt: str, answer: str) -> None:
    found = {
        made.prompt: made.answer
        for made in (FAMILIES[name].make(np.random.default_rng([1, i]), 1) for i in range(1000))
    }
    assert found[prompt] == answer


def test_families_touch_no_global_generator() -> None:
    random.seed(1)
    np.random.seed(1)
    before = (random.getstate(), np.random.get_state()[1].tolist())  # type: ignore[index, union-attr]
    for name, level in CELLS:
        FAMILIES[name].make(np.random.default_rng(0), level)
    after = (random.getstate(), np.random.get_state()[1].tolist())  # type: ignore[index, union-attr]
    assert before == after


@pytest.mark.parametrize("level", [0, 6, -1])
def test_a_level_out_of_range_is_a_named_error(level: int) -> None:
    with pytest.raises(TaskError, match="no such level"):
        FAMILIES["gcd"].make(np.random.default_rng(0), level)


def test_mistakes_that_give_the_answer_are_dropped_and_two_must_remain() -> None:
    made = problem("What is 2 + 2?", 4, "2 + 2", ["2 * 2", "2 - 2", "2 // 2", "2 / 0", "2 - 2"])
    assert made is not None and made.mistakes == ("2 - 2", "2 // 2")
    assert problem("What is 2 + 2?", 4, "2 + 2", ["2 * 2", "2 - 2"]) is None
    assert problem("What is 10^12?", 10**12, "10 ** 12", ["1", "2"]) is None


def test_a_family_without_good_problems_says_so() -> None:
    barren = family("barren", "algebra", "Nothing.", lambda rng, level: None)
    with pytest.raises(TaskError, match=r"barren.*no good problem"):
        barren.make(np.random.default_rng(0), 1)
