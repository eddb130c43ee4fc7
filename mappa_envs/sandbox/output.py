"""What a cell printed and displayed, bounded in every direction. All of it is agent-controlled data."""

from __future__ import annotations

import base64
import binascii
import struct
from collections import deque
from collections.abc import Mapping
from typing import Any

from mappa_envs.sandbox.base import Image

MAX_IMAGES = 8
MAX_IMAGE_BYTES = 4 * 2**20
MAX_IMAGE_PIXELS = 16 * 2**20
_PNG = b"\x89PNG\r\n\x1a\n"


class HeadTail:
    """Text that keeps its first and last characters only, in bounded memory.

    Args:
        limit: Characters to keep, half of them from the head.
    """

    def __init__(self, limit: int) -> None:
        self._head_room = limit - limit // 2
        self._tail_limit = limit // 2
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._tail_chars = 0
        self._lost = 0
        self.last = "\n"
        """The last character of all, to tell whether a line is open."""

    def add(self, text: str, lost_before: int = 0) -> None:
        """Append `text`; `lost_before` characters between it and the text before were dropped by the sender."""
        if not text:
            return
        self.last = text[-1]
        if lost_before > 0:
            self._head_room = 0
            self._lost += lost_before
        head, rest = text[: self._head_room], text[self._head_room :]
        if head:
            self._head.append(head)
            self._head_room -= len(head)
        if rest:
            self._lost += max(0, len(rest) - self._tail_limit)
            rest = rest[-self._tail_limit :]
            self._tail.append(rest)
            self._tail_chars += len(rest)
            while self._tail_chars > self._tail_limit:
                over, first = self._tail_chars - self._tail_limit, self._tail[0]
                gone = min(over, len(first))
                self._tail[0] = first[gone:]
                if not self._tail[0]:
                    self._tail.popleft()
                self._tail_chars -= gone
                self._lost += gone

    @property
    def dropped(self) -> int:
        """Characters that were cut out."""
        return self._lost

    def text(self) -> str:
        """Return head and tail, with a line in between that says how much is missing, if anything is."""
        head, tail = "".join(self._head), "".join(self._tail)
        if not self._lost:
            return head + tail
        return f"{head}\n[... {self._lost} characters dropped ...]\n{tail}"


class CellOutput:
    """Collects the iopub messages of one cell.

    Args:
        limit: Characters of text to keep.
    """

    def __init__(self, limit: int) -> None:
        self._text = HeadTail(limit)
        self.images: list[Image] = []
        self.error_name: str | None = None
        self._refused = 0

    def message(self, kind: str, content: Mapping[str, Any]) -> None:
        """Take one message; whatever is malformed in it is left out."""
        if kind == "stream":
            lost = content.get("dropped")
            self._text.add(_clean(content.get("text")), lost if isinstance(lost, int) and lost > 0 else 0)
        elif kind in ("display_data", "execute_result", "update_display_data"):
            data = content.get("data")
            if isinstance(data, dict):
                self._line(_clean(data.get("text/plain")))
                self._image(data.get("image/png"))
        elif kind == "error":
            self.error(content)

    def error(self, content: Mapping[str, Any]) -> None:
        """Take the traceback of the cell's exception, once: the kernel sends it on two channels."""
        if self.error_name is not None:
            return
        self.error_name = _clean(content.get("ename"))[:200] or "Error"
        lines = content.get("traceback")
        text = "\n".join(map(_clean, lines)) if isinstance(lines, list) else ""
        self._line(text.strip("\n") or f"{self.error_name}: {_clean(content.get('evalue'))}")

    def note(self, text: str) -> None:
        """Add a line of the sandbox's own."""
        self._line(f"[{text}]")

    def result(self) -> tuple[str, int, tuple[Image, ...]]:
        """Return the text, the number of characters cut out of it, and the images."""
        if self._refused:
            self.note(f"{self._refused} image(s) dropped: more than {MAX_IMAGES}, too large, or not PNG")
            self._refused = 0
        return self._text.text(), self._text.dropped, tuple(self.images)

    def _line(self, text: str) -> None:
        if text:
            self._text.add(("" if self._text.last == "\n" else "\n") + text + "\n")

    def _image(self, encoded: object) -> None:
        if not isinstance(encoded, str):
            return
        data = b""
        if len(self.images) < MAX_IMAGES and len(encoded) <= MAX_IMAGE_BYTES * 4 // 3 + 200:
            try:
                data = base64.b64decode("".join(encoded.split()), validate=True)
            except (ValueError, binascii.Error):
                data = b""
        if png_pixels(data) is None:
            self._refused += 1
        else:
            self.images.append(Image("image/png", data))


def png_pixels(data: bytes) -> int | None:
    """Return the number of pixels that a PNG's header declares, or None if it is no PNG or too large."""
    if not data.startswith(_PNG) or len(data) < 33 or len(data) > MAX_IMAGE_BYTES or data[12:16] != b"IHDR":
        return None
    width, height = struct.unpack(">II", data[16:24])
    pixels = int(width) * int(height)
    return pixels if 0 < pixels <= MAX_IMAGE_PIXELS else None


def _clean(text: object) -> str:
    """Return text without lone surrogates, which no tokenizer and no file takes."""
    if not isinstance(text, str):
        return ""
    return text.encode("utf-8", "replace").decode("utf-8")
