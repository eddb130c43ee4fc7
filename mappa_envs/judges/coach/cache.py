"""Replies on disk, by the hash of what was asked."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from mappa_envs.judges.coach.files import write_once


def content_key(asked: Any) -> str:
    """Return the hash of plain JSON data: equal data, equal key, in every process."""
    text = json.dumps(asked, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class ReplyCache:
    """A folder of replies that never change once they are written; any number of processes may use it.

    Args:
        folder: Made where it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> str | None:
        """Return the reply kept under a key, or None."""
        try:
            return self._path(key).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def put(self, key: str, reply: str) -> str:
        """Keep a reply and return the one to use: that of the first writer, if another process was faster."""
        return write_once(self._path(key), reply)

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.txt"
