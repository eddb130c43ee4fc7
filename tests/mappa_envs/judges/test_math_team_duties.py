"""The duties of teams other than the chain: `work`, `check`, `route`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from math_cases import RIGHT_CODE, RIGHT_PLAN, TASK, WRONG_CODE, coder, fenced, judge, ran, turn

from mappa_envs.judges.base import JudgeRequest
from mappa_envs.judges.math_rules import MathRules
from mappa_envs.transcript import Turn, Verdict

GOOD, BAD = coder(RIGHT_CODE, "42"), coder(WRONG_CODE, "440")
CRASHED = coder("print(x)", "NameError", "error")
BACK = "The program multiplies 20 and 22; it should add them."
CHOICES = {"solver": "solve", "coder": "compute", "verifier": "answer"}


def route(action: str, *earlier: Turn, truth: bool = True, choices: dict[str, str] = CHOICES, saw: str = "") -> Verdict:
    request = JudgeRequest(
        task_prompt=TASK.prompt,
        task_kind=TASK.kind,
        agent="hub_0",
        role="hub",
        duty="route",
        messages=({"role": "user", "content": saw},),
        action=action,
        tools=(),
        earlier=earlier,
        truth=TASK if truth else None,
        choices=choices,
    )
    (verdict,) = asyncio.run(MathRules().score([request]))
    return verdict


def test_work_is_scored_as_what_the_turn_does() -> None:
    tool = ran(RIGHT_CODE, "42")
    assert judge("work", fenced(RIGHT_CODE), tool) == judge("compute", fenced(RIGHT_CODE), tool)
    none = ran("", "nothing was run", "missing")
    assert judge("work", "\\boxed{42}", none, earlier=(GOOD,)) == judge("answer", "\\boxed{42}", none, earlier=(GOOD,))
    assert judge("work", "\\boxed{42}", none, earlier=(GOOD,)).score == 10
    assert judge("work", "I will think.", none).score == 0


def test_accepting_is_answering() -> None:
    for action in ("\\boxed{42}", "\\boxed{440}"):
        assert judge("check", action, earlier=(GOOD,)) == judge("answer", action, earlier=(GOOD,))
    assert judge("check", "\\boxed{42}", earlier=(GOOD,)).score == 10


def check(action: str, *earlier: Turn, truth: bool = True) -> Verdict:
    chat: Any = ({"role": "system", "content": "Check."}, {"role": "user", "content": f"{TASK.prompt} {WRONG_CODE}"})
    request = JudgeRequest(
        task_prompt=TASK.prompt,
        task_kind=TASK.kind,
        agent="verifier_0",
        role="verifier",
        duty="check",
        messages=chat,
        action=action,
        tools=(),
        earlier=earlier,
        truth=TASK if truth else None,
    )
    (verdict,) = asyncio.run(MathRules().score([request]))
    return verdict


@pytest.mark.parametrize(
    ("action", "earlier", "score"),
    [
        (BACK, (BAD,), 10),
        (BACK, (CRASHED,), 10),
        (BACK, (GOOD,), 5),
        ("It is wrong somehow.", (BAD,), 7),
        ("20!", (BAD,), 5),
        ("", (BAD,), 5),
        ("<think>\\boxed{42}</think> " + BACK, (BAD,), 10),
        ("<think>7 * 6</think>It is wrong somehow.", (BAD,), 7),
        ("<THINKING>" + BACK, (BAD,), 5),
    ],
)
def test_sending_back_pays_where_there_was_nothing_right(action: str, earlier: tuple[Turn, ...], score: float) -> None:
    assert check(action, *earlier).score == pytest.approx(score), check(action, *earlier).reason


def test_without_ground_truth_sending_back_is_right_only_where_there_is_no_result() -> None:
    assert check(BACK, CRASHED, truth=False).score == 10
    assert "no right result" not in check(BACK, BAD, truth=False).reason


def test_results_of_several_agents_count_where_they_agree() -> None:
    def ran_by(agent: str, code: str, output: str) -> Turn:
        return turn(agent, fenced(code), ran(code, output))

    agree = (ran_by("left", RIGHT_CODE, "42"), ran_by("right", RIGHT_CODE, "42"))
    differ = (ran_by("left", RIGHT_CODE, "42"), ran_by("right", WRONG_CODE, "440"))
    assert "kept the result" in judge("answer", "\\boxed{42}", earlier=agree).reason
    assert "kept the result" not in judge("answer", "\\boxed{42}", earlier=differ).reason
    assert judge("answer", "\\boxed{42}", earlier=differ).score == 10


@pytest.mark.parametrize(
    ("action", "earlier", "score"),
    [
        ("Next: solver", (), 10),
        ("Next: verifier", (), 5),
        ("Go on.", (), 0),
        ("Next: coder", (turn("solver", RIGHT_PLAN),), 10),
        ("Next: solver", (turn("solver", RIGHT_PLAN),), 7),
        ("Next: verifier", (GOOD,), 10),
        ("Next: coder", (GOOD,), 2),
        ("Next: solver", (GOOD,), 5),
        ("Next: coder", (CRASHED,), 10),
        ("Next: verifier", (BAD,), 5),
        ("Next: solver", (BAD,), 10),
    ],
)
def test_a_hub_is_scored_by_whom_it_calls_when(action: str, earlier: tuple[Turn, ...], score: float) -> None:
    assert route(action, *earlier).score == pytest.approx(score), route(action, *earlier).reason


def test_without_ground_truth_a_hub_is_not_scored_on_whether_a_result_is_right() -> None:
    assert route("Next: verifier", BAD, truth=False).score == 10
    assert "no doubt" not in route("Next: verifier", BAD, truth=False).reason


def test_in_a_team_without_code_a_plan_is_a_result() -> None:
    talkers = {"solver": "solve", "verifier": "answer"}
    plan = turn("solver", RIGHT_PLAN)
    assert route("Next: verifier", plan, choices=talkers, saw=RIGHT_PLAN).score == 10
    assert route("Next: verifier", plan, choices=CHOICES, saw=RIGHT_PLAN).score == 5


def test_a_duty_that_is_not_known_is_no_score() -> None:
    verdict = judge("sing", "la")
    assert verdict.status == "failed" and "solve, compute, answer, check, route, work" in verdict.reason
