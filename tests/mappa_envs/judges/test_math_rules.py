from __future__ import annotations

import asyncio

import pytest

from mappa_envs.judges.base import JudgeRequest
from mappa_envs.judges.math_rules import MathRules, plan_value
from mappa_envs.tasks.math.base import MathTask
from mappa_envs.transcript import ToolResult, Turn, Verdict

TASK = MathTask(id="1", prompt="Add 20 and 22.", kind="sum", source="test", answers=("42",))
RIGHT_PLAN, WRONG_PLAN = "Add them.\nCompute: 20 + 22", "Add them.\nCompute: 20 * 22"


def turn(role: str, action: str, *tools: ToolResult) -> Turn:
    return Turn(0, 0, f"{role}_0", role, (), action, tools, Verdict.skipped("", "none"))


def ran(output: str, status: str = "ok") -> ToolResult:
    return ToolResult("python", "code", status, output)  # type: ignore[arg-type]


def score(duty: str, action: str, *tools: ToolResult, earlier: tuple[Turn, ...] = (), truth: bool = True) -> Verdict:
    request = JudgeRequest(
        task_prompt=TASK.prompt,
        task_kind="sum",
        agent="x_0",
        role="x",
        duty=duty,
        messages=(),
        action=action,
        tools=tools,
        earlier=earlier,
        truth=TASK if truth else None,
    )
    (verdict,) = asyncio.run(MathRules().score([request]))
    return verdict


@pytest.mark.parametrize(
    ("action", "points"),
    [
        (RIGHT_PLAN, 10),
        ("Compute: `20 + 22`", 10),
        ("**Compute:** 20 + 22", 10),
        ("Compute: 1\nCompute: 20 + 22", 10),
        (WRONG_PLAN, 5),
        ("Compute: 6 * 7", 9),
        ("Compute: add(20, 22)", 3),
        ("The sum of 20 and 22 is 42.", 1),
        ("", 0),
        ("<think>Compute: 20 + 22</think>I do not know.", 0),
    ],
)
def test_a_solver_is_scored_by_its_plan(action: str, points: float) -> None:
    assert score("solve", action).score == pytest.approx(points)


def test_a_coder_is_scored_by_what_its_code_did() -> None:
    plan = (turn("solver", RIGHT_PLAN),)
    assert score("compute", "c", ran("42"), earlier=plan).score == 10
    assert score("compute", "c", ran("41"), earlier=plan).score == pytest.approx(10 * 5 / 11)
    assert score("compute", "c", ran("NameError", "error"), earlier=plan).score == pytest.approx(10 / 11)
    assert score("compute", "c", ran("(no output)"), earlier=plan).score == pytest.approx(30 / 11)
    assert score("compute", "c", ran("", "missing"), earlier=plan).score == 0


def test_a_coder_is_not_blamed_for_the_solvers_fault() -> None:
    plan = (turn("solver", WRONG_PLAN),)
    faithful = score("compute", "c", ran("440"), earlier=plan).score
    careless = score("compute", "c", ran("441"), earlier=plan).score
    repaired = score("compute", "c", ran("42"), earlier=plan).score
    assert faithful is not None and careless is not None
    assert careless < faithful < 10
    assert repaired == 10


@pytest.mark.parametrize(
    ("action", "output", "points"),
    [
        (r"\boxed{42}", "42", 10),
        (r"\boxed{42}", "41", 10),
        (r"\boxed{41}", "41", 10 * 3 / 8),
        (r"\boxed{41}", "42", 3),
        ("The answer is 42.", "42", 0),
        (r"\boxed{41} or rather \boxed{42}", "42", 9),
        ("", "42", 0),
    ],
)
def test_a_verifier_is_scored_by_its_answer(action: str, output: str, points: float) -> None:
    assert score("answer", action, earlier=(turn("coder", "c", ran(output)),)).score == pytest.approx(points)


def test_without_ground_truth_only_form_and_agreement_count() -> None:
    assert score("solve", WRONG_PLAN, truth=False).score == 10
    assert score("compute", "c", ran("440"), earlier=(turn("solver", WRONG_PLAN),), truth=False).score == 10
    assert score("answer", r"\boxed{440}", earlier=(turn("coder", "c", ran("440")),), truth=False).score == 10
    assert score("answer", r"\boxed{1}", earlier=(turn("coder", "c", ran("440")),), truth=False).score == 6


def test_every_point_is_accounted_for() -> None:
    assert score("solve", WRONG_PLAN).reason == (
        "+2 gave a Compute line; +2 its expression evaluates; +1 used the problem's numbers; "
        "missed 5 its value is the answer"
    )


def test_an_unknown_duty_is_a_failed_verdict() -> None:
    assert score("sing", "la").status == "failed"


@pytest.mark.parametrize("plan", ["Compute: 9**9**9**9", "Compute: " + "(" * 5000, "Compute: __import__('os')"])
def test_a_hostile_plan_has_no_value(plan: str) -> None:
    assert plan_value(plan) is None


def test_prose_printed_by_the_code_is_no_reason_to_fail() -> None:
    prose = (turn("coder", "c", ran("the answer should be near forty-two")),)
    assert score("answer", r"\boxed{42}", earlier=prose).status == "ok"
