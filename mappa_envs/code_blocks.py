"""Fenced code in an action."""

from __future__ import annotations

from mappa_envs.fences import FENCE, opens_python
from mappa_envs.thoughts import visible_text


def python_code(action: str) -> str | None:
    """Return the fenced Python of an action, all blocks joined in order, or None when there is none.

    A fence is a line of three or more backticks and, where it opens a block, its language: none or Python. A block
    that is still open at the end of the text counts, since stop sequences often cut the closing fence.

    Args:
        action: The agent's text; fences in thoughts do not count (see `thoughts`).
    """
    text = visible_text(action)
    blocks: list[str] = []
    opening = None
    for fence in FENCE.finditer(text):
        if opening is None:
            opening = fence
        else:
            blocks += [text[opening.end() + 1 : fence.start()]] if opens_python(opening) else []
            opening = None
    if opening is not None and opens_python(opening):
        blocks.append(text[opening.end() + 1 :])
    code = "\n".join(block.replace("\r\n", "\n").removesuffix("\n") for block in blocks if block.strip())
    return code or None
