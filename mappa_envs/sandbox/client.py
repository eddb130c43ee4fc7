"""An async Jupyter client of one kernel: shell, control and iopub over ipc, read without ever blocking the loop.

`jupyter_client`'s own client waits in fixed steps and has no bound on what it buffers; only its message format
(`Session`: signatures, serialisation) is used here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import zmq
from jupyter_client.session import Session

from mappa_envs.sandbox.output import CellOutput

PORTS = {"shell": 1, "iopub": 2, "stdin": 3, "control": 4, "hb": 5}
"""With ipc transport a "port" is a file name suffix: the socket of port n is `{ip}-{n}`."""
MAX_MESSAGE_BYTES = 32 * 2**20
"""libzmq drops a connection that sends more at once, before any of it is parsed."""
SETTLE_SECONDS = 1.0
"""How long to wait for the second half of a cell's end (reply, idle) after the first: iopub may drop messages."""
_BATCH = 200


@dataclass
class Cell:
    """One execute request under way."""

    msg_id: str
    output: CellOutput
    done: asyncio.Future[None]
    reply: dict[str, Any] | None = None
    idle: bool = False
    settling: asyncio.TimerHandle | None = field(default=None, repr=False)

    def progress(self) -> None:
        """Resolve `done` once reply and idle are both in, or a while after the first of them."""
        if self.done.done():
            return
        if self.reply is not None and self.idle:
            self.done.set_result(None)
        elif self.settling is None:
            self.settling = self.done.get_loop().call_later(SETTLE_SECONDS, self._give_up)

    def _give_up(self) -> None:
        if not self.done.done():
            self.done.set_result(None)


class Client:
    """Connection to one kernel. All methods belong to the loop that it was made on.

    Args:
        context: The sandbox's zmq context.
        prefix: Path prefix of the kernel's sockets on this side.
        key: The kernel's signing key.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], prefix: str, key: bytes) -> None:
        self._loop = asyncio.get_running_loop()
        self._session = Session(key=key, username="host")
        self._cell: Cell | None = None
        self._interrupted: asyncio.Future[None] | None = None
        self._sockets: dict[str, zmq.Socket[bytes]] = {}
        self._closed = False
        kinds = (("shell", zmq.DEALER), ("control", zmq.DEALER), ("iopub", zmq.SUB))
        for channel, kind in kinds:
            socket = context.socket(kind)
            socket.linger = 0
            socket.rcvhwm = 10_000
            socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
            if kind == zmq.SUB:
                socket.subscribe(b"")
            socket.connect(f"ipc://{prefix}-{PORTS[channel]}")
            self._sockets[channel] = socket
            self._loop.add_reader(socket.fileno(), self._drain, channel)

    def start_cell(self, code: str, output: CellOutput, *, silent: bool = False) -> Cell:
        """Send a cell and return its state; only the newest cell's messages are looked at."""
        content = {
            "code": code,
            "silent": silent,
            "store_history": not silent,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        message = self._session.msg("execute_request", content)
        self._cell = Cell(message["header"]["msg_id"], output, self._loop.create_future())
        self._send("shell", message)
        return self._cell

    def interrupt(self) -> asyncio.Future[None]:
        """Ask the kernel to interrupt its cell; the future resolves when it has sent itself the signal."""
        self._interrupted = self._loop.create_future()
        self._send("control", self._session.msg("interrupt_request", {}))
        return self._interrupted

    def close(self) -> None:
        """Close the sockets at once. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        for socket in self._sockets.values():
            with contextlib.suppress(OSError, ValueError):
                self._loop.remove_reader(socket.fileno())
            socket.close(linger=0)
        if self._cell is not None and self._cell.settling is not None:
            self._cell.settling.cancel()

    def _send(self, channel: str, message: dict[str, Any]) -> None:
        socket = self._sockets[channel]
        with contextlib.suppress(zmq.Again):  # a full queue means a dead kernel, which its exit tells
            socket.send_multipart(self._session.serialize(message), zmq.NOBLOCK)
        # zmq's descriptor is edge-triggered and a send may swallow an edge.
        self._loop.call_soon(self._drain, channel)

    def _drain(self, channel: str) -> None:
        if self._closed:
            return
        socket, handle = self._sockets[channel], self._handler(channel)
        for _ in range(_BATCH):
            try:
                frames = socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            message = self._parse(frames)
            if message is not None:
                handle(message)
        self._loop.call_soon(self._drain, channel)

    def _handler(self, channel: str) -> Callable[[dict[str, Any]], None]:
        return {"shell": self._on_shell, "control": self._on_control, "iopub": self._on_iopub}[channel]

    def _parse(self, frames: list[bytes]) -> dict[str, Any] | None:
        """Return a message, or None for anything forged or malformed: the deadline still holds without it."""
        try:
            _, parts = self._session.feed_identities(frames)
            message = self._session.deserialize(parts)
            parent = message["parent_header"]
            if isinstance(parent, dict) and isinstance(message["content"], dict):
                return {
                    "kind": message["msg_type"],
                    "parent": parent.get("msg_id"),
                    "content": message["content"],
                }
        except Exception:
            return None
        return None

    def _on_shell(self, message: dict[str, Any]) -> None:
        cell = self._cell
        if cell is not None and message["parent"] == cell.msg_id and message["kind"] == "execute_reply":
            cell.reply = message["content"]
            cell.progress()

    def _on_control(self, message: dict[str, Any]) -> None:
        waiting = self._interrupted
        if message["kind"] == "interrupt_reply" and waiting is not None and not waiting.done():
            waiting.set_result(None)

    def _on_iopub(self, message: dict[str, Any]) -> None:
        cell = self._cell
        if cell is None or message["parent"] != cell.msg_id:
            return
        if message["kind"] == "status":
            if message["content"].get("execution_state") == "idle":
                cell.idle = True
                cell.progress()
        else:
            cell.output.message(message["kind"], message["content"])
