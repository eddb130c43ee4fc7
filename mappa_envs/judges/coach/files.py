"""Files that several processes append to or fill at once."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mappa_envs.errors import JudgeError


def append_line(path: Path, record: Any) -> None:
    """Append one JSON line in one write, so that lines of several processes do not mix."""
    data = (json.dumps(record, ensure_ascii=False) + "\n").encode("utf-8", "replace")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        while data:
            data = data[os.write(handle, data) :]
    finally:
        os.close(handle)


def read_lines(path: Path, start: int = 0) -> Iterator[tuple[int, Any]]:
    """Yield the JSON lines of a file from a byte offset on, each with the offset after it.

    A last line that is still being written (no line feed yet) is left for the next call.

    Raises:
        JudgeError: If a line is not JSON.
    """
    with path.open("rb") as lines:
        lines.seek(start)
        for line in lines:
            if not line.endswith(b"\n"):
                return
            start += len(line)
            try:
                yield start, json.loads(line)
            except ValueError as error:
                raise JudgeError(
                    f"{path} is damaged",
                    expected="one JSON object per line",
                    got=f"{line[:60]!r} before byte {start}",
                    fix="delete that line",
                ) from error


def write_once(path: Path, text: str) -> str:
    """Fill a file as a whole unless it is there, and return what it holds: the first of several writers wins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.unlink(temporary)
    return path.read_text(encoding="utf-8")
