"""Reading the score out of a coach's reply: strictly, or not at all."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from mappa_envs.judges.coach.markers import SCORE_HEAD, SCORE_KEY
from mappa_envs.thoughts import visible_text
from mappa_envs.transcript import MAX_SCORE, MIN_SCORE

_NUMBER = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{1,12})?")
_VALUE = re.compile(
    rf"[ \t*_`\[(]*(?P<number>{_NUMBER.pattern})[ \t*_`\])]*"
    r"(?:(?:/|out[ \t]+of)[ \t]*(?P<scale>[0-9]{1,9}(?:\.0{1,12})?)[ \t*_`\])]*)?\.?[ \t*_`]*"
)
_LONGEST_VALUE = 100
"""Longer rests of a score line hold prose; the pattern is quadratic in blanks."""
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(?P<body>.*)\n[ \t]*```", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reply was read as."""

    score: float | None
    """0 to 10, or None: the reply has no usable score."""
    reason: str
    """The coach's reasons; where there is no score, what is wrong with the reply."""


def parse_score(reply: object, *, thinking: bool = False) -> Reading:
    """Read a coach's reply.

    Thoughts (see `thoughts`) are left out first. Then the reply is either one JSON object with the key `score`, alone
    or in one fenced block, or a text whose *last* line that starts with `SCORE:` holds nothing but a number,
    optionally `/10`. A number out of range, on another scale, with anything else on its line, or given twice in one
    object is no score: nothing is clamped, defaulted or searched for.

    Args:
        reply: What the endpoint gave as content; anything but a text is no reply.
        thinking: The reply starts within a thought that the prompt opened.
    """
    if not isinstance(reply, str) or not reply.strip():
        return Reading(None, "empty reply")
    text = visible_text(reply, thinking=thinking).strip()
    if not text:
        return Reading(None, "the reply is all thinking")
    found = _from_object(text)
    return found if found is not None else _from_line(text)


def _from_object(text: str) -> Reading | None:
    fenced = _FENCED.fullmatch(text)
    body = fenced["body"].strip() if fenced else text
    # Unlike json.loads this also asks for the key as written, which quoted text never has (`markers.defuse`).
    if not body.startswith("{") or not SCORE_KEY.search(body):
        return None
    try:
        pairs = json.loads(body, object_pairs_hook=_Pairs, strict=False)
    except (ValueError, RecursionError):
        return Reading(None, "the reply is a broken JSON object")
    scores = [value for key, value in pairs if key.strip().lower() == "score"]
    if len(scores) != 1:
        return Reading(None, f"the reply's object has {len(scores)} scores")
    reasons = [value for key, value in pairs if key.strip().lower() == "reason" and isinstance(value, str)]
    return _checked(scores[0], "\n".join(reasons).strip())


class _Pairs(list[tuple[str, Any]]):
    """An object as its pairs: a dict would hide that a key came twice."""


def _from_line(text: str) -> Reading:
    heads = list(SCORE_HEAD.finditer(text))
    if not heads:
        return Reading(None, "the reply has no score")
    line = text[heads[-1].end() :].split("\n", 1)[0].rstrip("\r")
    found = _VALUE.fullmatch(line) if len(line) <= _LONGEST_VALUE else None
    if found is None:
        return Reading(None, f"unclear score {line.strip()[:80]!r}")
    if found["scale"] is not None and float(found["scale"]) != MAX_SCORE:
        return Reading(None, f"score {line.strip()[:80]!r} is not out of 10")
    return _checked(float(found["number"]), text[: heads[-1].start()].strip())


def _checked(value: object, reason: str) -> Reading:
    if isinstance(value, str) and (number := _NUMBER.fullmatch(value.strip(" "))):
        value = float(number.group())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Reading(None, f"the reply's score is {json.dumps(value, default=str)[:80]}, not a number")
    if not MIN_SCORE <= value <= MAX_SCORE:
        return Reading(None, f"score {str(value)[:80]} is not between 0 and 10")
    return Reading(abs(float(value)), reason)
