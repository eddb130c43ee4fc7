from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from mappa_envs.errors import TaskError
from mappa_envs.grading.answers import AIME_POLICY, Gold, Grade, grade, grade_sync, parse_gold, warm_up
from mappa_envs.grading.policy import GradingPolicy

CASES_FILE = Path(__file__).parents[2] / "fixtures" / "math_grading.jsonl"


def _cases() -> list[dict[str, Any]]:
    cases = []
    for line in CASES_FILE.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if repeat := case.get("repeat"):
            text = case["prediction"].replace("<<R2>>", repeat.get("token2", "") * repeat["count"])
            case["prediction"] = text.replace("<<R>>", repeat["token"] * repeat["count"])
        cases.append(case)
    return cases


CASES = _cases()


@pytest.fixture(scope="module", autouse=True)
def _workers() -> None:
    warm_up()


def _box(answer: str, gold: str | tuple[str, ...], **policy: Any) -> Grade:
    return grade_sync(f"So \\boxed{{{answer}}}.", gold, policy=GradingPolicy(**policy))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_labelled_case_is_graded_as_labelled(case: dict[str, Any]) -> None:
    found = grade_sync(case["prediction"], case["gold"])
    assert found.verdict == ("correct" if case["expected"] else "incorrect"), found.reason


def test_no_labelled_case_takes_longer_than_the_deadline_allows() -> None:
    grade_sync("\\boxed{\\sqrt{2}}", "\\sqrt{8}")  # a worker is ready after this
    for case in CASES:
        start = time.monotonic()
        grade_sync(case["prediction"], case["gold"])
        # The algebra's hard deadline is 1 s; the rest is room for a busy machine.
        assert time.monotonic() - start < 4.0, case["id"]


EQUAL = [
    ("28\\%", "0.28"),
    ("0.28", "28\\%"),
    ("50", "50\\%"),
    ("D", "(D)"),
    ("D", "\\textbf{(D)}"),
    ("D", "D. 7"),
    ("7", "\\text{(D) }7"),
    ("\\text{(D) }7", "7"),
    ("\\text{(D) }7", "D"),
    ("\\frac{1}{3}", "0.333333"),
    ("\\frac{2}{3}", "0.666667"),
    ("3.14", "\\pi"),
    ("\\pi", "3.14159265"),
    ("2\\sqrt{2}", "\\sqrt{8}"),
    ("\\frac{\\sqrt{2}}{2}", "\\frac{1}{\\sqrt{2}}"),
    ("x^2+2x+1", "(x+1)^2"),
    ("\\sin^2 x + \\cos^2 x", "1"),
    ("3", "\\log_2 8"),
    ("e^{i\\pi}", "-1"),
    ("\\sqrt{-4}", "2i"),
    ("(1,2)", "1,2"),
    ("1,2", "2 \\text{ and } 1"),
    ("x=1, x=2", "1, 2"),
    ("x=1 \\text{ or } x=2", "2,1"),
    ("\\pm 2", "-2, 2"),
    ("x=\\pm\\sqrt{3}", "\\sqrt{3}, -\\sqrt{3}"),
    ("\\{\\sqrt{2}, \\sqrt{3}\\}", "\\{\\sqrt{3},\\sqrt{2}\\}"),
    ("(-\\infty,-1)\\cup(1,\\infty)", "x<-1 \\text{ or } x>1"),
    ("[0,1]", "0\\le x\\le 1"),
    ("-1<x<3", "3>x>-1"),
    ("y=2x+3", "2x - y + 3 = 0"),
    ("f(x)=x^2", "x^2"),
    ("Evelyn", "\\text{evelyn}"),
    ("9:05", "09:05"),
    ("3:4", "3/4"),
    ("35 cm", "35 \\text{ centimeters}"),
    ("64\\text{ ft}^2", "64 square feet"),
    ("5", "5 apples"),
    ("5\\pi", "5\\pi \\text{ cm}^2"),
    ("1234567", "1 234 567"),
    ("-\\frac{1}{2}", "\\frac{1}{-2}"),
    ("-2\\frac{1}{2}", "-2.5"),
    ("2^{100}", "1267650600228229401496703205376"),
    ("\\binom{10}{3}", "C(10,3)"),
    ("0.\\overline{3}", "\\frac13"),
    ("\\begin{pmatrix}\\sqrt2\\\\2\\end{pmatrix}", "\\begin{bmatrix}\\sqrt{2}\\\\2\\end{bmatrix}"),
    ("\\mathbb{R}", "(-\\infty,\\infty)"),
    ("\\tan 45^\\circ", "1"),
    ("5", "\\text{The answer is }5"),
    ("10^{10^{10}}", "10^{10^{10}}"),
    ("7", "7 \\quad"),
    ("7", "\\mathbf{7}"),
    ("7", "\uff17"),
    ("7/2", "3\u00bd"),
    ("x^2", "x\u00b2"),
    ("(x,y)=(2,-3)", "(2,-3)"),
    ("(2,-3)", "x=2, y=-3"),
    ("33", "33 \\pmod{1000}"),
    ("3 \\pmod 7", "x \\equiv 3 \\pmod{7}"),
    ("(3,\\infty)", "\\{x : x > 3\\}"),
    ("\\{x \\in \\mathbb{R} \\mid x>3\\}", "x>3"),
    ("\\emptyset", "\\varnothing"),
    ("\\frac{n(n+1)}{2}", "\\binom{n+1}{2}"),
    ("12 \\text{ ways}", "\\text{12 ways}"),
    ("33", "m+n=33"),
    ("1.2 \\times 10^3", "1,200"),
]

DIFFERENT = [
    ("28\\%", "2.8"),
    ("B", "b"),
    ("\\text{(D) }7", "\\text{(C) }7"),
    ("\\text{(D) }7", "8"),
    ("\\text{(D) }7", "\\text{(D) }8"),
    ("A", "\\text{(A) or (B)}"),
    ("\\frac{1}{3}", "0.33"),
    ("\\frac{2}{3}", "0.6666668"),
    ("0.5", "0.52"),
    ("\\pi", "3.14"),
    ("x^2+2x+1", "(x+1)^2+1"),
    ("x^2", "y^2"),
    ("1+2i", "1-2i"),
    ("\\pm 2", "2"),
    ("[0,1]", "0 \\leq x < 1"),
    ("(1,2)", "\\{1,2\\}"),
    ("y=2x+3", "y=2x-3"),
    ("x^2+y^2=4", "x^2+y^2=2"),
    ("x=5", "y=5"),
    ("\\text{Yes}", "No"),
    ("35 cm", "35 m"),
    ("5", "5x"),
    ("1234", "1.234"),
    ("12", "12.0000001"),
    ("2^{100}", "1267650600228229401496703205377"),
    ("10^{100}", "10^{100}+1"),
    ("-2\\frac12", "-1.5"),
    ("5", "\\infty"),
    ("\\infty", "5"),
    ("-\\infty", "\\infty"),
    ("\\sqrt{x^2}", "x"),
    ("3,5,7", "3,5"),
    ("(0,0),(1,1)", "(0,0)"),
    ("\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{pmatrix}1&2\\end{pmatrix}"),
    ("2m+3s", "2m+3"),
    ("5", "Evelyn"),
    ("5", "\\frac{0}{0}"),
    ("5", "\\frac{"),
    ("3 \\pmod 7", "3 \\pmod 8"),
    ("7", "7 \\text{ or } 8"),
    ("x+y=3", "x+y=4"),
    ("12", "twelve"),
]


@pytest.mark.parametrize(("gold", "answer"), EQUAL)
def test_the_same_answer_in_other_clothes_is_correct(gold: str, answer: str) -> None:
    found = _box(answer, gold)
    assert found.verdict == "correct", found.reason


@pytest.mark.parametrize(("gold", "answer"), DIFFERENT)
def test_a_near_miss_is_incorrect(gold: str, answer: str) -> None:
    found = _box(answer, gold)
    assert found.verdict == "incorrect", found.reason


@pytest.mark.parametrize("text", ["", "   ", "<answer></answer>", "\\boxed{}", "\\boxed{ }", "\\boxed{\\text{}}"])
@pytest.mark.parametrize("gold", ["1", "21", "x", "yes"])
def test_an_empty_answer_is_never_correct(text: str, gold: str) -> None:
    assert grade_sync(text, gold).verdict == "incorrect"


def test_part_of_the_accepted_answer_earns_nothing() -> None:
    assert _box("21", "1").verdict == "incorrect"
    assert _box("1", "21").verdict == "incorrect"


def test_one_of_several_accepted_answers_is_enough() -> None:
    assert _box("81", ("080", "081")).verdict == "correct"
    assert _box("82", ("080", "081")).verdict == "incorrect"


def test_an_undecided_comparison_is_neither_right_nor_wrong() -> None:
    found = _box("10^{10^{11}}", "10^{10^{10}}")
    assert found.verdict == "undecided"
    assert found.reason


def test_an_accepted_answer_that_cannot_be_read_is_undecided_when_it_gets_this_far() -> None:
    assert _box("5", "\\frac{").verdict == "undecided"
    assert _box("5", ()).verdict == "undecided"


def test_asyncio_and_sync_agree_and_the_loop_stays_free() -> None:
    async def run() -> tuple[list[Grade], int]:
        ticks = 0
        done = asyncio.Event()

        async def tick() -> None:
            nonlocal ticks
            while not done.is_set():
                ticks += 1
                await asyncio.sleep(0.01)

        ticker = asyncio.create_task(tick())
        texts = ["\\boxed{\\sqrt{8}}", "\\boxed{2\\sqrt{2}}", "\\boxed{2}", "\\boxed{\\sqrt{7}}"] * 5
        found = await asyncio.gather(*(grade(text, "\\sqrt{8}") for text in texts))
        done.set()
        await ticker
        return list(found), ticks

    found, ticks = asyncio.run(run())
    assert [item.verdict for item in found] == ["correct", "correct", "incorrect", "incorrect"] * 5
    assert ticks > 1


# Policy


def test_policy_box_only() -> None:
    assert grade_sync("The answer is 5.", "5").verdict == "correct"
    assert grade_sync("The answer is 5.", "5", policy=GradingPolicy(require_box=True)).verdict == "incorrect"


def test_policy_rounding() -> None:
    assert _box("\\frac{100}{3}", "33.3").verdict == "correct"
    assert _box("\\frac{100}{3}", "33.3", rounding="exact").verdict == "incorrect"
    assert _box("33.4", "33.3").verdict == "incorrect"


@pytest.mark.parametrize(
    ("policy", "number", "fraction"),
    [("either", "correct", "correct"), ("number", "correct", "incorrect"), ("fraction", "incorrect", "correct")],
)
def test_policy_percent(policy: str, number: str, fraction: str) -> None:
    assert _box("28", "28\\%", percent=policy).verdict == number
    assert _box("0.28", "28\\%", percent=policy).verdict == fraction


def test_policy_units() -> None:
    assert _box("35", "35 cm").verdict == "correct"
    assert _box("35", "35 cm", units="match").verdict == "incorrect"
    assert _box("35 cm", "35 cm", units="match").verdict == "correct"


def test_policy_choice_letters_off_makes_letters_symbols() -> None:
    assert _box("D. 7", "D").verdict == "correct"
    assert _box("D. 7", "D", choice_letters="").verdict == "incorrect"
    assert _box("D", "D", choice_letters="").verdict == "correct"


def test_policy_integer_range() -> None:
    for text, verdict in [("033", "correct"), ("33.0", "correct"), ("1033", "incorrect"), ("33.5", "incorrect")]:
        assert grade_sync(f"\\boxed{{{text}}}", "33", policy=AIME_POLICY).verdict == verdict
    assert "999" in grade_sync("\\boxed{1033}", "33", policy=AIME_POLICY).reason


@pytest.mark.parametrize("nonsense", ["\\frac{x}", "5 @ 3", "\\unknowncommand{3}"])
def test_policy_unparsable(nonsense: str) -> None:
    assert _box(nonsense, "\\sqrt{2}").verdict == "incorrect"
    assert _box(nonsense, "\\sqrt{2}", unparsable="undecided").verdict == "undecided"


def test_policy_refuses_unknown_options_and_empty_ranges() -> None:
    with pytest.raises(ValidationError):
        GradingPolicy(tolerance=0.1)  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match="low <= high"):
        GradingPolicy(integer_range=(9, 0))


# Accepted answers


@pytest.mark.parametrize(
    "text",
    [
        *["033", "142.0", "-4.0", "336^\\circ", "\\frac{1}{2}", "(1,2)", "[2,5)", "\\{1,2\\}", "D", "x=5"],
        "2x+4y-3=0",
        *["Evelyn", "12:00", "28\\%", "\\begin{pmatrix}1\\\\2\\end{pmatrix}", "x<3", "\\boxed{7}", "\\sqrt{2}+x"],
    ],
)
def test_accepted_answers_are_read_when_loaded(text: str) -> None:
    (gold,) = parse_gold(text)
    assert isinstance(gold, Gold)
    assert grade_sync(f"\\boxed{{{text}}}", [gold]).verdict == "correct"


def test_several_accepted_answers_in_one_text_are_separate() -> None:
    golds = parse_gold("080 or 081 (both were accepted)")
    assert [gold.text for gold in golds] == ["080", "081"]


@pytest.mark.parametrize(
    "text",
    ["", "  ", "nan", "None", "?", "\\frac{1}{", "(1,2", "\\frac{}{}{}", "1" * 5000, "\\gcd(4,6)", "(1, \\frac{x})"],
)
def test_an_unreadable_accepted_answer_is_an_error_at_load(text: str) -> None:
    with pytest.raises(TaskError, match="cannot be read"):
        parse_gold(text)


def test_an_accepted_answer_outside_the_integer_range_is_an_error_at_load() -> None:
    assert parse_gold("080", AIME_POLICY)
    for text in ("1000", "1/2", "-1"):
        with pytest.raises(TaskError):
            parse_gold(text, AIME_POLICY)


def test_an_accepted_answer_that_is_no_text_is_an_error() -> None:
    with pytest.raises(TaskError, match="must be text"):
        parse_gold(33)  # type: ignore[arg-type]
