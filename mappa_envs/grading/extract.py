"""Finding the final answer in an action, in time linear in its length."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

from mappa_envs.grading.policy import DEFAULT_POLICY, GradingPolicy
from mappa_envs.thoughts import visible_text

MAX_FALLBACK_CHARS = 200
"""Characters after "The answer is" in which an unboxed answer is looked for."""

_TOKEN = re.compile(r"\\(?:boxed|fbox|framebox)\b\s*|\\.|[{}]", re.DOTALL)
_BARE_BOX = re.compile(r"[-+\u2212]?\d+(?:\.\d+)?|[A-Za-z]\b")
_CONNECTIVES = re.compile(r"\\text|\band\b|\bor\b|[\s$,;.*\\()\[\]{}~&]")
_MAX_GAP = 30
_MAX_GROUP = 20
_PHRASE = re.compile(
    r"answer(?:\s+to\s+[^.\n]{0,60})?\s{0,5}(?:is|should\s+be|must\s+be|equals|:|=)[\s:=*]{0,5}", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"\n|\.(?=\s|$|\*)|[!?](?=\s[A-Z])|<")
_TAGGED = re.compile(r"<answer>([^<]{1,200})</answer>", re.IGNORECASE)
_BARE_ANSWER_CHARS = 60


@dataclass(frozen=True, slots=True)
class Extraction:
    """The final answer of an action."""

    text: str | None
    """The answer as written, without its box; None if there is none."""
    boxed: bool
    r"""Whether it stood in a `\boxed{}`."""
    count: int
    """Number of complete boxes outside `<think>`; a box inside a box does not count."""
    several: bool = False
    r"""Whether the last boxes stood side by side with different contents ("\boxed{5} or \boxed{6}"); `text` is
    then all of them, separated by commas."""
    truncated: bool = False
    """Whether the last box was never closed; there is no answer then."""


def extract_answer(text: str, *, policy: GradingPolicy = DEFAULT_POLICY) -> Extraction:
    r"""Find the final answer: the last `\boxed{}` outside `<think>`, else what follows "the answer is".

    Args:
        text: The whole action.
        policy: `require_box` turns the search outside boxes off.
    """
    visible = visible_text(text)
    boxes, truncated = _boxes(visible)
    if truncated:
        return Extraction(None, False, len(boxes), truncated=True)
    if boxes:
        group = [boxes[-1]]
        for box in reversed(boxes[-_MAX_GROUP:-1]):
            if not _is_connective(visible[box.end : group[-1].start]):
                break
            group.append(box)
        contents = list(dict.fromkeys(visible[slice(*box.inner)].strip() for box in reversed(group)))
        return Extraction(", ".join(contents), True, len(boxes), several=len(contents) > 1)
    if not policy.require_box and (found := _unboxed(visible)) is not None:
        return Extraction(found, False, 0)
    return Extraction(None, False, 0)


def boxed_contents(text: str) -> tuple[str, ...]:
    """Return the different contents of the complete boxes outside `<think>`, in order, without outer spaces."""
    visible = visible_text(text)
    return tuple(dict.fromkeys(visible[slice(*box.inner)].strip() for box in _boxes(visible)[0]))


@dataclass(frozen=True, slots=True)
class _Box:
    start: int
    inner: tuple[int, int]
    end: int


def _boxes(text: str) -> tuple[list[_Box], bool]:
    """Return the complete outermost boxes in order, and whether the last box to be opened is unclosed."""
    boxes: list[_Box] = []
    # One entry per open brace: (start of its box command or -1 for a plain brace, start of its content).
    open_braces: list[tuple[int, int]] = []
    command = (-1, -1)
    last_opened = -1
    for token in _TOKEN.finditer(text):
        value, start, end = token.group(), token.start(), token.end()
        if value == "{":
            box_start = command[0] if command[1] == start else -1
            open_braces.append((box_start, end))
            last_opened = max(last_opened, box_start)
        elif value == "}":
            box_start, inner_start = open_braces.pop() if open_braces else (-1, -1)
            if box_start >= 0:
                while boxes and boxes[-1].start > box_start:
                    boxes.pop()
                boxes.append(_Box(box_start, (inner_start, start), end))
        elif value.startswith(("\\boxed", "\\fbox", "\\framebox")):
            command = (start, end)
            if bare := _BARE_BOX.match(text, end):
                boxes.append(_Box(start, (end, bare.end()), bare.end()))
    return boxes, any(box_start == last_opened >= 0 for box_start, _ in open_braces)


def _is_connective(gap: str) -> bool:
    return len(gap) <= _MAX_GAP and not _CONNECTIVES.sub("", gap)


def _unboxed(text: str) -> str | None:
    tagged = deque(_TAGGED.finditer(text), maxlen=1)
    if tagged:
        return tagged[0].group(1).strip() or None
    phrase = deque(_PHRASE.finditer(text), maxlen=1)
    if phrase:
        start = phrase[0].end()
        rest = text[start : start + MAX_FALLBACK_CHARS]
        end = _SENTENCE_END.search(rest)
        found = rest[: end.start()] if end else rest
        return found.strip().strip("*").strip() or None
    whole = text.strip()
    if 0 < len(whole) <= _BARE_ANSWER_CHARS and "\n" not in whole and any(c.isdigit() for c in whole):
        return whole
    return None
