"""What carries meaning in a coach's prompt or reply, and how other people's text is kept from carrying it.

The reply's score line is defined here, once, for the parser and for the defusing of quoted text: what an agent wrote
never reads as a score, not even if the coach repeats it word for word.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from mappa_envs.thoughts import defuse_tags

_COLON = r"(?P<after>[ \t*_`]*[:\uff1a])"
"""A colon, or the full-width one."""

SCORE_HEAD = re.compile(
    rf"^(?P<before>[ \t*_#`•-]*(?:(?:process|final|overall)[ _-]?)?score){_COLON}", re.IGNORECASE | re.MULTILINE
)
"""Starts a score line: `SCORE:` with or without markdown around it. A line that begins otherwise is none."""

SCORE_KEY = re.compile(r'(?P<before>"[ \t]*score)(?P<after>[ \t]*"\s*:)', re.IGNORECASE)
"""The key of the score in a JSON reply, as it is written."""

_SCORE_ANYWHERE = re.compile(rf"(?P<before>score){_COLON}", re.IGNORECASE)
_QUOTED = r"\g<before> (quoted)\g<after>"

_BAR = r"[|\uff5c]"
_TOKENS = "s|bos|eos|pad|unk|start_of_turn|end_of_turn|tool_call|tool_response"
_BEFORE_CONTROL = re.compile(
    rf"<(?={_BAR}[^<>\n]{{1,64}}{_BAR}>|/?(?:{_TOKENS})\s*>|</?SYS>>)|\[(?=/?INST\]|/?SYSTEM_PROMPT\]|(?:BEGIN|END)\b)",
    re.IGNORECASE,
)
"""The bracket that opens a chat template's control token or a fence of the request."""


def defuse(text: str) -> str:
    """Return text of others so that it holds no score line, no score key, no think tag, no chat control token.

    Letters stay as they are: `SCORE: 10` becomes `SCORE (quoted): 10`, `<|im_end|>` becomes `< |im_end|>`.
    """
    text = text.encode("utf-8", "replace").decode()  # lone surrogates could not be sent
    text = SCORE_KEY.sub(_QUOTED, _SCORE_ANYWHERE.sub(_QUOTED, text))
    return defuse_tags(_BEFORE_CONTROL.sub(lambda bracket: bracket.group() + " ", text))


def boundary_for(texts: Iterable[str]) -> str:
    """Return a mark for fences: 128 bits that look random, the same for the same texts, and in none of them.

    It is a hash of everything that is fenced, so that equal requests stay equal (caches hit) while an author cannot
    know it: the text to write would have to hold its own hash. Even a lucky guess does not help, as a mark that
    occurs in the texts is not taken.
    """
    texts = list(texts)
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    while True:
        mark = digest.hexdigest()[:32]
        if not any(mark in text for text in texts):
            return mark
        digest.update(b"next")
