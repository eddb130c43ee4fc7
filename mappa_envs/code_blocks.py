"""Fenced code in an action."""

from __future__ import annotations

_LANGUAGES = {"python", "py", "python3", ""}


def visible_text(action: str) -> str:
    """Return an action without its `<think>...</think>` parts; an unclosed one hides the rest.

    Reasoning models draft in there: neither tools nor graders may act on a draft. A lone `</think>` (templates
    that open the block inside the prompt) hides what stands before it.
    """
    parts: list[str] = []
    opened, closed = action.find("<think>"), action.find("</think>")
    # By index: cutting the rest off again and again would be quadratic on many short blocks.
    start = closed + len("</think>") if closed >= 0 and not 0 <= opened < closed else 0
    while True:
        opened = action.find("<think>", start)
        if opened < 0:
            return "".join([*parts, action[start:]])
        parts.append(action[start:opened])
        closed = action.find("</think>", opened)
        if closed < 0:
            return "".join(parts)
        start = closed + len("</think>")


def python_code(action: str) -> str | None:
    """Return the fenced Python of an action, all blocks joined in order, or None when there is none.

    A fence is a line that starts with three backticks (after spaces); its language is empty or Python. A block that
    is still open at the end of the text counts, since stop sequences often cut the closing fence.

    Args:
        action: The agent's text; fences inside `<think>` do not count.
    """
    blocks: list[str] = []
    current: list[str] | None = None
    inside_other = False
    for line in visible_text(action).splitlines():
        fence = line.strip()
        if fence.startswith("```"):
            if current is not None:
                blocks.append("\n".join(current))
                current = None
            elif inside_other:
                inside_other = False
            elif fence[3:].strip().lower() in _LANGUAGES:
                current = []
            else:
                inside_other = True
        elif current is not None:
            current.append(line)
    if current is not None:
        blocks.append("\n".join(current))
    code = "\n".join(block for block in blocks if block.strip())
    return code or None
