"""A datagram-keeping Unix socket that carries JSON and descriptors, for an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Callable
from typing import Any

Handler = Callable[[dict[str, Any] | None, list[int]], None]
_MESSAGE = 1 << 20


class Channel:
    """One end of a SOCK_SEQPACKET pair whose other end is in the sandbox: what comes from there is checked.

    Args:
        end: The socket; closed by `close`.
    """

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._end = end
        self._loop = asyncio.get_running_loop()
        self._handler: Handler | None = None

    def send(self, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> None:
        """Send one message; a reader that is gone is no error."""
        with contextlib.suppress(OSError):
            socket.send_fds(self._end, [json.dumps(message).encode()], list(descriptors))

    def listen(self, handler: Handler) -> None:
        """Call `handler` for every message, and once with None at the end."""
        self._handler = handler
        self._loop.add_reader(self._end.fileno(), self.drain)

    def drain(self) -> None:
        """Handle what has arrived."""
        while self._handler is not None and self._end.fileno() >= 0:
            try:
                message, descriptors = self._take()
            except BlockingIOError:
                return
            if message is None:
                self._loop.remove_reader(self._end.fileno())
                handler, self._handler = self._handler, None
                handler(None, [])
            else:
                self._handler(message, descriptors)

    async def receive(self, seconds: float) -> tuple[dict[str, Any] | None, list[int]]:
        """Wait for one message; None if the other end closes or `seconds` pass."""
        arrived: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self._end.fileno(), lambda: None if arrived.done() else arrived.set_result(None))
        try:
            await asyncio.wait_for(arrived, seconds)
            return self._take()
        except (TimeoutError, BlockingIOError):
            return None, []
        finally:
            if self._end.fileno() >= 0:
                self._loop.remove_reader(self._end.fileno())

    def _take(self) -> tuple[dict[str, Any] | None, list[int]]:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._end, _MESSAGE, 4, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            raise
        except OSError:
            return None, []
        message: Any = None
        with contextlib.suppress(ValueError, RecursionError):
            message = json.loads(data)
        if not isinstance(message, dict):
            for descriptor in descriptors:
                os.close(descriptor)
            return None, []
        return message, descriptors

    def close(self) -> None:
        """Close this end. Safe to call twice."""
        self._handler = None
        if self._end.fileno() >= 0:
            self._loop.remove_reader(self._end.fileno())
            self._end.close()
