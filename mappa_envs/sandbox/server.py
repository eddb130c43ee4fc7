"""The host's end of a zygote: starts it, orders kernels and workspaces from it, and ends it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import secrets
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

from mappa_envs.errors import SandboxError
from mappa_envs.sandbox import layout as layouts
from mappa_envs.sandbox.base import Level, SandboxConfig
from mappa_envs.sandbox.cgroup import Cgroups
from mappa_envs.sandbox.channel import Channel
from mappa_envs.sandbox.client import PORTS
from mappa_envs.sandbox.process import ORDER_SECONDS, ServerProcess
from mappa_envs.sandbox.workspace import HostWorkspace, run_folder

START_SECONDS = 180.0
KERNEL_THREADS = 12
"""Threads that an idle kernel has itself; RLIMIT_NPROC counts threads, `max_processes` does not mean these."""


class Server:
    """A running zygote.

    Use `Server.launch`; everything belongs to the loop that it ran on.
    """

    def __init__(self, level: Level, config: SandboxConfig, layout: layouts.Layout) -> None:
        self.level, self.config = level, config
        self._layout = layout
        self.folder = run_folder()
        self._uids = uid_range() if os.getuid() == 0 else None
        self._order_lock = asyncio.Lock()
        self._count = self._ids = 0
        self._popen: subprocess.Popen[bytes] | None = None
        self._control: Channel | None = None
        self._processes: set[ServerProcess] = set()
        self._cgroups = Cgroups() if config.cgroups else None

    @classmethod
    async def launch(cls, level: Level, config: SandboxConfig, layout: layouts.Layout) -> Server:
        """Start a zygote and wait until it has preloaded.

        Args:
            level: The isolation to start it at.
            config: Limits of its kernels.
            layout: Files that they need.

        Raises:
            SandboxError: With what bubblewrap or the zygote said, if it does not start.
        """
        server = cls(level, config, layout)
        try:
            await asyncio.to_thread(server._make_folders)
            await server._start()
        except BaseException:
            await server.close()
            raise
        return server

    @property
    def alive(self) -> bool:
        """Whether the zygote still runs."""
        return self._popen is not None and self._popen.poll() is None

    def _make_folders(self) -> None:
        layouts.copy_inside_code(self.folder / "code")
        for name in ("sockets", "scratch", "workspaces", "tmp"):
            # Entered by name only: other kernels' names are random and cannot be listed.
            (self.folder / name).mkdir(mode=0o711 if self._uids and self.level < Level.FULL else 0o700)
        uid = self._server_uid if self._server_uid is not None else os.getuid()
        (self.folder / "passwd").write_text(f"agent:x:{uid}:{uid}:agent:/agent/home:/bin/sh\n")
        (self.folder / "group").write_text(f"agent:x:{uid}:\n")
        (self.folder / "secret").write_text("a file of the host that agents must not read\n")
        (self.folder / "secret").chmod(0o600)
        if self._server_uid is not None:
            os.chown(self.folder / "sockets", self._server_uid, self._server_uid)
        if self._uids and self.level < Level.FULL:
            self.folder.chmod(0o711)

    def _next_id(self) -> int:
        """Return a user or group id that no running kernel of this server has."""
        assert self._uids is not None
        self._ids += 1
        return self._uids[self._ids % len(self._uids)]

    @property
    def _server_uid(self) -> int | None:
        return self._uids.start if self._uids and self.level == Level.FULL else None

    def _settings(self) -> dict[str, Any]:
        config, full, layout = self.config, self.level == Level.FULL, self._layout
        return {
            "level": int(self.level),
            "server_uid": self._server_uid,
            "keep_dac": self._uids is not None and self.level == Level.LANDLOCK and not layout.world_readable,
            "code": "/mappa" if full else str(self.folder / "code"),
            "workspaces": "/ws",
            "sockets": "/sockets" if full else str(self.folder / "sockets"),
            "scratch": None if full else str(self.folder / "scratch"),
            "readable": layout.readable,
            "hidden": [] if full else layout.hidden,
            "tmp_is_free": layout.tmp_is_free,
            "python_path": os.pathsep.join(layout.packages),
            "memory_mb": config.memory_mb,
            "disk_mb": config.disk_mb,
            "max_processes": config.max_processes,
            "seed": config.seed,
            "rlimits": {
                "RLIMIT_AS": config.memory_mb * 2**20,
                "RLIMIT_NPROC": config.max_processes + KERNEL_THREADS,
                "RLIMIT_NOFILE": config.max_open_files,
                "RLIMIT_FSIZE": config.disk_mb * 2**20,
                "RLIMIT_CORE": 0,
            },
        }

    async def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control = Channel(ours)
        with theirs, (self.folder / "log").open("wb") as log:
            if self.level == Level.FULL:
                bwrap = layouts.bubblewrap()
                if bwrap is None:
                    raise SandboxError("level 3 needs bubblewrap", fix="install bubblewrap or mappa-gym[sandbox]")
                variables = layouts.environment(self._layout, "/mappa", "/tmp")
                argv = layouts.bubblewrap_argv(
                    bwrap, self._layout, self.folder, theirs.fileno(), variables, as_root=os.getuid() == 0
                )
                variables = {}
            else:
                argv = layouts.python_argv(self._layout, theirs.fileno())
                variables = layouts.environment(self._layout, str(self.folder / "code"), str(self.folder / "tmp"))
            self._popen = subprocess.Popen(
                argv, env=variables, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                pass_fds=(theirs.fileno(),), start_new_session=True,
            )  # fmt: skip
        self._control.send(self._settings())
        reply, _ = await self._control.receive(START_SECONDS)
        if reply is None or not reply.get("ok"):
            said = (self.folder / "log").read_bytes()[-2000:].decode(errors="replace").strip()
            why = reply.get("error") if reply is not None else said or "it ended or gave no answer"
            raise SandboxError("the kernel server did not start", got=str(why))

    async def _order(self, order: dict[str, Any], descriptors: tuple[int, ...] = ()) -> list[int]:
        if self._control is None or not self.alive:
            raise SandboxError("the kernel server has ended", fix="open a new sandbox")
        async with self._order_lock:
            self._control.send(order, descriptors)
            reply, received = await self._control.receive(ORDER_SECONDS)
        if reply is None:
            raise SandboxError("the kernel server does not answer", got=f"{order['op']} failed")
        if not reply["ok"]:
            if reply["errno"] is not None:
                raise OSError(reply["errno"], reply["error"])
            if not reply["fault"]:
                raise ValueError(reply["error"])
            raise SandboxError(f"the kernel server refused to {order['op']}", got=reply["error"])
        return received

    async def spawn(
        self,
        workspace: HostWorkspace | None = None,
        *,
        probe: bool = False,
        heartbeat: bool = False,
        like: ServerProcess | None = None,
    ) -> ServerProcess:
        """Fork a kernel and wait until it is set up.

        Args:
            workspace: Below level 3, where it will work.
            probe: Have it look around and report what it sees in `facts`.
            heartbeat: Answer on Jupyter's heartbeat channel, for stock clients.
            like: A closed process whose sockets and key the new one takes over, for clients that stay connected.

        Raises:
            SandboxError: If it does not start.
        """
        self._count += 1
        # Random, so that a kernel of the same user cannot guess the way to another's sockets.
        name = secrets.token_hex(6) if self.level < Level.FULL else f"k{self._count}"
        key = secrets.token_hex(16)
        if like is not None:
            name, key = like.name, like.key.decode()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        process = ServerProcess(
            name, str(self.folder / "sockets" / name / "k"), key.encode(), Channel(ours), self.level
        )
        self._processes.add(process)
        process.exited.add_done_callback(lambda _: self._processes.discard(process))
        order: dict[str, Any] = {
            "op": "kernel",
            "id": name,
            "connection": {"key": key, "ports": PORTS, "heartbeat": heartbeat},
            "workdir": str(workspace.path) if workspace is not None else "/",
            "kernel_uid": None,
            "kernel_groups": [workspace.group] if workspace is not None and workspace.group is not None else [],
        }
        if self._uids and self.level < Level.FULL:
            order["kernel_uid"] = self._next_id()
        if probe:
            secret, code = str(self.folder / "secret"), str(Path(__file__).resolve())
            full = self.level == Level.FULL
            order["probe"] = {
                "must_not_see": [secret, code, str(self.folder)] if full else [],
                "must_not_open": [secret, code] if self.level >= Level.LANDLOCK else [secret],
            }
        try:
            with theirs:
                await self._order(order, (theirs.fileno(),))
            await process.ready()
            if self._cgroups is not None and self._cgroups.usable:
                process.hold(self._cgroups, self.config)
        except BaseException:
            await process.close()
            raise
        return process

    async def attach(self, process: ServerProcess, workspace: HostWorkspace) -> None:
        """At level 3: give a running kernel its workspace.

        Raises:
            SandboxError: If it cannot be mounted.
        """
        waiting = asyncio.ensure_future(process.attached())
        await asyncio.sleep(0)
        try:
            await self._order({"op": "attach", "id": process.name, "workspace": workspace.name})
        except (OSError, ValueError) as error:
            waiting.cancel()
            raise SandboxError("a workspace could not be mounted", got=str(error)) from None
        await waiting

    async def workspace(self) -> HostWorkspace:
        """Make an empty workspace.

        Raises:
            SandboxError: If it cannot be made.
        """
        self._count += 1
        if self.level < Level.FULL:
            path = self.folder / "workspaces" / secrets.token_hex(8)
            path.mkdir(mode=0o700)
            return HostWorkspace.at(path, self.config, self._next_id() if self._uids else None)
        name = f"w{self._count}"
        try:
            (root,) = await self._order({"op": "workspace", "name": name, "disk_mb": self.config.disk_mb})
        except OSError as error:
            raise SandboxError("a workspace could not be made", got=str(error)) from None

        async def write(path: str, source: int) -> None:
            await self._order({"op": "write", "name": name, "path": path}, (source,))

        async def drop() -> None:
            with contextlib.suppress(OSError, SandboxError):
                await self._order({"op": "drop", "name": name})

        return HostWorkspace(name, root, None, self.config, writer=write, closer=drop)

    async def close(self) -> None:
        """End every kernel and the zygote, and delete its folder. Safe to call twice."""
        await asyncio.gather(*(process.close() for process in list(self._processes)))
        if self._control is not None:
            self._control.close()
        if self._popen is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._popen.wait, 1)
            self._popen.kill()
            await asyncio.to_thread(self._popen.wait)
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)


def uid_range() -> range | None:
    """Return user ids that belong to nobody, for a process that is root; None if it cannot become another user."""
    highest = 0
    with contextlib.suppress(OSError), open("/proc/self/uid_map") as file:
        for line in file:
            first, _, count = map(int, line.split())
            highest = max(highest, first + count - 1)
    if highest >= 2**31:
        start = random.SystemRandom().randrange(1_600_000_000, 2_000_000_000, 1000)
    elif highest >= 60_000:
        start = random.SystemRandom().randrange(30_000, 59_000, 1000)
    else:
        return None
    return range(start, start + 1000)
