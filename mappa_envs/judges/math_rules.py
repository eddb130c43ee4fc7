"""The rule judge for maths teams: deterministic, free, and from observable facts only.

Each duty has a list of criteria with points. A criterion that cannot be checked (no ground truth, no plan to compare
with) leaves the sum instead of being guessed: the score is `10 * earned / checkable`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

from mappa_envs.code_blocks import visible_text
from mappa_envs.errors import TaskError
from mappa_envs.grading.answers import extract_answer, grade
from mappa_envs.grading.expressions import ExpressionError, evaluate
from mappa_envs.grading.policy import DEFAULT_POLICY, GradingPolicy
from mappa_envs.judges.base import Judge, JudgeRequest
from mappa_envs.tasks.math.base import MathTask
from mappa_envs.transcript import MAX_SCORE, Turn, Verdict

_COMPUTE = re.compile(r"^[ \t>*`-]*compute[*`]*:[*`]*[ \t]*(?P<expression>\S.*)$", re.IGNORECASE | re.MULTILINE)
_INTEGER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Criterion:
    """One checked fact."""

    points: float
    fact: str
    """Past tense, as it reads when met, e.g. `code ran without error`."""
    met: bool | None
    """None: it could not be checked and does not count."""


def verdict_from(criteria: Sequence[Criterion], judge: str) -> Verdict:
    """Add criteria up to a score of 0 to 10 with a reason that accounts for every point.

    Args:
        criteria: At least one of them must be checkable.
        judge: Id of the judge.
    """
    counted = [c for c in criteria if c.met is not None]
    total = sum(c.points for c in counted)
    earned = sum(c.points for c in counted if c.met)
    reason = "; ".join(f"{'+' if c.met else 'missed '}{c.points:g} {c.fact}" for c in counted)
    return Verdict.ok(MAX_SCORE * earned / total, reason, judge)


def plan_expression(action: str) -> str | None:
    """Return the expression of the last `Compute: EXPRESSION` line outside `<think>`, or None."""
    found = _COMPUTE.findall(visible_text(action))
    return found[-1].strip().strip("`").strip() if found else None


def plan_value(action: str) -> str | None:
    """Return the value of an action's `Compute:` line as text, or None when it has none or does not evaluate."""
    expression = plan_expression(action)
    if expression is None:
        return None
    try:
        return str(evaluate(expression))
    except ExpressionError:
        return None


def last_output(turns: Sequence[Turn]) -> str | None:
    """Return the last line printed by the last code that ran without error, or None."""
    for turn in reversed(turns):
        for tool in reversed(turn.tools):
            lines = [line.strip() for line in tool.output.splitlines() if line.strip()]
            if tool.status == "ok" and lines:
                return lines[-1]
            if tool.status != "missing":
                return None
    return None


class MathRules(Judge):
    """Scores `solve`, `compute` and `answer` duties from facts; see the criteria in the source of each method.

    With ground truth (the environment's `ground_truth` setting) half of each role's points are for being right;
    without it the score is about form and agreement only.

    Args:
        policy: How answers are compared; the environment's own.
    """

    id = "math-rules-1"

    def __init__(self, policy: GradingPolicy = DEFAULT_POLICY) -> None:
        self.policy = policy

    async def score(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Score each request by its duty.

        Raises:
            JudgeError: Never; a duty that this judge does not know is a failed verdict.
        """
        return list(await asyncio.gather(*(self._one(request) for request in requests)))

    async def _one(self, request: JudgeRequest) -> Verdict:
        answers = request.truth.answers if isinstance(request.truth, MathTask) else None
        match request.duty:
            case "solve":
                criteria = await self._solve(request, answers)
            case "compute":
                criteria = await self._compute(request, answers)
            case "answer":
                criteria = await self._answer(request, answers)
            case duty:
                return Verdict.failed(f"{self.id} knows no duty {duty!r} (solve, compute, answer)", self.id)
        return verdict_from(criteria, self.id)

    async def _agrees(self, value: str | None, accepted: Sequence[str]) -> bool | None:
        """Compare a bare value; None when it cannot be decided."""
        if value is None:
            return False
        try:
            verdict = (await grade(f"\\boxed{{{value}}}", accepted, policy=self.policy)).verdict
        except TaskError:
            # What is accepted may be another agent's output here, and need not be mathematics.
            return None
        return None if verdict == "undecided" else verdict == "correct"

    async def _solve(self, request: JudgeRequest, answers: tuple[str, ...] | None) -> list[Criterion]:
        value = plan_value(request.action)
        numbers = set(_INTEGER.findall(request.task_prompt))
        used = numbers & set(_INTEGER.findall(visible_text(request.action)))
        return [
            Criterion(2, "gave a Compute line", plan_expression(request.action) is not None),
            Criterion(2, "its expression evaluates", value is not None),
            Criterion(1, "used the problem's numbers", bool(used) if numbers else None),
            Criterion(5, "its value is the answer", await self._agrees(value, answers) if answers else None),
        ]

    async def _compute(self, request: JudgeRequest, answers: tuple[str, ...] | None) -> list[Criterion]:
        tool = request.tools[-1] if request.tools else None
        ran = tool is not None and tool.status == "ok"
        printed = _printed(request)
        plans = [plan_value(t.action) for t in request.earlier if plan_expression(t.action) is not None]
        plan = plans[-1] if plans else None
        right = await self._agrees(printed, answers) if answers else None
        follows = await self._agrees(printed, [plan]) if plan is not None and right is not True else None
        return [
            Criterion(1, "wrote a python block", tool is not None and tool.status != "missing"),
            Criterion(2, "the code ran without error", ran),
            Criterion(2, "it printed one value", printed is not None),
            # A coder who repairs a wrong plan is not blamed for leaving it; one who runs a wrong plan faithfully
            # keeps this point, since the fault is the solver's.
            Criterion(1, "the value follows the plan", follows),
            Criterion(5, "the value is the answer", right),
        ]

    async def _answer(self, request: JudgeRequest, answers: tuple[str, ...] | None) -> list[Criterion]:
        found = extract_answer(request.action, policy=self.policy)
        upstream = last_output(request.earlier)
        upstream_right = await self._agrees(upstream, answers) if upstream is not None and answers else None
        right = None
        if answers:
            verdict = (await grade(request.action, answers, policy=self.policy)).verdict if found.boxed else "incorrect"
            right = None if verdict == "undecided" else verdict == "correct"
        kept = None
        if upstream is not None and upstream_right is not False:
            kept = await self._agrees(found.text if found.boxed else None, [upstream])
        return [
            Criterion(2, "gave a boxed answer", found.boxed),
            Criterion(1, "gave exactly one", found.count == 1),
            Criterion(2, "kept the output of the code", kept),
            Criterion(5, "the answer is right", right),
        ]


def _printed(request: JudgeRequest) -> str | None:
    """Return the single value that this turn's code printed, or None when it printed none or prose."""
    ok = [tool for tool in request.tools if tool.status == "ok"]
    lines = [line.strip() for line in ok[-1].output.splitlines() if line.strip()] if ok else []
    return lines[-1] if lines and lines[-1] != "(no output)" else None
