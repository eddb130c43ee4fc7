"""What of a text is thought and what is said: the one rule for tools, graders, judges, coaches and other agents.

Reasoning models draft inside `<think>...</think>`, and nobody may act on a draft. The rule:

- A tag is `<NAME>`, `<NAME attribute=...>` or `</NAME>`, in any case, where NAME is one of `NAMES`. Tags of
  different names open and close for one another; `< think>` and `<think/>` are no tags.
- An opening tag hides what follows, up to the next closing tag; without one, to the end. Opening tags on the way are
  part of the thought.
- A closing tag that nothing opened hides what stands before it, back to the closing tag before, or to the start:
  templates that open the block inside the prompt leave only its end in the response, and a thought that mentions
  `<think></think>` goes on after the mention.
- All else is visible. Text in front of an opening tag is visible whatever follows, code too.
- Tags in the strings and comments of fenced Python are code, in thoughts as well. That holds for a whole block: its
  fence must be closed, and all tags in it must be in strings or comments.
"""

from __future__ import annotations

import io
import re
import tokenize

from mappa_envs.fences import FENCE, opens_python

NAMES = ("think", "thinking", "thought", "thoughts", "reasoning", "reflection")
"""Names of tags around thoughts."""

TAG = re.compile(
    rf"<(?P<slash>/?)(?:{'|'.join(NAMES)})(?:\s{{1,9}}[a-z_][\w-]{{0,30}}=[^<>\n]{{0,99}})?\s{{0,9}}>", re.IGNORECASE
)
"""A tag of a thought."""

OPENING = "<think>"
"""How this project writes an opening tag."""

_LONGEST_CODE = 100_000
"""Characters of a block in which strings are told from other code."""
_IN_STRINGS = frozenset(
    getattr(tokenize, name, tokenize.STRING)
    for name in ("STRING", "COMMENT", "FSTRING_MIDDLE", "TSTRING_MIDDLE")  # the latter since Python 3.12 and 3.14
)
_MARK = re.compile(rf"(?P<fence>{FENCE.pattern})|{TAG.pattern}", re.IGNORECASE | re.MULTILINE)
_GLUED_FENCE = re.compile(rf"({TAG.pattern})(?=[ \t]*`{{3,}}[^`\n]*$)", re.IGNORECASE | re.MULTILINE)


def visible_text(text: str, *, thinking: bool = False) -> str:
    """Return a text without its thoughts; what is left has no further thoughts in it.

    Args:
        text: An action, a reply.
        thinking: It starts within a thought that the prompt opened.
    """
    if TAG.search(text) is None:
        return "" if thinking else text
    # A fence right behind a tag would lose its line when the thought in front of it goes.
    text = _GLUED_FENCE.sub(r"\1\n", text)
    seen = _without_thoughts(text, thinking, spare_code=True)
    if TAG.search(seen) is None or _without_thoughts(seen, False, spare_code=True) == seen:
        return seen
    # What was cut out left a tag or a fence in its place, which nobody writes by chance: then no tag is code.
    return defuse_tags(_without_thoughts(text, thinking, spare_code=False))


def opens_thought(text: str) -> bool:
    """Whether a prompt ends with a tag that opens a thought."""
    tags = list(TAG.finditer(text))
    return bool(tags) and not tags[-1]["slash"] and not text[tags[-1].end() :].strip()


def defuse_tags(text: str) -> str:
    """Return a text in which no tag is one any more: `<think>` becomes `< think>`."""
    return TAG.sub(lambda tag: f"< {tag.group()[1:]}", text)


def _without_thoughts(text: str, thinking: bool, *, spare_code: bool) -> str:
    kept: list[str] = []
    start = position = 0
    in_block = was_in_block = False
    while (mark := _MARK.search(text, position)) is not None:
        position = mark.end()
        if mark["fence"] is not None:
            position = mark.start("info")  # tags may follow on its line
            if not in_block and spare_code and (end := _end_of_code(text, mark)) is not None:
                position = end
            else:
                in_block = not in_block
        elif mark["slash"]:
            # Blocks that a thought left open are none of what follows it.
            in_block = was_in_block
            start, thinking = position, False
        elif not thinking:
            kept.append(text[start : mark.start()])
            was_in_block, in_block, thinking = in_block, False, True
    return "".join(kept if thinking else [*kept, text[start:]])


def _end_of_code(text: str, opening: re.Match[str]) -> int | None:
    """Return where a block of Python ends if all tags in it are in strings or comments, else None."""
    closing = FENCE.search(text, opening.end()) if opens_python(opening) else None
    if closing is None or closing.start() - opening.end() > _LONGEST_CODE:
        return None
    code = text[opening.end() + 1 : closing.start()]
    tags = len(TAG.findall(code))
    return closing.start("info") if tags and _tags_in_strings(code) == tags else None


def _tags_in_strings(code: str) -> int:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return 0
    return sum(len(TAG.findall(token.string)) for token in tokens if token.type in _IN_STRINGS)
