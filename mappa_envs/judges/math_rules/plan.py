"""Facts about a solver's plan: its expression, the equations it states, and the answer that it states."""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from mappa_envs.grading.expressions import ExpressionError, evaluate
from mappa_envs.grading.extract import boxed_contents
from mappa_envs.judges.math_rules.program import Literals, parse_quietly, stands_in
from mappa_envs.judges.math_rules.values import number, numbers_in
from mappa_envs.thoughts import visible_text

Number = int | Fraction | float

MAX_TEXT = 20_000
"""Characters of a plan in which equations are looked for."""
MAX_EQUATIONS = 50
"""Pairs of sides that are evaluated."""
MAX_SIDE = 120
"""Characters of a side of an equation that is checked."""

_COMPUTE = re.compile(r"^[ \t>*`-]*compute[*`]*:[*`]*[ \t]*(?P<expression>\S.*)$", re.IGNORECASE | re.MULTILINE)
_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+", re.MULTILINE)
_SIGNS = str.maketrans({"\u00d7": "*", "\u00b7": "*", "\u22c5": "*", "\u00f7": "/", "\u2212": "-", "$": " "})
_COMMANDS = [
    (re.compile(r"\\[dt]?frac\{([^{}]{1,40})\}\{([^{}]{1,40})\}"), r"((\1)/(\2))"),
    (re.compile(r"\^\{([^{}]{1,40})\}"), r"^(\1)"),
    (re.compile(r"\\(?:times|cdot)(?![A-Za-z])"), "*"),
    (re.compile(r"\\div(?![A-Za-z])"), "/"),
    (re.compile(r"\\(?:left|right|[(),;:!\[\]])"), ""),
]
_RUN = re.compile(r"[-\d.+*/^()= ]+")
_LAST_WORD = re.compile(r"\\?[A-Za-z]+$")
_FIRST_WORD = re.compile(r"[A-Za-z]+")
_JOINS_BEFORE = set("of than to mod modulo minus plus times over by and or half twice sum product square".split())
_JOINS_AFTER = set(
    "mod modulo r rem remainder with plus minus times over to by divided multiplied and percent hundred thousand "
    "million billion dozen".split()
)
_OPERATOR = re.compile(r"[\d)]\s*[-+*/^]")
_STATED = re.compile(
    r"\b(?:answer|final\s(?:result|value))\s(?:is|equals|=|will\sbe)\s{0,3}\$?\s?"
    r"(-?\d[\d,]{0,60}(?:\.\d{1,60}|/\d{1,60})?)(?![\w^*(]|\.\d|\s?[-+*/^=])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a plan comes to."""

    expression: str | None
    """The last `Compute: EXPRESSION` line, without the word."""
    value: Number | None
    """None: there is none, or it does not evaluate."""
    typed_in: bool
    """Whether the expression is the bare value, or hides it behind operations that change nothing, while no equation
    of the plan comes to it."""
    numbers: frozenset[Fraction]
    """Numbers of the expression and of the plan's true equations."""
    equations: tuple[bool, ...]
    """Whether each checkable equation of the plan holds, in order."""
    stated: bool | None
    """Whether the answer that the plan states is its value; None if it states no number or has no value."""


def plan_expression(action: str) -> str | None:
    """Return the expression of the last `Compute: EXPRESSION` line outside `<think>`, or None."""
    found = deque(_COMPUTE.finditer(visible_text(action)), maxlen=1)
    return found[0]["expression"].strip().strip("`").strip() if found else None


def plan_value(action: str) -> str | None:
    """Return the value of an action's `Compute:` line as text, or None when it has none or does not evaluate."""
    value = _value(plan_expression(action))
    return None if value is None else str(value)


def read_plan(action: str, problem: str) -> Plan:
    """Check what can be checked in a plan, in bounded time.

    Args:
        action: The solver's text.
        problem: The problem statement.
    """
    expression = plan_expression(action)
    value = _value(expression)
    checked = list(_equations(_COMPUTE.sub("", visible_text(action)[:MAX_TEXT])))
    true_ones = [equation for equation in checked if equation.holds]
    shown = value is not None and any(_close(equation.value, value) for equation in true_ones)
    numbers = set[Fraction]().union(*(numbers_in(equation.text) for equation in true_ones))
    return Plan(
        expression=expression,
        value=value,
        typed_in=value is not None and not shown and _is_typed(expression or "", value, problem),
        numbers=frozenset(numbers | numbers_in(expression or "")),
        equations=tuple(equation.holds for equation in checked),
        stated=_states(action, value),
    )


def _value(expression: str | None) -> Number | None:
    if expression is None:
        return None
    try:
        return evaluate(expression)
    except ExpressionError:
        return None


def _is_typed(expression: str, value: Number, problem: str) -> bool:
    tree = parse_quietly(expression)
    if tree is None:
        return False
    given = numbers_in(problem, words=True)
    if given == {Fraction(value)}:
        return False
    root = tree.body[0].value if tree.body and isinstance(tree.body[0], ast.Expr) else None
    return (root is not None and Literals({}, str(value), given).typed(root)) or stands_in([tree], str(value), given)


@dataclass(frozen=True, slots=True)
class _Equation:
    text: str
    holds: bool
    value: Number
    """Of the right side."""


def _equations(text: str) -> Iterator[_Equation]:
    text = _ITEM.sub("", text.translate(_SIGNS))
    for pattern, replacement in _COMMANDS:
        text = pattern.sub(replacement, text)
    count = 0
    for run in _RUN.finditer(text):
        if "=" not in run.group():
            continue
        sides = [side.strip().strip("*").strip() for side in run.group().replace("==", "=").split("=")]
        if not _starts_free(text, run.start(), run.group()):
            sides[0] = ""
        if not _ends_free(text, run.end(), run.group()):
            sides[-1] = ""
        for left, right in pairwise(sides):
            if not _is_checkable(left, right):
                continue
            if count >= MAX_EQUATIONS:
                return
            count += 1
            if (equation := _equation(left, right.rstrip("."))) is not None:
                yield equation


def _starts_free(text: str, start: int, run: str) -> bool:
    """Whether nothing before a run of arithmetic belongs to its first term."""
    before = text[max(0, start - 40) : start].rstrip(" \t")
    adjacent = not run.startswith(" ") and before == text[max(0, start - 40) : start]
    if not before or before[-1] in "\n:;.?!\"'`":
        return True
    word = _LAST_WORD.search(before)
    if word is None:
        return before[-1] == "," and not adjacent
    return not adjacent and not word.group().startswith("\\") and word.group().lower() not in _JOINS_BEFORE


def _ends_free(text: str, end: int, run: str) -> bool:
    """Whether nothing after a run of arithmetic belongs to its last term."""
    after = text[end : end + 40].lstrip(" \t")
    adjacent = not run.endswith(" ") and after == text[end : end + 40]
    if not after or after[0] in "\n:;.?!\"'`":
        return True
    word = _FIRST_WORD.match(after)
    if word is None:
        return after[0] == "," and not after[1:2].isdigit()
    return not adjacent and word.group().lower() not in _JOINS_AFTER


def _is_checkable(left: str, right: str) -> bool:
    longest = max(len(left), len(right))
    return bool(left and right and longest <= MAX_SIDE and (_OPERATOR.search(left) or _OPERATOR.search(right)))


def _equation(left: str, right: str) -> _Equation | None:
    values = [_value(side.replace("^", "**")) for side in (left, right)]
    if values[0] is None or values[1] is None:
        return None
    places = [len(side.partition(".")[2]) for side in (left, right) if number(side) is not None and "." in side]
    tolerance = Fraction(1, 10 ** min(places)) if places else Fraction(0)
    a, b = Fraction(values[0]), Fraction(values[1])
    holds = abs(a - b) <= tolerance or _close(values[0], values[1])
    return _Equation(f"{left} = {right}", holds, values[1])


def _close(left: Number, right: Number) -> bool:
    """Equal, up to the precision of floats where one of them is a float."""
    a, b = Fraction(left), Fraction(right)
    exact = not isinstance(left, float) and not isinstance(right, float)
    return a == b if exact else abs(a - b) <= max(abs(a), abs(b)) * Fraction(1, 10**12)


def _states(action: str, value: Number | None) -> bool | None:
    boxes = boxed_contents(action)
    said = boxes[-1] if boxes else next((m[1] for m in deque(_STATED.finditer(visible_text(action)), maxlen=1)), None)
    stated = number(said.replace(",", "")) if said is not None else None
    if stated is None or said is None or value is None:
        return None
    places = len(said.partition(".")[2]) if "." in said else None
    tolerance = Fraction(1, 10**places) if places else max(abs(stated), Fraction(1)) * Fraction(1, 10**12)
    return abs(Fraction(value) - stated) <= tolerance
