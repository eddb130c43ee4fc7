from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from math_cases import (
    RIGHT_CODE,
    RIGHT_PLAN,
    WRONG_CODE,
    WRONG_PLAN,
    answer_score,
    code_score,
    coder,
    fenced,
    judge,
    ran,
    score,
    turn,
)

from mappa_envs.judges.math_rules import plan_value
from mappa_envs.judges.math_rules.rules import RULES, tables

BRACKET = r"\boxed{%s}"


def rises(scores: list[float]) -> bool:
    return all(lower < higher for lower, higher in pairwise(scores))


def test_a_solvers_ladder_rises_from_nothing_to_a_right_plan() -> None:
    ladder = [
        "",
        "Compute: add(2, 3)",
        "Compute: 42",
        "Compute: 6 * 6",
        WRONG_PLAN,
        "20 + 22 = 41, so\nCompute: 20 + 22",
        "20 + 22 = 42, so\nCompute: 20 + 22",
    ]
    scores = [score("solve", action) for action in ladder]
    assert rises(scores), scores
    assert scores[0] == 0 and scores[-1] == 10
    assert max(scores[:-2]) < 5 < 9 < min(scores[-2:])


def test_a_coders_ladder_rises_from_nothing_to_right_code() -> None:
    plan = (turn("solver", RIGHT_PLAN),)
    scores = [
        score("compute", "It is 42.", ran("", "nothing was run", "missing"), earlier=plan),
        code_score("print(20 +", "SyntaxError", "error"),
        code_score("print(twenty + 22)", "NameError", "error"),
        code_score("total = 20 + 22", "(no output)"),
        code_score("print(42)", "42"),
        code_score("print(20 + 21)", "41"),
        code_score(RIGHT_CODE, "42"),
    ]
    assert rises(scores), scores
    assert scores[0] == 0 and scores[-1] == 10
    assert max(scores[:-1]) <= 4


def test_a_verifiers_ladder_rises_from_nothing_to_a_right_answer() -> None:
    scores = [
        answer_score("The answer is 42."),
        answer_score(r"\boxed{41} or \boxed{42}"),
        answer_score(r"\boxed{41}"),
        answer_score(r"\boxed{42}. Once more: \boxed{42}"),
        answer_score(r"It fits: \boxed{42}"),
    ]
    assert rises(scores), scores
    assert scores[0] == 0 and scores[-1] == 10
    assert max(scores[:3]) <= 3


@pytest.mark.parametrize(
    ("action", "points"),
    [
        (RIGHT_PLAN, 10),
        ("Compute: `20 + 22`", 10),
        ("**Compute:** 20 + 22", 10),
        ("Compute: 1\nCompute: 20 + 22", 10),
        (WRONG_PLAN, 10 * 4 / 9),
        ("Compute: 6 * 7", 10 * 8 / 9),
        ("Compute: add(20, 22)", 10 * 2 / 9),
        ("The sum of 20 and 22 is 42.", 0),
        ("20 + 22 = 42", 0),
        ("", 0),
        ("<think>Compute: 20 + 22</think>I do not know.", 0),
        ("<think>Compute: 20 * 22</think>Compute: 20 + 22", 10),
        ("20 + 22 = 42\nCompute: 42", 10),
        ("20 + 22 = 43\nCompute: 20 + 22", 10 * 9 / 9.5),
        ("The answer is 41.\nCompute: 20 + 22", 10 * 9 / 9.5),
        ("The answer is 42.\nCompute: 20 + 22", 10),
    ],
)
def test_a_solver_is_scored_by_its_plan(action: str, points: float) -> None:
    assert score("solve", action) == pytest.approx(points)


def test_a_coder_is_not_blamed_for_the_solvers_fault() -> None:
    faithful = code_score(WRONG_CODE, "440", plan=WRONG_PLAN)
    careless = code_score("print(20 * 22 + 1)", "441", plan=WRONG_PLAN)
    repaired = code_score(RIGHT_CODE, "42", plan=WRONG_PLAN)
    assert careless < faithful == 5
    assert repaired == 10


def test_a_coder_who_drops_a_right_plan_is_told_so() -> None:
    def reason(code: str, output: str, plan: str) -> str:
        return judge("compute", fenced(code), ran(code, output), earlier=(turn("solver", plan),)).reason

    assert "(dropped a right plan)" in reason(WRONG_CODE, "440", RIGHT_PLAN)
    assert "+5 the value is the answer (repaired a wrong plan)" in reason(RIGHT_CODE, "42", WRONG_PLAN)
    assert "(repeated a wrong result)" in reason(WRONG_CODE, "440", WRONG_PLAN)


@pytest.mark.parametrize(
    ("action", "output", "points", "note"),
    [
        (r"\boxed{42}", "42", 10, ""),
        (r"\boxed{42}", "41", 10, "repaired a wrong result"),
        (r"\boxed{41}", "41", 10 * 3 / 8, "repeated a wrong result"),
        (r"\boxed{41}", "42", 3, "dropped a right result"),
        ("The answer is 42.", "42", 0, "dropped a right result"),
        (r"\boxed{41} or rather \boxed{42}", "42", 2, "several different boxed answers"),
        (r"\boxed{42}. As a decimal it is \boxed{42.0}", "42", 9, ""),
        (r"\boxed{42} \boxed{", "42", 0, ""),
        (r"\boxed{}", "42", 0, ""),
        (r"\boxed{  }", "42", 0, ""),
        (r"<think>\boxed{41}</think>\boxed{42}", "42", 10, ""),
        ("", "42", 0, ""),
    ],
)
def test_a_verifier_is_scored_by_its_answer(action: str, output: str, points: float, note: str) -> None:
    verdict = judge("answer", action, earlier=(coder(RIGHT_CODE, output),))
    assert verdict.score == pytest.approx(points)
    assert note in verdict.reason


def test_without_ground_truth_only_form_and_agreement_count() -> None:
    assert score("solve", WRONG_PLAN, truth=False) == 10
    assert code_score(WRONG_CODE, "440", plan=WRONG_PLAN, truth=False) == 10
    assert code_score("print(441 + 20 - 20)", "441", plan=WRONG_PLAN, truth=False) == 6
    assert answer_score(BRACKET % 440, "440", truth=False) == 10
    assert answer_score(BRACKET % 1, "440", truth=False) == 6


def test_guards_hold_without_ground_truth() -> None:
    assert score("solve", "Compute: 440", truth=False) == 5
    assert code_score("print(440)", "440", plan=WRONG_PLAN, truth=False) == 6
    assert answer_score(r"\boxed{1}, \boxed{440}", "440", truth=False) == 4


def test_a_result_of_several_colleagues_counts_where_they_agree() -> None:
    def debate(action: str, *others: str) -> str:
        turns = tuple(turn(f"debater{'ab'[i]}", other, saw="") for i, other in enumerate(others))
        return judge("answer", action, earlier=turns, truth=False, saw="\n".join(others)).reason

    assert "missed 2 kept" in debate(r"\boxed{41}", r"So \boxed{42}.", r"Hence \boxed{42}!")
    assert "+2 kept" in debate(r"\boxed{42}", r"So \boxed{42}.", "Compute: 42")
    assert "kept the result" not in debate(r"\boxed{41}", r"So \boxed{42}.", r"Hence \boxed{43}!")


def test_a_result_that_the_agent_did_not_see_does_not_bind_it() -> None:
    unseen = judge("answer", r"\boxed{41}", earlier=(turn("solver", RIGHT_PLAN),), truth=False)
    assert "kept the result" not in unseen.reason


def test_every_point_is_accounted_for() -> None:
    assert judge("solve", WRONG_PLAN).reason == (
        "+1 gave a Compute line; +1 its expression evaluates; +1 its value is worked out, not typed in; "
        "+1 it uses the problem's numbers; missed 5 its value is the answer; 4 of 9 points"
    )


def test_an_unknown_duty_is_a_failed_verdict() -> None:
    assert judge("sing", "la").status == "failed"


@pytest.mark.parametrize("plan", ["Compute: 9**9**9**9", "Compute: " + "(" * 5000, "Compute: __import__('os')"])
def test_a_hostile_plan_has_no_value(plan: str) -> None:
    assert plan_value(plan) is None


def test_prose_printed_by_the_code_is_no_reason_to_fail() -> None:
    prose = (coder(RIGHT_CODE, "the answer should be near forty-two"),)
    assert judge("answer", r"\boxed{42}", earlier=prose).score == 10


def test_half_of_each_dutys_points_are_for_being_right() -> None:
    for rules in RULES.values():
        right = [rule.points for rule in rules if rule.key == "right"]
        assert right == [5.0] and sum(rule.points for rule in rules) == 10


def test_the_documented_tables_are_those_of_the_code() -> None:
    text = (Path(__file__).parents[3] / "docs" / "math_judge.md").read_text(encoding="utf-8")
    begin, end = "<!-- tables: begin -->\n\n", "\n\n<!-- tables: end -->"
    assert text.partition(begin)[2].partition(end)[0] == tables()
