"""A kernel forked from the zygote, as the host holds it: by pidfds and a report channel, never by a number."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from pathlib import Path
from typing import Any

from mappa_envs.errors import SandboxError
from mappa_envs.sandbox.base import Level, SandboxConfig
from mappa_envs.sandbox.cgroup import Cgroups, host_pid, release
from mappa_envs.sandbox.channel import Channel
from mappa_envs.sandbox.spawned import describe_exit

ORDER_SECONDS = 30.0


class ServerProcess:
    """A kernel forked from the zygote; implements `Process`.

    Args:
        name: Its name at the server.
        prefix: Path prefix of its sockets on the host.
        key: Its signing key.
        report: Channel to its monitor.
        level: The server's level.
    """

    def __init__(self, name: str, prefix: str, key: bytes, report: Channel, level: Level) -> None:
        loop = asyncio.get_running_loop()
        self.name, self.prefix, self.key, self.level = name, prefix, key, level
        self.exited: asyncio.Future[str] = loop.create_future()
        self.facts: dict[str, Any] | None = None
        self._loop, self._report = loop, report
        self._ready: asyncio.Future[None] = loop.create_future()
        self._attached: asyncio.Future[str | None] | None = None
        self._pidfds: list[int] = []
        self._failure = ""
        self._killed = False
        self._closed = False
        self._groups: list[Path] = []
        self._holding: asyncio.Future[None] | None = None
        report.listen(self._on_message)

    async def ready(self) -> None:
        """Wait until the kernel is set up.

        Raises:
            SandboxError: If it fails or ends instead.
        """
        waiting: set[asyncio.Future[Any]] = {self._ready, self.exited}
        await asyncio.wait(waiting, timeout=ORDER_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if not self._ready.done():
            ended = self.exited.result() if self.exited.done() else "no answer"
            raise SandboxError("a kernel did not start", got=f"{ended} {self._failure}".strip())

    async def attached(self) -> None:
        """Wait for the monitor to mount the workspace that was sent to it.

        Raises:
            SandboxError: If it fails or ends instead.
        """
        self._attached = self._loop.create_future()
        waiting: set[asyncio.Future[Any]] = {self._attached, self.exited}
        await asyncio.wait(waiting, timeout=ORDER_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        error = self._attached.result() if self._attached.done() else "the kernel ended or does not answer"
        if error is not None:
            raise SandboxError("a workspace could not be mounted", got=error)

    def hold(self, cgroups: Cgroups, config: SandboxConfig) -> None:
        """Begin to put the kernel and its monitor into control groups.

        Linux takes up to 10 ms for a move, in which the kernel goes on starting; see `held`.
        """

        def move() -> None:
            pids = [pid for pid in map(host_pid, self._pidfds) if pid is not None]
            with contextlib.suppress(OSError):  # it has ended meanwhile
                self._groups = cgroups.hold(pids, config)

        self._holding = asyncio.ensure_future(asyncio.to_thread(move))

    async def held(self) -> None:
        """Wait until the kernel is in its control groups, where it is to be in any: before it runs agent code."""
        if self._holding is not None:
            await self._holding

    def log(self) -> str:
        """Return why it failed to start, if it did."""
        return self._failure

    def signal(self, number: int) -> None:
        """Send a signal to the kernel's own process; nothing happens if it has ended."""
        for pidfd in self._pidfds[1:]:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(pidfd, number)

    def kill(self) -> None:
        """Kill the kernel with all of its processes."""
        self._killed = True
        # At level 3 the first is the pid namespace's process 1. Below, the monitor must live to bury orphans.
        for pidfd in self._pidfds if self.level == Level.FULL else self._pidfds[1:]:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        if not self.exited.done() and not self._closed:
            self._report.send({"kill": True})

    async def close(self) -> None:
        """Kill, wait for the end and free descriptors and socket files."""
        if self._closed:
            return
        self.kill()
        await self.held()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self.exited), 7)
        self._closed = True
        for pidfd in self._pidfds:
            self._loop.remove_reader(pidfd)
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.close(pidfd)
        self._pidfds = []
        self._report.close()
        folder = os.path.dirname(self.prefix)
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        if self._groups:
            await asyncio.to_thread(release, self._groups)

    def _on_message(self, message: dict[str, Any] | None, descriptors: list[int]) -> None:
        if message is None:
            self._end("its monitor is gone")
        elif "started" in message and len(descriptors) == 2 and not self._closed:
            self._pidfds = descriptors
            self._loop.add_reader(descriptors[0], self._on_monitor_end)
            if self._killed:
                self.kill()
        elif "ready" in message:
            self.facts = message.get("facts")
            if not self._ready.done():
                self._ready.set_result(None)
        elif "attached" in message and self._attached is not None and not self._attached.done():
            self._attached.set_result(None if message["attached"] else str(message.get("error")))
        elif "failed" in message:
            self._failure = str(message["failed"])
        elif "exit" in message:
            self._end(str(message["why"] or describe_exit(int(message["exit"]))))

    def _on_monitor_end(self) -> None:
        self._loop.remove_reader(self._pidfds[0])
        # What it reported last may still lie in the channel.
        self._report.drain()
        self._end("killed" if self._killed else "its monitor was killed")

    def _end(self, how: str) -> None:
        if not self.exited.done():
            self.exited.set_result(how)
