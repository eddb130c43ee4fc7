"""Reading a tidy answer: numbers with units, words, tuples, sets, intervals, matrices, equations, the rest."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from mappa_envs.grading.arithmetic import Huge, exact_value
from mappa_envs.grading.latex import matching, split_top, tidy, unwrap
from mappa_envs.grading.units import split_unit

MAX_ITEMS = 64
_MAX_DEPTH = 6
_MAX_EXPONENT = 5_000

_GROUPED = re.compile(r"[-+]?\d{1,3}(?:(?:,\d{3})+|(?: \d{3})+)(?:\.\d+)?")
_DECIMAL = re.compile(r"[-+]?(?:\d+\.?(\d*)|\.(\d+))")
_SCIENTIFIC = re.compile(r"[-+]?\d+(?:\.\d+)?[eE][-+]?\d{1,5}")
_REPEATING = re.compile(r"([-+]?)(\d*)\.(\d*)\\(?:overline|bar)\{(\d+)\}")
_RATIO = re.compile(r"(\d+)\s*:\s*(\d+)")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?:\s*([ap])\.?m\.?)?", re.IGNORECASE)
_WORDS = re.compile(r"[A-Za-z][A-Za-z' .-]*")
_NAME = re.compile(r"[A-Z][a-z]+|[A-Za-z]{4,}|[A-Za-z]+(?: [A-Za-z.'-]+)+")
_VARIABLE = re.compile(r"\\?[A-Za-z]+(?:_(?:\{[A-Za-z0-9]+\}|[A-Za-z0-9]))?'?(?:\([A-Za-z,\s]+\))?")
_MATRIX = re.compile(r"\\begin\{([pbB]?matrix|array)\}(?:\{[lcr| ]*\})?(.*)\\end\{\1\}", re.DOTALL)
_MEMBER = re.compile(r"[A-Za-z]\s*\\in(?![A-Za-z])\s*")
_COMMA = re.compile(r",|;|\\text\{\s*(?:and|or)\s*\}|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])")
_CUP = re.compile(r"\\cup(?![A-Za-z])")
_EQUALS = re.compile(r"(?<![<>!:\\])=|\\equiv(?![A-Za-z])")
_PLUS_MINUS = re.compile(r"\\pm(?![A-Za-z])")
_SUCH_THAT = re.compile(r"\\mid(?![A-Za-z])|\||:")
_APPROX = re.compile(r"\\(?:approx|simeq|sim)(?![A-Za-z])")
_ORDER = re.compile(r"\\le(?![A-Za-z])|\\ge(?![A-Za-z])|<|>")
_ROW = re.compile(r"\\\\(?:\[[^\]]*\])?")
_CELL = re.compile(r"(?<!\\)&")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number."""

    text: str
    """Without percent sign and unit."""
    value: Fraction | Huge
    places: int | None = None
    """Digits after the point where it is written as a decimal; None for other forms."""
    figures: int = 0
    """Significant figures of a decimal."""
    percent: bool = False
    unit: str | None = None
    """Canonical name; None where there is none or an unknown one."""


@dataclass(frozen=True, slots=True)
class Words:
    """An answer in words: a name, "yes", a clock time."""

    text: str


@dataclass(frozen=True, slots=True)
class Collection:
    """Several answers: a tuple or interval, set, bare list, union, or matrix."""

    text: str
    kind: Literal["tuple", "set", "list", "union", "matrix"]
    brackets: str
    """`()`, `[)` and so on for tuples and intervals, `2x3` for matrices, else empty."""
    items: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Equation:
    """Sides joined by `=`."""

    text: str
    sides: tuple[str, ...]

    @property
    def variable(self) -> str | None:
        """What is on the left of an assignment such as `x = 5` or `(x, y) = (2, 3)`, without spaces."""
        left = self.sides[0].replace(" ", "")
        names = left[1:-1].split(",") if left.startswith("(") and left.endswith(")") else [left]
        return left if all(_VARIABLE.fullmatch(name) for name in names) else None


@dataclass(frozen=True, slots=True)
class Expression:
    """Anything else: for the algebra system."""

    text: str


Answer = Quantity | Words | Collection | Equation | Expression


def read(text: str, depth: int = 0) -> Answer | None:
    """Read a tidy answer.

    Args:
        text: Output of `latex.tidy`, of bounded length.
        depth: Nesting so far.

    Returns:
        None if there is nothing in it.
    """
    text = unwrap(text)
    if not text:
        return None
    if depth > _MAX_DEPTH:
        return Expression(text)
    if member := _MEMBER.match(text):
        return read(text[member.end() :], depth + 1)
    if (quantity := _quantity(text)) is not None:
        return quantity
    if clock := _CLOCK.fullmatch(text):
        hour, minute, half = clock.groups()
        return Words(f"{int(hour)}:{minute}{(half or '').lower()}")
    return _structure(text, depth) or _rest(text, depth)


def _structure(text: str, depth: int) -> Answer | None:
    if matrix := _MATRIX.fullmatch(text):
        rows = [split_top(row, _CELL) for row in split_top(matrix.group(2).strip(), _ROW)]
        rows = [row for row in rows if row != [""]]
        if rows and len({len(row) for row in rows}) == 1:
            cells = [cell for row in rows for cell in row]
            return _collection(text, "matrix", f"{len(rows)}x{len(rows[0])}", cells, depth)
        return Expression(text)
    if len(parts := split_top(text, _CUP)) > 1:
        union = _collection(text, "union", "", parts, depth)
        return _merged_union(union) if isinstance(union, Collection) else union
    if len(parts := split_top(text, _COMMA)) > 1:
        return _collection(text, "list", "", parts, depth)
    return _bracketed(text, depth) or _relation(text, depth)


def _bracketed(text: str, depth: int) -> Answer | None:
    if text.startswith("\\{") and text.endswith("\\}") and matching(text).get(0) == len(text) - 2:
        inner = text[2:-2].strip()
        described = split_top(inner, _SUCH_THAT)
        if len(described) == 2 and (_VARIABLE.fullmatch(described[0]) or _MEMBER.match(described[0])):
            return read(described[1], depth + 1)
        return _collection(text, "set", "", split_top(inner, _COMMA), depth) if inner else Expression(text)
    if text[0] in "([" and text[-1] in ")]" and matching(text).get(0) == len(text) - 1:
        parts = split_top(text[1:-1], _COMMA)
        if len(parts) == 1:
            return read(parts[0], depth + 1) if parts[0] else Expression(text)
        return _collection(text, "tuple", text[0] + text[-1], parts, depth)
    return None


def _collection(
    text: str,
    kind: Literal["tuple", "set", "list", "union", "matrix"],
    brackets: str,
    parts: list[str],
    depth: int,
) -> Answer:
    if len(parts) > MAX_ITEMS:
        return Expression(text)
    items = [item for part in parts if (item := read(part, depth + 1)) is not None]
    if len(items) != len([part for part in parts if part]) or not items:
        return Expression(text)
    return Collection(text, kind, brackets, tuple(items))


def _merged_union(union: Collection) -> Collection:
    if all(isinstance(item, Collection) and item.kind == "set" for item in union.items):
        items = tuple(part for item in union.items if isinstance(item, Collection) for part in item.items)
        return replace(union, kind="set", items=items)
    return union


def _relation(text: str, depth: int) -> Answer | None:
    if len(sides := split_top(text, _EQUALS)) > 1 and all(sides):
        return Equation(text, tuple(split_top(side, _APPROX)[0] or side for side in sides))
    if len(sides := split_top(text, _APPROX)) > 1:
        return read(sides[0] or sides[1], depth + 1)
    sides = split_top(text, _ORDER)
    if not 2 <= len(sides) <= 3 or not all(sides):
        return None
    signs = [match.group() for match in _ORDER.finditer(text)]
    if len(signs) != len(sides) - 1 or not _VARIABLE.fullmatch(sides[len(sides) // 2 if len(sides) == 3 else 0]):
        return _flipped(text, sides, signs, depth)
    return _interval(text, sides, signs, depth)


def _flipped(text: str, sides: list[str], signs: list[str], depth: int) -> Answer | None:
    if len(sides) == 2 and len(signs) == 1 and _VARIABLE.fullmatch(sides[1]):
        turned = {"<": ">", ">": "<", "\\le": "\\ge", "\\ge": "\\le"}[signs[0]]
        return _interval(text, sides[::-1], [turned], depth)
    return None


def _interval(text: str, sides: list[str], signs: list[str], depth: int) -> Answer | None:
    r"""Turn `x < 3`, `1 < x \le 2` into an interval."""
    if len(sides) == 3:
        if signs[0] in (">", "\\ge"):
            turn = {">": "<", "\\ge": "\\le", "<": ">", "\\le": "\\ge"}
            sides, signs = sides[::-1], [turn[sign] for sign in reversed(signs)]
        if signs[0] not in ("<", "\\le") or signs[1] not in ("<", "\\le"):
            return None
        ends, brackets = [sides[0], sides[2]], ("(" if signs[0] == "<" else "[") + (")" if signs[1] == "<" else "]")
    elif signs[0] in ("<", "\\le"):
        ends, brackets = ["-\\infty", sides[1]], "()" if signs[0] == "<" else "(]"
    else:
        ends, brackets = [sides[1], "\\infty"], "()" if signs[0] == ">" else "[)"
    return _collection(text, "tuple", brackets, ends, depth)


def _rest(text: str, depth: int) -> Answer:
    if len(_PLUS_MINUS.findall(text)) == 1 and "\\mp" not in text:
        both = [_PLUS_MINUS.sub(sign, text).strip() for sign in ("+", "-")]
        return _collection(text, "list", "", both, depth)
    if _WORDS.fullmatch(text) and _NAME.fullmatch(text):
        return Words(text)
    return Expression(split_unit(text, known_only=True)[0])


def _quantity(text: str) -> Quantity | None:
    number, unit, percent = split_unit(text)
    if (found := _number(number)) is not None:
        return replace(found, unit=unit, percent=percent)
    return None


def _number(text: str) -> Quantity | None:
    if _GROUPED.fullmatch(text):
        text = text.replace(",", "").replace(" ", "")
    if decimal := _DECIMAL.fullmatch(text):
        if len(text) > 4_000:
            return None
        digits = decimal.group(1) or decimal.group(2) or ""
        figures = len(re.sub(r"[-+.]", "", text).lstrip("0"))
        return Quantity(text, Fraction(text.rstrip(".")), len(digits) or None, figures)
    if _SCIENTIFIC.fullmatch(text):
        mantissa, exponent = re.split("[eE]", text)
        if abs(int(exponent)) > _MAX_EXPONENT:
            return None
        return Quantity(text, Fraction(mantissa) * Fraction(10) ** int(exponent))
    if repeating := _REPEATING.fullmatch(text):
        sign, whole, fixed, period = repeating.groups()
        scale = 10 ** len(fixed)
        value = Fraction(int(whole + fixed or "0"), scale)
        value += Fraction(int(period), scale * (10 ** len(period) - 1))
        return Quantity(text, -value if sign == "-" else value)
    if ratio := _RATIO.fullmatch(text):
        if len(ratio.group(2)) == 2 and len(ratio.group(1)) <= 2 and int(ratio.group(2)) < 60:
            return None
        if int(ratio.group(2)) == 0:
            return None
        return Quantity(f"{ratio.group(1)}/{ratio.group(2)}", Fraction(int(ratio.group(1)), int(ratio.group(2))))
    value_or_none = exact_value(text)
    return None if value_or_none is None else Quantity(text, value_or_none)


def read_raw(text: str) -> Answer | None:
    """Tidy and read an answer as written."""
    return read(tidy(text))
