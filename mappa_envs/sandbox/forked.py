"""A sandbox whose kernels are forked from a preloaded server (levels 3, 2 and 1)."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Any

import zmq

from mappa_envs.errors import SandboxError
from mappa_envs.sandbox.base import Level, SandboxConfig, Workspace
from mappa_envs.sandbox.kernel import SandboxKernel
from mappa_envs.sandbox.layout import Layout
from mappa_envs.sandbox.pool import KernelPool
from mappa_envs.sandbox.process import ServerProcess
from mappa_envs.sandbox.server import Server
from mappa_envs.sandbox.workspace import HostWorkspace

DISK_WATCH_SECONDS = 0.5


@dataclass
class Warm:
    """A warm kernel, below level 3 together with the workspace that it is confined to."""

    kernel: SandboxKernel
    server: Server
    workspace: HostWorkspace | None

    @property
    def alive(self) -> bool:
        """Whether its kernel can run cells."""
        return self.kernel.alive

    async def close(self) -> None:
        """End both."""
        await self.kernel.close()
        if self.workspace is not None:
            await self.workspace.close()


class ForkedSandbox:
    """A `Sandbox` on one server, with a pool of warm kernels.

    At level 3 a warm kernel gets its workspace mounted when it is handed out. Below, a kernel is bound to its
    workspace from the start, so the pool holds pairs: an episode's first kernel is warm, its others are forked
    when they are asked for.

    Args:
        server: The running server; owned by this object.
        layout: What it was started with, to start another one if it dies.
    """

    def __init__(self, server: Server, layout: Layout) -> None:
        self.config: SandboxConfig = server.config
        self.level: Level = server.level
        self._server, self._layout = server, layout
        self._context: zmq.Context[Any] = zmq.Context()
        self._context.set(zmq.MAX_SOCKETS, 16_384)
        self._pool = KernelPool(self._start, self.config.min_idle)
        self._spare: dict[HostWorkspace, Warm] = {}
        self._kernels: set[SandboxKernel] = set()
        self._workspaces: dict[HostWorkspace, list[SandboxKernel]] = {}
        self._server_lock = asyncio.Lock()
        self._endings: set[asyncio.Future[None]] = set()
        self._closed = False
        self._watchdog = asyncio.ensure_future(self._watch_disk()) if self.level < Level.FULL else None
        self._pool.refill()

    async def warm(self) -> None:
        """Wait until `min_idle` kernels are ready."""
        await self._pool.filled()

    async def workspace(self) -> HostWorkspace:
        """Make an empty workspace for one episode."""
        self._check_open()
        await self._revive()
        if self.level < Level.FULL:
            pair = self._pool.take_idle()
            if pair is not None and pair.workspace is not None:
                self._spare[pair.workspace] = pair
                self._workspaces[pair.workspace] = []
                return pair.workspace
        space = await self._server.workspace()
        self._workspaces[space] = []
        return space

    async def kernel(self, workspace: Workspace) -> SandboxKernel:
        """Start a fresh kernel in `workspace`."""
        self._check_open()
        if not isinstance(workspace, HostWorkspace) or workspace not in self._workspaces or workspace.closed:
            raise SandboxError(
                "kernel() needs an open workspace of this sandbox", got=repr(workspace),
                fix="await sandbox.workspace() of the same sandbox",
            )  # fmt: skip
        await self._revive()
        warm = self._spare.pop(workspace, None)
        if warm is not None and warm.alive:
            kernel = warm.kernel
        elif self.level < Level.FULL:
            kernel = await self._started(workspace)
        else:
            kernel = await self._pooled(workspace)
        self._forget_the_dead()
        self._kernels.add(kernel)
        self._workspaces[workspace].append(kernel)
        return kernel

    async def process(self, workspace: HostWorkspace, like: ServerProcess | None = None) -> ServerProcess:
        """Start a kernel without a client of ours, for stock Jupyter tools.

        Args:
            workspace: Where it works.
            like: A closed process whose connection it takes over.

        Raises:
            SandboxError: If it does not start.
        """
        self._check_open()
        await self._revive()
        process = await self._server.spawn(workspace, heartbeat=True, like=like)
        await process.held()
        if self.level == Level.FULL:
            await self._server.attach(process, workspace)
        return process

    async def _pooled(self, workspace: HostWorkspace) -> SandboxKernel:
        for _ in range(3):  # a kernel can die between being taken and being given its workspace
            warm = await self._pool.take()
            try:
                await warm.server.attach(warm.kernel.process, workspace)  # type: ignore[arg-type]
                return warm.kernel
            except SandboxError:
                await warm.kernel.close()
                if self._server.alive and warm.server is self._server:
                    continue
                raise
        raise SandboxError("no kernel could be given its workspace", fix="see the sandbox level with `mappa doctor`")

    async def _started(self, workspace: HostWorkspace) -> SandboxKernel:
        async with self._pool.slot():
            return await self._new_kernel(workspace)

    async def _start(self) -> Warm:
        await self._revive()
        server = self._server
        space = await server.workspace() if self.level < Level.FULL else None
        try:
            return Warm(await self._new_kernel(space, deep=self._pool.waiting == 0), server, space)
        except BaseException:
            if space is not None:
                await space.close()
            raise

    async def _new_kernel(self, workspace: HostWorkspace | None, *, deep: bool = False) -> SandboxKernel:
        process = await self._server.spawn(workspace)
        kernel = SandboxKernel(process, self.config, self._context)
        try:
            await kernel.warm_up(deep=deep)
            await process.held()
        except BaseException:
            await kernel.close()
            raise
        return kernel

    async def _revive(self) -> None:
        """Start another server if this one was killed, e.g. by the system when memory ran out."""
        async with self._server_lock:
            if self._server.alive or self._closed:
                return
            dead = self._server
            self._server = await Server.launch(self.level, self.config, self._layout)
            await dead.close()

    async def _watch_disk(self) -> None:
        """Below level 3 nothing else limits a workspace's size: kill the kernels of one that has grown too large."""
        while True:
            await asyncio.sleep(DISK_WATCH_SECONDS)
            for space, kernels in list(self._workspaces.items()):
                if space.closed or not any(kernel.alive for kernel in kernels):
                    continue
                with contextlib.suppress(SandboxError, OSError):
                    if await space.usage() > self.config.disk_mb * 2**20:
                        for kernel in kernels:
                            kernel.kill(f"the workspace grew over {self.config.disk_mb} MiB")

    def _forget_the_dead(self) -> None:
        self._kernels = {kernel for kernel in self._kernels if kernel.alive}
        self._workspaces = {space: kernels for space, kernels in self._workspaces.items() if not space.closed}
        for space in [space for space in self._spare if space.closed]:
            unused = asyncio.ensure_future(self._spare.pop(space).close())
            self._endings.add(unused)
            unused.add_done_callback(self._endings.discard)

    def _check_open(self) -> None:
        if self._closed:
            raise SandboxError("this sandbox is closed", fix="open a new one with open_sandbox()")

    async def close(self) -> None:
        """Kill every kernel, delete every workspace, stop the server. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        if self._watchdog is not None:
            self._watchdog.cancel()
        await self._pool.close()
        spare = [warm.kernel for warm in self._spare.values()]
        await asyncio.gather(*(kernel.close() for kernel in [*self._kernels, *spare]))
        await asyncio.gather(*(space.close() for space in self._workspaces))
        await self._server.close()
        self._context.destroy(linger=0)
