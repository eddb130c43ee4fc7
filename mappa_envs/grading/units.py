"""Units after a number: recognised, brought to one name, and taken off."""

from __future__ import annotations

import re

_NAMES = {
    "mm": "millimeter millimetre",
    "cm": "centimeter centimetre",
    "dm": "decimeter decimetre",
    "m": "meter metre",
    "km": "kilometer kilometre",
    "in": "inch inches",
    "ft": "foot feet",
    "yd": "yard",
    "mi": "mile",
    "mg": "milligram",
    "g": "gram gm",
    "kg": "kilogram kilo kgs",
    "lb": "pound lbs",
    "oz": "ounce",
    "ml": "milliliter millilitre mL",
    "l": "liter litre L",
    "gal": "gallon",
    "ms": "millisecond",
    "s": "second sec secs",
    "min": "minute mins",
    "h": "hour hr hrs",
    "day": "",
    "week": "",
    "month": "",
    "year": "yr yrs",
    "dollar": "usd buck",
    "cent": "",
    "euro": "eur",
    "rad": "radian",
    "deg": "degree",
    "unit": "",
    "N": "newton",
    "J": "joule",
    "W": "watt",
    "V": "volt",
    "A": "ampere amp",
    "Hz": "hertz",
    "K": "kelvin",
}
_WORDS: dict[str, str] = {}
for _canonical, _others in _NAMES.items():
    for _word in (_canonical, *_others.split()):
        _WORDS[_word] = _canonical
        if len(_word) > 2:
            _WORDS[_word + "s"] = _canonical

_PERCENT = re.compile(r"\s*(?:\\?%|\\text\{\s*(?:\\?%|percent)\s*\}|(?<![A-Za-z])(?:percent(?:age)?|per cent|pct))$")
_CURRENCY = re.compile(r"^([-+]?)\s*(\\\$|\\text\{\\?\$\}|[€£¥₹])\s*([-+]?)")
_CURRENCIES = {"€": "euro", "£": "pound sterling", "¥": "yen", "₹": "rupee"}
_DEGREES = re.compile(r"\s*\^\{\\circ\}\s*(?:[CF]|\\text\{\s*[CF]\s*\}|\\mathrm\{\s*[CF]\s*\})?$")
_MODULUS = re.compile(r"\s*(?:\\pmod\s*|\(?\s*\\[bp]?mod(?![A-Za-z])\s*)\{?(\d+)\}?\s*\)?$")
_POWER = r"(?:\^\{?[23]\}?)?"
_TEXT_GROUP = re.compile(r"\s*\\(?:text|textrm|textbf|mathrm|mbox|rm|operatorname)\s*\{([^{}]*)\}\s*(\^\{?[23]\}?)?$")
_PLAIN = re.compile(rf"(\s+|(?<=[\d}})]))((?:[A-Za-z]+\.?{_POWER}(?:\s*/\s*|\s+)){{0,3}}[A-Za-z]+\.?{_POWER})$")
_PART = re.compile(r"(?:(square|sq\.?|cubic|cu\.?)\s+)?([A-Za-z]+)\.?(?:\^\{?([23])\}?)?(?:\s+(squared|cubed))?")
_NOT_UNITS = set("sin cos tan cot sec csc log ln exp mod and or pi sqrt min max gcd lcm if for the not".split())
_MAX_UNIT_CHARS = 60
_SHORTHAND = {"mph": "mi/h", "kmh": "km/h", "kph": "km/h", "kmph": "km/h"}


def split_unit(text: str, *, known_only: bool = False) -> tuple[str, str | None, bool]:
    r"""Take a currency sign, percent sign or unit off a tidy answer.

    Args:
        text: For example `35 cm`, `\$18.00`, `64\text{ square feet}`, `28 percent`, `72^{\circ}`.
        known_only: Leave words that are no known unit where they are (they may be part of an expression).

    Returns:
        The rest; the canonical unit, None without one or with an unknown one; whether it was a percentage.
    """
    # A unit is short: looking at the end only keeps the search linear.
    head, tail = text[:-_MAX_UNIT_CHARS], text[-_MAX_UNIT_CHARS:]
    if percent := _PERCENT.search(tail):
        return (head + tail[: percent.start()]).strip(), None, True
    if currency := _CURRENCY.match(text):
        sign = currency.group(1) or currency.group(3)
        return sign + text[currency.end() :].strip(), _CURRENCIES.get(currency.group(2), "dollar"), False
    if modulus := _MODULUS.search(tail):
        return (head + tail[: modulus.start()]).strip(), f"mod {modulus.group(1)}", False
    if degrees := _DEGREES.search(tail):
        return (head + tail[: degrees.start()]).strip(), "deg", False
    if group := _TEXT_GROUP.search(tail):
        words = group.group(1).strip() + (group.group(2) or "")
        unit = _canonical_unit(words)
        if unit is not None or (not known_only and _is_words(words)):
            return (head + tail[: group.start()]).strip(), unit, False
    if plain := _PLAIN.search(tail):
        words = plain.group(2)
        unit = _canonical_unit(words)
        # `5x` and `5m` are products; `5 m` and `5cm` are lengths.
        if unit is not None and len(words) > 1 and (plain.group(1) or not known_only):
            return (head + tail[: plain.start()]).strip(), unit, False
        if unit is not None and plain.group(1) and not known_only:
            return (head + tail[: plain.start()]).strip(), unit, False
        if unit is None and plain.group(1) and not known_only and _is_words(words):
            return (head + tail[: plain.start()]).strip(), None, False
    return text, None, False


def _canonical_unit(words: str) -> str | None:
    """Return one name for a unit such as `square feet`, `m^2`, `km/h`, `miles per hour`; None if unknown."""
    words = _SHORTHAND.get(words.strip().lower(), words.strip())
    parts = []
    for piece in re.split(r"\s*/\s*|\s+per\s+", words):
        part = _PART.fullmatch(piece.strip())
        if part is None:
            return None
        shape, word, exponent, suffix = part.groups()
        name = _WORDS.get(word) or _WORDS.get(word.lower())
        if name is None:
            return None
        power = exponent or {"s": "2", "c": "3"}.get((shape or suffix or " ")[0], "")
        parts.append(f"{name}^{power}" if power else name)
    return "/".join(parts)


def _is_words(words: str) -> bool:
    """Whether unknown words may stand for what is counted (`apples`), rather than for mathematics."""
    split = words.replace(".", " ").split()
    return 0 < len(split) <= 3 and all(
        word.isalpha() and len(word) >= 3 and word.lower() not in _NOT_UNITS for word in split
    )
