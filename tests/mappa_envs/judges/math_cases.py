"""One maths episode for the judge's tests: add 20 and 22."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from mappa_envs.code_blocks import python_code
from mappa_envs.judges.base import JudgeRequest
from mappa_envs.judges.math_rules import MathRules
from mappa_envs.tasks.math.base import MathTask
from mappa_envs.transcript import ToolResult, Turn, Verdict

TASK = MathTask(id="1", prompt="Add 20 and 22.", kind="sum", source="test", answers=("42",))
RIGHT_PLAN, WRONG_PLAN = "Add them.\nCompute: 20 + 22", "Add them.\nCompute: 20 * 22"
RIGHT_CODE, WRONG_CODE = "print(20 + 22)", "print(20 * 22)"

_PART = re.compile(r"(\+|missed )(\d+(?:\.\d+)?) (\S.*)")
_TOTAL = re.compile(r"(\d+(?:\.\d+)?) of (\d+(?:\.\d+)?) points")


def turn(role: str, action: str, *tools: ToolResult, saw: str = "") -> Turn:
    messages: Any = ({"role": "user", "content": saw},) if saw else ()
    return Turn(0, 0, f"{role}_0", role, messages, action, tools, Verdict.skipped("", "none"))


def ran(code: str, output: str, status: Any = "ok") -> ToolResult:
    return ToolResult("python", code, status, output)


def fenced(code: str) -> str:
    return f"```python\n{code}\n```"


def coder(code: str, output: str, status: Any = "ok") -> Turn:
    return turn("coder", fenced(code), ran(code, output, status))


def judge(
    duty: str,
    action: str,
    *tools: ToolResult,
    earlier: tuple[Turn, ...] = (),
    truth: bool = True,
    task: MathTask = TASK,
    saw: str = "",
) -> Verdict:
    request = JudgeRequest(
        task_prompt=task.prompt,
        task_kind=task.kind,
        agent="x_0",
        role="x",
        duty=duty,
        messages=({"role": "user", "content": saw},) if saw else (),
        action=action,
        tools=tools,
        earlier=earlier,
        truth=task if truth else None,
    )
    (verdict,) = asyncio.run(MathRules().score([request]))
    adds_up(verdict)
    return verdict


def score(duty: str, action: str, *tools: ToolResult, **keywords: Any) -> float:
    value = judge(duty, action, *tools, **keywords).score
    assert value is not None
    return value


def code_score(code: str, output: str, status: Any = "ok", *, plan: str = RIGHT_PLAN, **keywords: Any) -> float:
    """Score a coder whose code gave `output`, after a plan."""
    keywords.setdefault("earlier", (turn("solver", plan),))
    return score("compute", fenced(code), ran(code, output, status), **keywords)


def answer_score(action: str, output: str = "42", **keywords: Any) -> float:
    """Score a verifier who saw code that printed `output`."""
    return score("answer", action, earlier=(coder(RIGHT_CODE, output),), **keywords)


def turn_score(duty: str, action: str, *, output: str = "42", plan: str = RIGHT_PLAN) -> float:
    """Score any action for any duty, as the environment would after the tools have given `output`."""
    if duty == "compute":
        code = python_code(action)
        tool = ran(code, output) if code is not None else ran("", "No fenced python block was found.", "missing")
        return score(duty, action, tool, earlier=(turn("solver", plan),))
    return score(duty, action, earlier=(coder(RIGHT_CODE, output),) if duty == "answer" else ())


def adds_up(verdict: Verdict) -> None:
    """Check that the points in the reason are those of the score."""
    if verdict.status != "ok":
        return
    *parts, last = verdict.reason.split("; ")
    total = _TOTAL.fullmatch(last)
    matches = [_PART.fullmatch(part) for part in parts]
    assert total and all(matches), verdict.reason
    points = [(m[1] == "+", float(m[2])) for m in matches if m]
    earned = sum(p for met, p in points if met)
    assert earned == float(total[1]) and sum(p for _, p in points) == float(total[2])
    assert verdict.score == pytest.approx(10 * earned / float(total[2]))
    assert verdict.score is not None and 0 <= verdict.score <= 10
