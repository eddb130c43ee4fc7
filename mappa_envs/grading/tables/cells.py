"""From text cells to encoded predictions; what cannot be read is counted and named, by its first example."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mappa_envs.grading.tables.faults import Fault

MAX_SIZE = 1e100
"""Larger numbers count as infinite: their squares would overflow."""
SUM_TOLERANCE = 0.02
"""How far the probabilities of a row may be from 1; within it they are scaled to 1."""

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_INTEGER = re.compile(r"(-?)0*(\d+)(?:\.0*)?", re.ASCII)
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
_MISSING = frozenset({"", "nan", "na", "n/a", "null", "none", "nat", "<na>"})
_FORMULA = re.compile(r"[=@]|[+-](?=[A-Za-z(=@])")


class Faults:
    """Counts faults by code and keeps one example of each."""

    def __init__(self) -> None:
        self._found: dict[str, list[Any]] = {}

    def add(self, code: str, example: str, count: int = 1) -> None:
        """Count a fault; the first example is kept, shortened."""
        self._found.setdefault(code, [example[:100], 0])[1] += count

    def __bool__(self) -> bool:
        return bool(self._found)

    def listed(self) -> tuple[Fault, ...]:
        """Return the faults, in the order in which they were first seen."""
        return tuple(
            Fault(code, f"{code.replace('_', ' ')} ({count}), e.g. {example}", count)
            for code, (example, count) in self._found.items()
        )


def canonical(text: str) -> str:
    """Write an integer in one way (`007`, `7.0` and `+7` differ from `7` only in spelling); leave other texts alone.

    Used for ids and labels that are integers: tables with a missing value write whole numbers as floats.
    """
    match = _INTEGER.fullmatch(text.removeprefix("+"))
    if match is None:
        return text
    return match[2] if match[2] == "0" else match[1] + match[2]


def key_function(known: Sequence[str]) -> Callable[[str], str]:
    """Return what brings a text to the form in which it is compared with `known`.

    That is `canonical` if all of `known` are integers in canonical form already, else nothing is changed.
    """
    return canonical if all(text == canonical(text) and _INTEGER.fullmatch(text) for text in known) else str


def read_number(cell: str, where: str, faults: Faults) -> float:
    """Return the number in a cell; nan, with a fault, where there is none."""
    if _NUMBER.fullmatch(cell):
        value = float(cell)
        if abs(value) <= MAX_SIZE:
            return value
        faults.add("infinite_value", f"{cell!r} {where}")
    elif not _common_faults(cell, where, faults):
        faults.add("not_a_number", f"{cell!r} {where}")
    return math.nan


def _common_faults(cell: str, where: str, faults: Faults) -> bool:
    if cell.casefold() in _MISSING:
        faults.add("missing_value", f"{cell!r} {where}")
    elif _INFINITE.fullmatch(cell):
        faults.add("infinite_value", f"{cell!r} {where}")
    elif _FORMULA.match(cell):
        faults.add("formula", f"{cell!r} {where}")
    else:
        return False
    return True


class LabelReader:
    """Reads class labels of one task into codes."""

    def __init__(self, classes: Sequence[str]) -> None:
        self._codes = {label: code for code, label in enumerate(classes)}
        self._key = key_function(classes)

    def read(self, cell: str, where: str, faults: Faults) -> int:
        """Return the code of a label; -1, with a fault, if it is none."""
        code = self._codes.get(self._key(cell), -1)
        if code < 0 and not _common_faults(cell, where, faults):
            hint = "; labels are asked for, not probabilities" if _is_fraction(cell) else ""
            faults.add("unknown_label", f"{cell!r} {where}{hint}")
        return code

    def read_ranking(self, cell: str, k: int, where: str, faults: Faults) -> list[int]:
        """Return k codes of the labels in a cell, separated by spaces; -1 where fewer are given."""
        words = cell.split()
        if len(words) > k:
            faults.add("too_many_labels", f"{len(words)} labels {where}, at most {k}")
            return [-1] * k
        codes = [self.read(word, where, faults) for word in words or [""]]
        return codes + [-1] * (k - len(codes))


def _is_fraction(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None and not _INTEGER.fullmatch(cell) and 0 <= float(cell) <= 1


def as_distribution(values: npt.NDArray[np.float64], ids: Sequence[str], faults: Faults) -> npt.NDArray[np.float64]:
    """Check probabilities and return shape (rows, classes), rows summing to 1.

    Args:
        values: Shape (rows, classes), or (rows, 1) with the probability of the second of two classes.
        ids: Ids of the rows, for messages.
        faults: Where faults go.
    """
    outside = np.flatnonzero(((values < 0) | (values > 1)).any(axis=1))
    if outside.size:
        row = int(outside[0])
        bad = next(value for value in values[row] if not 0 <= value <= 1)
        faults.add("not_a_probability", f"{bad:g} for id {ids[row]!r}", len(outside))
        return values
    if values.shape[1] == 1:
        return np.hstack([1.0 - values, values])
    sums = values.sum(axis=1)
    wrong = np.flatnonzero(np.abs(sums - 1.0) > SUM_TOLERANCE)
    if wrong.size:
        row = int(wrong[0])
        faults.add("not_a_distribution", f"a sum of {sums[row]:g} for id {ids[row]!r}", len(wrong))
        return values
    return values / sums[:, None]
