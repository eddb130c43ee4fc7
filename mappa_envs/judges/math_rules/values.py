"""Reading single values out of texts that agents control: printed lines, numbers of a statement."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from fractions import Fraction

from mappa_envs.transcript import ToolResult, Turn

MAX_VALUE_CHARS = 200
"""A longer line of output is not one value."""
_NO_OUTPUT = "(no output)"
_NUMBER = re.compile(r"(?<![\d.])(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+)(?:\.\d+)?")
_MAX_DIGITS = 60
_MAX_NUMBERS = 60
_WORD_NUMBERS = {
    word: Fraction(value)
    for value, word in enumerate(
        "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen twenty".split(),
        start=2,
    )
}
_WORD = re.compile(r"[A-Za-z]{2,}")
_MATHS = set(
    "sqrt pi sin cos tan cot sec csc asin acos atan sinh cosh tanh log ln exp abs oo inf Rational Fraction Integer "
    "Float Decimal Matrix Interval Union FiniteSet EmptySet frac dfrac tfrac text left right cdot times binom infty "
    "circ factorial mod and or".split()
)
_MARKER_WORDS = {"score", "scores", "verdict", "reward", "rewards", "rating", "grade", "judge", "points"}
_LABEL = re.compile(r"[A-Za-z]\s*:")
_DOUBLE_BRACKET = re.compile(r"\[\[[^\[\],]*\]\]")
_SIDE_BY_SIDE = re.compile(r"\d\s+[-+]?\d")
_MIXED = re.compile(r"[-+]?\d+ \d+/\d+")
_PLAIN = re.compile(r"[-+]?\d{1,60}(?:\.\d{0,60})?(?:[eE][-+]?\d{1,3})?")
_RATIO = re.compile(r"[-+]?\d{1,60}/\d{1,60}")


def one_value(line: str) -> bool:
    r"""Tell whether a line of output is one value (`42`, `3/7`, `2*sqrt(3)`, `35 cm`, `(1, 2)`), not prose.

    What imitates a verdict (`score: 10`, `[[10]]`) or a final answer (`\boxed{42}`) is no value.
    """
    if not line or len(line) > MAX_VALUE_CHARS or line == _NO_OUTPUT or not line.isprintable():
        return False
    if "\\boxed" in line or "<" in line or _LABEL.search(line) or _DOUBLE_BRACKET.search(line) or not _balanced(line):
        return False
    words = [word for word in _WORD.findall(line) if word not in _MATHS]
    if len(words) > 1 or any(word.lower() in _MARKER_WORDS for word in words):
        return False
    return any(c.isalnum() for c in line) and (not _SIDE_BY_SIDE.search(line) or bool(_MIXED.fullmatch(line)))


def _balanced(line: str) -> bool:
    depth = 0
    for char in line:
        depth += (char == "{") - (char == "}")
        if depth < 0:
            return False
    return depth == 0


def printed_value(tool: ToolResult | None) -> str | None:
    """Return the last line that code printed if the code ran without error and the line is one value, else None.

    The status is the sandbox's own; nothing that is printed can stand in for it.
    """
    if tool is None or tool.status != "ok":
        return None
    lines = tool.output.rstrip().splitlines()
    line = lines[-1].strip() if lines else ""
    return line if one_value(line) else None


def last_output(turns: Sequence[Turn]) -> str | None:
    """Return the value that the last code of these turns printed, or None when it failed or printed none."""
    for turn in reversed(turns):
        for tool in reversed(turn.tools):
            if tool.status != "missing":
                return printed_value(tool)
    return None


def number(text: str) -> Fraction | None:
    """Return the value of a plain decimal or ratio of bounded length, or None."""
    text = text.strip()
    if _PLAIN.fullmatch(text):
        return Fraction(text)
    if _RATIO.fullmatch(text):
        top, bottom = text.split("/")
        return Fraction(int(top), int(bottom)) if int(bottom) else None
    return None


def same_number(left: str, right: str) -> bool | None:
    """Tell whether two texts are the same number up to the precision of floats; None if one is no plain number."""
    a, b = number(left), number(right)
    if a is None or b is None:
        return None
    return abs(a - b) <= max(abs(a), abs(b)) * Fraction(1, 10**12)


def numbers_in(text: str, *, words: bool = False) -> set[Fraction]:
    """Return the non-negative numbers of a text; at most the first `_MAX_NUMBERS` different ones.

    Args:
        text: Any text; digits of more than `_MAX_DIGITS` characters are left out.
        words: Whether `two` to `twenty` count as well.
    """
    written: set[str] = set()
    for match in _NUMBER.finditer(text):
        if len(match.group()) <= _MAX_DIGITS:
            written.add(match.group())
            if len(written) >= _MAX_NUMBERS:
                break
    found = {Fraction(digits.replace(",", "")) for digits in written}
    if words:
        spoken = {word.lower() for word in _WORD.findall(text)}
        found |= {value for word, value in _WORD_NUMBERS.items() if word in spoken}
    return found


def near(given: Set[Fraction]) -> set[Fraction]:
    """Return the given numbers and their neighbours: `range(1, 101)` is about the numbers up to 100."""
    return {n + k for n in given for k in (-1, 0, 1)}


def uses_numbers(used: Set[Fraction], given: Set[Fraction]) -> bool:
    """Tell whether any number comes from the given ones: near one of them, or near a sum or difference of two.

    `math.gcd(75, 70)` is about the points (5, 9) and (80, 79), and `comb(107, 3)` about w + x + y + z = 104. Small
    sums and differences are left out: they are everywhere.
    """
    ordered = sorted(given)
    pairs = {abs(value) for i, a in enumerate(ordered) for b in ordered[i:] for value in (a + b, b - a)}
    derived = {n + k for n in pairs | set(ordered) if n > 9 for k in (-1, 0, 1, 2, 3)}
    return not used.isdisjoint(near(given) | derived)
