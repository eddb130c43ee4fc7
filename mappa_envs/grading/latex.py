"""Tidying an answer as written into one plain LaTeX spelling, without changing what it means."""

from __future__ import annotations

import re

_DROPPED = dict.fromkeys(
    [
        *range(0x09),
        *range(0x0E, 0x20),
        0x7F,
        0xAD,
        *range(0x200B, 0x2010),
        *range(0x202A, 0x202F),
        *range(0x2060, 0x2065),
        0xFEFF,
    ]
)
_CHARACTERS = {
    **{ord(c): "-" for c in "\u2212\u2013\u2014\ufe63\uff0d\u2010\u2011"},
    **{ord(c): " " for c in "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000"},
    **{0xFF10 + d: str(d) for d in range(10)},
    **{ord(c): f"^{{{d}}}" for d, c in enumerate("\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")},
    **{
        ord(c): f"\\frac{{{n}}}{{{d}}}"
        for c, n, d in [("\u00bd", 1, 2), ("\u2153", 1, 3), ("\u2154", 2, 3), ("\u00bc", 1, 4)]
    },
    **{
        ord(c): f"\\frac{{{n}}}{{{d}}}"
        for c, n, d in [("\u00be", 3, 4), ("\u2155", 1, 5), ("\u2159", 1, 6), ("\u215b", 1, 8)]
    },
    ord("\u00d7"): "\\times ",
    ord("\u00b7"): "\\cdot ",
    ord("\u22c5"): "\\cdot ",
    ord("\u00f7"): "/",
    ord("\u2044"): "/",
    ord("\u2215"): "/",
    ord("\u00b0"): "^\\circ ",
    ord("\u03c0"): "\\pi ",
    ord("\u221e"): "\\infty ",
    ord("\u2264"): "\\le ",
    ord("\u2265"): "\\ge ",
    ord("\u2260"): "\\ne ",
    ord("\u222a"): "\\cup ",
    ord("\u2229"): "\\cap ",
    ord("\u2208"): "\\in ",
    ord("\u00b1"): "\\pm ",
    ord("\uff05"): "%",
    ord("\uff0c"): ",",
    ord("\uff08"): "(",
    ord("\uff09"): ")",
}
_TABLE: dict[int, str | None] = {**_DROPPED, **_CHARACTERS}

_SPACING = re.compile(
    r"(\\\\)|\\[,;:! ]|\\(?:quad|qquad|thinspace|displaystyle|textstyle|limits|hfill)(?![A-Za-z])|~|\s+"
)
_SIZING = re.compile(r"\\(?:left|right|middle|big|Big|bigg|Bigg|bigl|bigr|Bigl|Bigr)(?![A-Za-z])\s*\.?")
_SYNONYMS = [
    (re.compile(r"\\[dtc]frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"\\[dt]binom(?![A-Za-z])"), r"\\binom"),
    (re.compile(r"(?<![A-Za-z\\])C\((\d{1,9}), ?(\d{1,9})\)"), r"\\binom{\1}{\2}"),
    (re.compile(r"\\varnothing(?![A-Za-z])|\\\{\s*\\\}"), r"\\emptyset "),
    (re.compile(r"\\langle(?![A-Za-z])"), "("),
    (re.compile(r"\\rangle(?![A-Za-z])"), ")"),
    (re.compile(r"\\(?:text)?color\s*\{[a-z]{1,20}\}"), ""),
    (re.compile(r"^\s*\\text\{[^{}]*(?:\bis|\bare|:|=)\s*\}"), ""),
    (re.compile(r"\\leq(?:slant)?(?![A-Za-z])"), r"\\le "),
    (re.compile(r"\\geq(?:slant)?(?![A-Za-z])"), r"\\ge "),
    (re.compile(r"\\neq(?![A-Za-z])"), r"\\ne "),
    (re.compile(r"\\lt(?![A-Za-z])"), "<"),
    (re.compile(r"\\gt(?![A-Za-z])"), ">"),
    (re.compile(r"\\(?:dots|ldots|cdots)(?![A-Za-z])"), r"\\ldots "),
    (re.compile(r"\\lbrace(?![A-Za-z])"), r"\\{"),
    (re.compile(r"\\rbrace(?![A-Za-z])"), r"\\}"),
    (re.compile(r"\\lbrack(?![A-Za-z])"), "["),
    (re.compile(r"\\rbrack(?![A-Za-z])"), "]"),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![A-Za-z])|\{\s*\\degree\s*\})|\\degree(?![A-Za-z])"), r"^{\\circ}"),
    (re.compile(r"(?<![A-Za-z\\])sqrt(?![A-Za-z])"), r"\\sqrt"),
    (re.compile(r"(?<![A-Za-z\\])pi(?![A-Za-z])"), r"\\pi "),
    (re.compile(r"(?<![A-Za-z\\])(?:infinity|infty|inf|oo)(?![A-Za-z])"), r"\\infty "),
    (re.compile(r"\\(?:mathrm|mathit|mathsf|rm|text)\s*\{\s*([ei])\s*\}"), r"{\1}"),
    (re.compile(r"<="), r"\\le "),
    (re.compile(r">="), r"\\ge "),
    (re.compile(r"\*\*"), "^"),
]
_MATH_MARKS = re.compile(r"(\\\\|\\\$)|\$|\\[()\[\]]|`")
_WRAPPER = re.compile(r"\s*\\(?:boxed|fbox|framebox|text|textbf|mathbf|mathrm|textrm|mbox|ensuremath|bm)\s*\{")
_TRIGONOMETRIC = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![A-Za-z])")
_DEGREES = re.compile(r"(\d+(?:\.\d+)?)\s*\^\{\\circ\}")
_ROOT_CALL = re.compile(r"\\sqrt\s*\(")


def tidy(text: str) -> str:
    """Bring an answer into a plain spelling: no spacing commands, one name per symbol, no wrapping.

    Args:
        text: An answer of any length; the time is linear in it.
    """
    text = text.translate(_TABLE)
    # The group keeps `\\\\` and `\\$` whole, whose second half would otherwise be taken for the start of a command.
    text = _MATH_MARKS.sub(lambda match: match.group(1) or " ", text)
    text = _SPACING.sub(lambda match: match.group(1) or " ", text)
    text = _SIZING.sub("", text)
    for pattern, replacement in _SYNONYMS:
        text = pattern.sub(replacement, text)
    if _TRIGONOMETRIC.search(text):
        text = _DEGREES.sub(r"{(\\frac{\1\\pi}{180})}", text)
    return unwrap(_roots(text).strip())


def _roots(text: str) -> str:
    r"""Turn `\sqrt(...)`, which is Python in LaTeX's clothes, into `\sqrt{...}`."""
    if not _ROOT_CALL.search(text):
        return text
    closing = matching(text)
    characters = list(text)
    for match in _ROOT_CALL.finditer(text):
        start = match.end() - 1
        if (end := closing.get(start)) is not None:
            characters[start], characters[end] = "{", "}"
    return "".join(characters)


def matching(text: str) -> dict[int, int]:
    """Map the index of each opening bracket to that of its closing one, escaped braces included.

    An interval such as `[2,5)` closes with a different kind, so `(` and `[` match either of `)` and `]`.
    """
    pairs: dict[int, int] = {}
    stack: list[tuple[str, int]] = []
    skip = -1
    for index, char in enumerate(text):
        if index == skip:
            continue
        if char == "\\":
            # `\{` and `\}` are brackets of their own; the backslash of `\\` must not escape what follows.
            skip = index + 1
            char = {"{": "\\{", "}": "\\}"}.get(text[index + 1 : index + 2], "")
        if char in ("(", "[", "{", "\\{"):
            stack.append((char, index))
        elif char in (")", "]", "}", "\\}"):
            opening = {")": "([", "]": "([", "}": "{", "\\}": "\\{"}[char]
            if not stack or stack[-1][0] not in opening or (char == "}" and stack[-1][0] != "{"):
                return {}
            pairs[stack.pop()[1]] = index
    return {} if stack else pairs


def unwrap(text: str) -> str:
    r"""Remove wrappers around the whole text: `{...}`, `(...)` without commas, `\boxed{...}`, `\text{...}`."""
    text = text.strip().rstrip(".,;:").rstrip()
    pairs = matching(text)
    commas = [index for index, char in enumerate(text) if char == ","]
    start, end = 0, len(text)
    while start < end:
        while start < end and text[start].isspace():
            start += 1
        while start < end and text[end - 1].isspace():
            end -= 1
        wrapper = _WRAPPER.match(text, start, end)
        opening = wrapper.end() - 1 if wrapper else start
        if pairs.get(opening) != end - 1 or text[opening] == "\\" or text[opening] == "[":
            break
        if text[opening] == "(" and any(opening < comma < end for comma in commas[:1] + commas[-1:]):
            break
        start, end = opening + 1, end - 1
    return text[start:end].strip()


def split_top(text: str, separator: re.Pattern[str]) -> list[str]:
    """Split where the separator stands outside all brackets; the pieces are stripped."""
    pairs = matching(text)
    closers = set(pairs.values())
    depth_zero: list[bool] = []
    depth = 0
    for index in range(len(text)):
        if index in closers:
            depth -= 1
        depth_zero.append(depth == 0)
        if index in pairs:
            depth += 1
    pieces, start = [], 0
    for match in separator.finditer(text):
        if match.end() > match.start() and depth_zero[match.start()]:
            pieces.append(text[start : match.start()].strip())
            start = match.end()
    return [*pieces, text[start:].strip()]
