"""Output of a kernel, bounded at the source: long texts lose their middle before they are ever sent. Runs inside."""

from __future__ import annotations

import codecs
import contextlib
import os
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from ipykernel.iostream import OutStream

STREAM_CHARS = 1_000_000
"""Characters per stream and cell sent at once; of the rest only the last as many are sent, when the cell ends."""
STREAM_FLUSHES = 500
"""Explicit flushes per stream and cell that send a message of their own; later ones wait for the timer."""
TEXT_CHARS = 200_000
"""Characters of one displayed text or traceback."""
IMAGE_CHARS = 6_000_000
"""Characters of one displayed picture in base64."""
EVALUE_CHARS = 20_000


def cut_middle(text: str, limit: int) -> str:
    """Shorten `text` to about `limit` characters, keeping its head and tail and saying how much is gone."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters dropped ...]\n{text[-half:]}"


def clean(text: str) -> str:
    """Return text without lone surrogates: a message with one cannot be sent, and everything in it would be lost."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


def bounded(data: Mapping[str, Any]) -> dict[str, Any]:
    """Bound a mime bundle: long texts lose their middle, other large entries are left out."""
    kept: dict[str, Any] = {}
    for mime, value in data.items():
        if isinstance(value, str) and mime == "text/plain":
            kept[mime] = clean(cut_middle(value, TEXT_CHARS))
        elif not isinstance(value, str | bytes) or len(value) <= IMAGE_CHARS:
            kept[mime] = value
    return kept or {"text/plain": "[display dropped: too large]"}


class BoundedStream(OutStream):
    """`stdout` or `stderr` that sends the head of a cell's output at once and the tail at its end."""

    _cell: str | None = None
    _sent = 0
    _flushes = 0
    _unsent = False
    _tail_chars = 0
    _dropped = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._tail: deque[str] = deque()
        self._header: Any = None
        self._mark = b"\0" + os.urandom(16)
        self._drained = threading.Event()
        super().__init__(*args, **kwargs)

    def _watch_pipe_fd(self) -> None:
        """Forward what is written to the file descriptor itself, by other programs and C libraries.

        A mark in the stream tells `finish` that all before it has been forwarded: ipykernel would let the rest of
        one cell's output run into the next cell.
        """
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        held = b""
        with contextlib.suppress(OSError):
            while self._should_watch and (data := os.read(self._fid, 65536)):
                *ended, held = (held + data).split(self._mark)
                for part in ended:
                    self._forward(decoder.decode(part, final=True))
                    self._drained.set()
                keep = next((n for n in range(len(self._mark) - 1, 0, -1) if held.endswith(self._mark[:n])), 0)
                ready, held = held[: len(held) - keep], held[len(held) - keep :]
                self._forward(decoder.decode(ready))

    def _forward(self, text: str) -> None:
        if text:
            self.write(text)

    def drain_descriptor(self) -> None:
        """Wait until what other programs wrote to the file descriptor so far has been forwarded."""
        self._drained.clear()
        with contextlib.suppress(OSError, AttributeError):  # the cell may have closed it
            os.write(self._original_stdstream_fd, self._mark)
            self._drained.wait(0.5)

    def _enter(self) -> None:
        header = self.parent_header
        if header is not self._header:
            self._header = header
            cell = header.get("msg_id")
            if cell == self._cell:
                return
            self._cell, self._sent, self._flushes = cell, 0, 0
            self._tail.clear()
            self._tail_chars = self._dropped = 0

    def write(self, string: str) -> int | None:
        """Write like any text stream; what is over the bound is kept for `finish` or dropped."""
        if not isinstance(string, str):
            raise TypeError(f"write() argument must be str, not {type(string).__name__}")
        string = clean(string)
        with self._buffer_lock:
            self._enter()
            head = string[: max(0, STREAM_CHARS - self._sent)]
            self._sent += len(head)
            rest = string[len(head) :]
            if rest:
                self._dropped += max(0, len(rest) - STREAM_CHARS)
                rest = rest[-STREAM_CHARS:]
                self._tail.append(rest)
                self._tail_chars += len(rest)
                while self._tail_chars > STREAM_CHARS + 100_000:
                    gone = len(self._tail.popleft())
                    self._tail_chars -= gone
                    self._dropped += gone
        if head:
            super().write(head)
            self._unsent = True
        return len(string)

    def flush(self) -> None:
        """Send what is buffered, if there is anything, unless this cell has flushed too often already."""
        if not self._unsent:
            return  # IPython flushes four times per cell, and each wait for the IOPub thread takes a quarter of a ms
        self._flushes += 1
        if self._flushes <= STREAM_FLUSHES:
            self._unsent = False
            super().flush()

    def finish(self) -> None:
        """Send the kept tail with the number of dropped characters; called when a cell ends."""
        self.drain_descriptor()
        if self._flushes > STREAM_FLUSHES or self._tail:
            super().flush()
        if not self._tail:
            return
        with self._buffer_lock:
            text, dropped, parent = "".join(self._tail), self._dropped, self.parent_header
            self._tail.clear()
            self._tail_chars = self._dropped = 0
        content = {"name": self.name, "text": text, "dropped": dropped}
        self.session.send(self.pub_thread, "stream", content, parent=parent, ident=self.topic)
