"""The judge on the procedural families: right work is worth 10, wrong work clearly less, whatever the problem."""

from __future__ import annotations

import numpy as np
import pytest
from math_cases import fenced, ran, score, turn

from mappa_envs.grading.expressions import evaluate
from mappa_envs.tasks.math.base import MathTask
from mappa_envs.tasks.math.families import FAMILIES, STARTER_FAMILIES


def play(task: MathTask, expression: str) -> list[float]:
    """Score a team that works by one expression: solver, coder, verifier."""
    value, code = str(evaluate(expression)), f"import math\nprint({expression})"
    plan, run = f"The statement is one expression.\nCompute: {expression}", ran(code, value)
    solver, coder = turn("solver", plan), turn("coder", fenced(code), run)
    return [
        score("solve", plan, task=task),
        score("compute", fenced(code), run, earlier=(solver,), task=task),
        score("answer", f"The output fits.\n\\boxed{{{value}}}", earlier=(solver, coder), task=task),
    ]


@pytest.mark.parametrize("name", FAMILIES)
def test_right_work_is_clearly_above_wrong_work(name: str) -> None:
    for level in range(1, 6):
        problem = FAMILIES[name].make(np.random.default_rng(level), level)
        task = MathTask(id="1", prompt=problem.prompt, kind=name, source="test", answers=(problem.answer,))
        right = play(task, problem.expression)
        # A plan may rest on a number that stands in no text (the four unknowns of w + x + y + z): one point.
        assert right[0] >= 8.5 and right[1:] == [10, 10]
        if name in STARTER_FAMILIES and level <= 2:
            assert right == [10, 10, 10]
        for mistake in problem.mistakes:
            assert all(2 <= wrong <= 5 for wrong in play(task, mistake)), mistake
