"""Comparing an answer with an accepted one: structure and exact numbers here, algebra through a callback."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from mappa_envs.grading.arithmetic import Huge
from mappa_envs.grading.policy import GradingPolicy
from mappa_envs.grading.pool import Question, Reply
from mappa_envs.grading.reading import Answer, Collection, Equation, Expression, Quantity, Words, read

VerdictName = Literal["correct", "incorrect", "undecided"]
Ask = Callable[[Question], Reply]

_SPACES = re.compile(r"[\s{}]+|\\(?:text|mathrm|mathbf|textbf)(?![A-Za-z])")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A verdict with its reason."""

    verdict: VerdictName
    reason: str


def _correct(reason: str) -> Comparison:
    return Comparison("correct", reason)


def _incorrect(reason: str) -> Comparison:
    return Comparison("incorrect", reason)


class Comparer:
    """Compares under one policy; algebra questions go to `ask`."""

    def __init__(self, policy: GradingPolicy, ask: Ask) -> None:
        """Make a comparer.

        Args:
            policy: The matters of policy.
            ask: Answers algebra questions; may raise to stop the comparison.
        """
        self._policy = policy
        self._ask = ask

    def compare(self, gold: Answer, answer: Answer) -> Comparison:
        """Compare an answer with one accepted answer."""
        gold, answer = _unwrap_single(gold), _unwrap_single(answer)
        if _same_text(gold, answer):
            return _correct("the same text")
        if isinstance(gold, Equation):
            return self._to_equation(gold, answer)
        if isinstance(answer, Equation):
            side = _value_side(answer)
            return self.compare(gold, side) if side is not None else _incorrect("an equation without a value")
        if isinstance(gold, Quantity) and isinstance(answer, Quantity):
            return self._quantities(gold, answer)
        if isinstance(gold, Words) or isinstance(answer, Words):
            return _incorrect("different words" if isinstance(gold, Words) else "words in place of mathematics")
        if isinstance(gold, Collection) and isinstance(answer, Collection):
            return self._collections(gold, answer)
        if isinstance(answer, Collection) and answer.kind == "list":
            return _incorrect("several answers where one is accepted")
        if isinstance(gold, Collection) and gold.kind == "list":
            return _incorrect("one answer where several are needed")
        kinds = {kind for kind in (gold, answer) if isinstance(kind, Collection)}
        if kinds and any(isinstance(other, Quantity) for other in (gold, answer)):
            return _incorrect("a number and several numbers")
        return self._algebra(gold, answer)

    def _to_equation(self, gold: Equation, answer: Answer) -> Comparison:
        if isinstance(answer, Equation):
            if gold.variable is not None and gold.variable == answer.variable:
                return self._sides(gold, answer)
            return self._algebra(gold, answer)
        if gold.variable is None:
            return _incorrect("a value where an equation is needed")
        value = _value_side(gold)
        return self.compare(value, answer) if value is not None else _incorrect("an equation is needed")

    def _sides(self, gold: Equation, answer: Equation) -> Comparison:
        left, right = _value_side(gold), _value_side(answer)
        if left is None or right is None:
            return self._algebra(gold, answer)
        return self.compare(left, right)

    def _quantities(self, gold: Quantity, answer: Quantity) -> Comparison:
        if self._policy.units == "match" and (gold.unit != answer.unit or gold.percent != answer.percent):
            return _incorrect(f"the unit is {answer.unit or 'missing'}, not {gold.unit or 'none'}")
        if gold.unit is not None and answer.unit is not None and gold.unit != answer.unit:
            return _incorrect(f"the unit is {answer.unit}, not {gold.unit}")
        if isinstance(gold.value, Huge) or isinstance(answer.value, Huge):
            if isinstance(gold.value, Huge) and isinstance(answer.value, Huge):
                if gold.text == answer.text:
                    return _correct("the same text")
                if gold.value.sign == answer.value.sign:
                    return Comparison("undecided", "both numbers are too large to evaluate")
            return _incorrect("the size of the numbers differs")
        for gold_value, gold_places in self._readings(gold, gold.percent and not answer.percent):
            for value, places in self._readings(answer, answer.percent and not gold.percent):
                if gold_value == value:
                    return _correct("equal numbers")
                if self._rounds(gold_value, gold_places, gold, value, places, answer):
                    return _correct("equal after rounding")
        return _incorrect("the numbers differ")

    def _readings(self, number: Quantity, convert: bool) -> list[tuple[Fraction, int | None]]:
        """Return what a number may stand for, with its decimal places: p% is p, p/100 or both."""
        if isinstance(number.value, Huge):
            return []
        plain = (number.value, number.places)
        if not convert or self._policy.percent == "number":
            return [plain]
        hundredth = (number.value / 100, None if number.places is None else number.places + 2)
        return [hundredth] if self._policy.percent == "fraction" else [plain, hundredth]

    def _rounds(
        self,
        gold_value: Fraction,
        gold_places: int | None,
        gold: Quantity,
        value: Fraction,
        places: int | None,
        answer: Quantity,
    ) -> bool:
        difference = abs(gold_value - value)
        if gold_places is not None and self._is_rounded(gold):
            return difference <= Fraction(1, 2 * 10**gold_places)
        if gold_places is None and places is not None and gold_value.denominator != 1:
            return answer.figures >= self._policy.decimal_figures and difference < Fraction(1, 10**places)
        return False

    def _is_rounded(self, gold: Quantity) -> bool:
        return (
            self._policy.rounding == "gold_figures"
            and gold.places is not None
            and gold.figures >= self._policy.rounding_figures
            and not (isinstance(gold.value, Fraction) and gold.value.denominator == 1)
        )

    def _collections(self, gold: Collection, answer: Collection) -> Comparison:
        if len(gold.items) != len(answer.items):
            return _incorrect(f"{len(answer.items)} parts where {len(gold.items)} are needed")
        kinds = {gold.kind, answer.kind}
        if kinds == {"union", "list"} and all(_is_interval(item) for item in (*gold.items, *answer.items)):
            return self._unordered(gold, answer)
        if "matrix" in kinds or "union" in kinds:
            if len(kinds) > 1 or gold.brackets != answer.brackets:
                return _incorrect("a different kind of object")
            return self._unordered(gold, answer) if gold.kind == "union" else self._ordered(gold, answer)
        if kinds == {"tuple"}:
            if gold.brackets != answer.brackets:
                return _incorrect("different brackets")
            return self._ordered(gold, answer)
        if kinds == {"tuple", "set"}:
            return _incorrect("a tuple or interval is not a set")
        if "tuple" in kinds:
            # A bare list stands for a tuple in the order given, but not for an interval with an end in it.
            brackets = gold.brackets or answer.brackets
            return self._ordered(gold, answer) if brackets == "()" else _incorrect("a different kind of object")
        return self._unordered(gold, answer)

    def _ordered(self, gold: Collection, answer: Collection) -> Comparison:
        undecided: Comparison | None = None
        for left, right in zip(gold.items, answer.items, strict=True):
            result = self.compare(left, right)
            if result.verdict == "incorrect":
                return _incorrect(f"one part differs: {result.reason}")
            undecided = result if result.verdict == "undecided" else undecided
        return undecided or _correct("all parts agree")

    def _unordered(self, gold: Collection, answer: Collection) -> Comparison:
        """Match each part with one part of the other; agreement is near enough transitive for first match."""
        left = list(answer.items)
        undecided: Comparison | None = None
        # Numbers first: they are decided at once and leave fewer pairs to the algebra system.
        for item in sorted(gold.items, key=lambda part: not isinstance(part, Quantity)):
            results = []
            for index, other in enumerate(left):
                result = self.compare(item, other)
                results.append(result)
                if result.verdict == "correct":
                    del left[index]
                    break
            else:
                open_results = [result for result in results if result.verdict == "undecided"]
                if not open_results:
                    return _incorrect("one accepted part is missing")
                undecided = open_results[0]
        return undecided or _correct("all parts agree")

    def _algebra(self, gold: Answer, answer: Answer) -> Comparison:
        reply = self._ask(Question(gold.text, answer.text, self._tolerance(gold, answer)))
        match reply.outcome:
            case "equal":
                return _correct(reply.reason)
            case "different":
                return _incorrect(reply.reason)
            case "answer_unparsable":
                return Comparison(self._policy.unparsable, reply.reason)
            case _:
                return Comparison("undecided", reply.reason)

    def _tolerance(self, gold: Answer, answer: Answer) -> str | None:
        if isinstance(gold, Quantity) and gold.places is not None and self._is_rounded(gold):
            return f"1/{2 * 10**gold.places}"
        if isinstance(answer, Quantity) and answer.places is not None:
            if answer.figures >= self._policy.decimal_figures:
                return f"1/{10**answer.places}"
        return None


def _unwrap_single(answer: Answer) -> Answer:
    if isinstance(answer, Collection) and len(answer.items) == 1 and answer.kind in ("set", "list"):
        return answer.items[0]
    return answer


def _same_text(gold: Answer, answer: Answer) -> bool:
    if isinstance(gold, Quantity) or isinstance(answer, Quantity):
        return False
    left, right = (_SPACES.sub("", part.text) for part in (gold, answer))
    if left == right:
        return True
    return (left.isalpha() and len(left) > 1 and left.casefold() == right.casefold()) or (
        isinstance(gold, Words) and left.casefold() == right.casefold()
    )


def _is_interval(answer: Answer) -> bool:
    return isinstance(answer, Collection) and answer.kind == "tuple"


def _value_side(equation: Equation) -> Answer | None:
    """Return the value that an equation ends in: the last side, or the first of `5 = x`."""
    last, first = read(equation.sides[-1]), read(equation.sides[0])
    if isinstance(first, Quantity) and not isinstance(last, Quantity) and len(equation.sides) == 2:
        return first
    return last


def first_correct(results: Sequence[Comparison]) -> Comparison:
    """Combine the comparisons with all accepted answers: correct if any is, else undecided if any is."""
    for verdict in ("correct", "undecided"):
        for result in results:
            if result.verdict == verdict:
                return result
    return results[0]


__all__ = ["Ask", "Comparer", "Comparison", "Expression", "VerdictName", "first_correct"]
