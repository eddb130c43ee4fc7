"""What every family is built with: drawing numbers, checking mistakes, writing answers."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import sympy

from mappa_envs.errors import TaskError
from mappa_envs.tasks.math.families.base import MAX_LEVEL, Family, Problem, Topic

Draft = Callable[[np.random.Generator, int], Problem | None]
"""Like `Family.make`, but may return None where the numbers drawn make no good problem."""

MAX_ANSWER = 10**12
"""Answers stay below this in absolute value, numerator and denominator alike."""
MAX_DRAWS = 2000


def pick(rng: np.random.Generator, *ranges: tuple[int, int]) -> list[int]:
    """Draw one integer from each range, both ends included."""
    return [int(rng.integers(low, high + 1)) for low, high in ranges]


def choose(rng: np.random.Generator, *options: int) -> int:
    """Draw one of the given integers."""
    return options[int(rng.integers(len(options)))]


def level_limit(level: int) -> int:
    """Bound of the answers at a level: four digits at level 1, six at level 2."""
    return {1: 10**4, 2: 10**6}.get(level, MAX_ANSWER)


def answer_text(value: sympy.Expr | int) -> str:
    r"""Write an integer or a fraction the way a problem set does: `12`, `-\frac{3}{7}`."""
    number = Fraction(int(sympy.numer(value)), int(sympy.denom(value)))
    if number.denominator == 1:
        return str(number.numerator)
    sign = "-" if number < 0 else ""
    return rf"{sign}\frac{{{abs(number.numerator)}}}{{{number.denominator}}}"


def problem(
    prompt: str,
    answer: sympy.Expr | int,
    expression: str,
    mistakes: list[str],
    *,
    max_answer: int = MAX_ANSWER,
) -> Problem | None:
    """Assemble a problem, leaving out the mistakes that happen to give the right answer.

    Args:
        prompt: The statement.
        answer: An exact integer or rational.
        expression: An independent computation of the answer.
        mistakes: Typical wrong approaches, most typical first.
        max_answer: Larger answers (in absolute value) are refused.

    Returns:
        None if fewer than two mistakes remain or the answer is too large: draw other numbers.
    """
    exact = Fraction(int(sympy.numer(answer)), int(sympy.denom(answer)))
    if max(abs(exact.numerator), exact.denominator) >= max_answer:
        return None
    wrong = tuple(text for text in dict.fromkeys(mistakes) if _differs(text, exact))
    if len(wrong) < 2:
        return None
    return Problem(prompt=prompt, answer=answer_text(answer), expression=expression, mistakes=wrong)


def _differs(expression: str, exact: Fraction) -> bool:
    try:
        return bool(_value(expression) != exact)
    except (ZeroDivisionError, ValueError):
        return False


class _ExactDivision(ast.NodeTransformer):
    """Turns `a / b` into an exact quotient, as in the language of expressions."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        return ast.Call(ast.Name("Fraction", ast.Load()), [node.left, node.right], [])


def _value(expression: str) -> int | Fraction:
    # The text comes from a family's own source, never from an agent. `grading.expressions.evaluate` gives the
    # same value at a far higher cost; the tests hold the two together.
    tree = ast.fix_missing_locations(_ExactDivision().visit(ast.parse(expression, mode="eval")))
    value: int | Fraction = eval(compile(tree, "<family>", "eval"), {"math": math, "Fraction": Fraction})
    return value


def family(name: str, topic: Topic, summary: str, draft: Draft) -> Family:
    """Make a family that draws again until a draft is a good problem.

    Args:
        name: Lower-case name with underscores.
        topic: Topic of the family.
        summary: One line for the gallery.
        draft: Generator of one candidate.
    """

    def make(rng: np.random.Generator, level: int) -> Problem:
        if level not in range(1, MAX_LEVEL + 1):
            raise TaskError(
                f"family {name!r} has no such level",
                expected=f"an integer from 1 to {MAX_LEVEL}",
                got=repr(level),
            )
        for _ in range(MAX_DRAWS):
            if (made := draft(rng, level)) is not None:
                return made
        raise TaskError(f"family {name!r} found no good problem of level {level} in {MAX_DRAWS} draws")

    return Family(name=name, topic=topic, summary=summary, make=make)
