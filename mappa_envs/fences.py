"""Fenced code blocks in a text, found in one way everywhere."""

from __future__ import annotations

import re

FENCE = re.compile(r"^[ \t]*`{3,}(?P<info>[^`\n]*)$", re.MULTILINE)
"""A line that opens or closes a block: three or more backticks, after blanks, and no other backtick on the line."""

_PYTHON = frozenset({"python", "py", "python3", ""})


def opens_python(fence: re.Match[str]) -> bool:
    """Whether a fence that opens a block says Python, or no language."""
    return fence["info"].strip().lower() in _PYTHON
