"""A kernel as the environments see it: execute with a deadline that holds, then close."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any, Protocol

import zmq

from mappa_envs.errors import SandboxError
from mappa_envs.sandbox.base import CellResult, SandboxConfig
from mappa_envs.sandbox.client import Cell, Client
from mappa_envs.sandbox.output import CellOutput

START_SECONDS = 30.0
_SYNC_SECONDS = 1.0
_WARM_UP = "print(end='')\n_ = repr(__import__('pandas').Series([1.5, 2.5]).sum())\ndel _"
_DRAIN_SECONDS = 0.02
"""Time for messages that a kernel sent just before its end to be read."""


class Process(Protocol):
    """A kernel's process with its whole tree, however it was started."""

    prefix: str
    """Path prefix of the kernel's sockets on the host."""
    key: bytes
    exited: asyncio.Future[str]
    """Resolves to how it ended, in words."""

    def log(self) -> str:
        """Return the end of what it wrote to its own stderr, for errors while starting."""
        ...

    def kill(self) -> None:
        """Kill the whole process tree at once; never raises, may be called twice."""
        ...

    async def close(self) -> None:
        """Kill, wait for the end (bounded) and free what belongs to it. Safe to call twice."""
        ...


class SandboxKernel:
    """A persistent kernel of one agent; implements `Kernel`.

    Args:
        process: The running kernel.
        config: Limits.
        context: The sandbox's zmq context.
    """

    def __init__(self, process: Process, config: SandboxConfig, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        self.process = process
        self._config = config
        self._client = Client(context, process.prefix, process.key)
        self._lock = asyncio.Lock()
        self._closed = self._doomed = False
        self._killed_because = ""

    @property
    def alive(self) -> bool:
        """Whether it can still run cells."""
        return not self._closed and not self._doomed and not self.process.exited.done()

    async def warm_up(self, *, deep: bool = False) -> None:
        """Wait until the kernel answers on shell and iopub.

        Args:
            deep: Also run a little of what cells use, so that the first real cell does not pay for it.

        Raises:
            SandboxError: If it ends or stays silent instead; carries how it ended.
        """
        deadline = time.monotonic() + START_SECONDS
        pause = 0.2
        while True:
            cell = self._client.start_cell("pass", CellOutput(200), silent=True)
            await self._wait(cell, pause)
            if cell.reply is not None and cell.idle:
                break
            if self.process.exited.done():
                raise SandboxError(
                    "the kernel ended while starting",
                    got=f"{self.process.exited.result()}: {self.process.log()}",
                )
            if time.monotonic() > deadline:
                raise SandboxError(
                    "the kernel does not answer", expected=f"an answer within {START_SECONDS:.0f} s",
                    fix="check the load of the machine",
                )  # fmt: skip
            pause = min(2 * pause, 2.0)
        if deep:
            await self._wait(self._client.start_cell(_WARM_UP, CellOutput(200), silent=True), START_SECONDS)

    async def execute(self, code: str, *, timeout: float | None = None) -> CellResult:
        """Run a cell; see `Kernel.execute`."""
        async with self._lock:
            if not self.alive:
                raise SandboxError(
                    "this kernel cannot run cells any more", expected="an open kernel",
                    got="closed" if self._closed else self._killed_because or "its process has ended",
                    fix="ask the sandbox for a new kernel",
                )  # fmt: skip
            started = time.monotonic()
            output = CellOutput(self._config.output_chars)
            status = "died"
            try:
                cell = self._client.start_cell(code, output)
                status = await self._ladder(cell, self._config.timeout if timeout is None else timeout)
            except BaseException:
                # Cancelled in the middle of a cell: its state is unknown, so it must not run another.
                self._doomed = True
                self.process.kill()
                raise
            if status in ("died", "timeout_killed") and output.error_name is None:
                output.note(self._why(status))
            text, dropped, images = output.result()
            return CellResult(
                status=status,  # type: ignore[arg-type]
                output=text,
                dropped_chars=dropped,
                error_name=output.error_name if status == "error" else None,
                images=images,
                seconds=time.monotonic() - started,
            )

    def _why(self, status: str) -> str:
        if status == "timeout_killed":
            return "the cell did not stop when interrupted; its Python process was killed"
        return f"the Python process ended: {self._killed_because or self.process.exited.result()}"

    async def _ladder(self, cell: Cell, timeout: float) -> str:
        """Wait for the cell; then interrupt; then kill."""
        await self._wait(cell, timeout)
        if not cell.done.done() and self.process.exited.done():
            await asyncio.sleep(_DRAIN_SECONDS)
            return "died"
        if cell.done.done():
            # The reply decides; iopub may also carry errors that are not the cell's.
            reply = cell.reply or {"status": "error" if cell.output.error_name else "ok"}
            if reply.get("status") == "error":
                cell.output.error(reply)
                return "error"
            return "ok"
        interrupted = self._client.interrupt()
        await self._wait(cell, self._config.grace)
        if cell.done.done() and not self._doomed and await self._synced(interrupted):
            return "timeout"
        if self.process.exited.done():
            return "died"
        self._doomed = True
        self.process.kill()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self.process.exited), _SYNC_SECONDS)
        return "timeout_killed"

    async def _synced(self, interrupted: asyncio.Future[None]) -> bool:
        """Make sure that the interrupt cannot land in the next cell: have it acknowledged, then run a no-op."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(interrupted, _SYNC_SECONDS)
            cell = self._client.start_cell("pass", CellOutput(200), silent=True)
            await self._wait(cell, _SYNC_SECONDS)
            return cell.done.done()
        return False

    async def _wait(self, cell: Cell, seconds: float) -> None:
        ends: set[asyncio.Future[Any]] = {cell.done, self.process.exited}
        await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)

    def kill(self, why: str) -> None:
        """Kill the kernel; a cell that runs in it ends as `died` and says why."""
        self._killed_because = self._killed_because or why
        self._doomed = True
        self.process.kill()

    async def close(self) -> None:
        """Kill the kernel and all of its processes. Safe to call twice."""
        self._closed = True
        self.process.kill()
        self._client.close()
        await self.process.close()
