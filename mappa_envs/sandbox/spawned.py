"""Plain kernels, one new Python process each: level 0, for machines that cannot do better.

No isolation: cells run as the user, with the user's files and network in reach. Time, output, memory per process
and descendants at the kernel's end are still kept in bounds.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import zmq

from mappa_envs.errors import SandboxError
from mappa_envs.sandbox.base import Level, SandboxConfig, Workspace
from mappa_envs.sandbox.client import PORTS
from mappa_envs.sandbox.kernel import SandboxKernel
from mappa_envs.sandbox.layout import copy_inside_code
from mappa_envs.sandbox.workspace import HostWorkspace, run_folder

_WATCH_SECONDS = 0.25
_STARTS_AT_ONCE = max(2, os.cpu_count() or 2)
THREAD_LIMITS = {
    name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
}
"""Numerical libraries start one thread per core otherwise, and fail when a memory limit forbids the stacks."""


def rlimits(config: SandboxConfig) -> dict[str, int]:
    """Return the resource limits of a kernel by their name in `resource`, in its units."""
    return {
        "RLIMIT_AS": (config.memory_mb + 1024) * 2**20,
        "RLIMIT_FSIZE": config.disk_mb * 2**20,
        "RLIMIT_NOFILE": config.max_open_files,
        "RLIMIT_CORE": 0,
    }


class SpawnedProcess:
    """A kernel started as a child process of this one; implements `Process`.

    Args:
        folder: Private folder for its sockets and scratch files; deleted by `close`.
        workdir: Its current directory.
        code: Folder with the modules that run inside, from `copy_inside_code`.
        config: Limits.
    """

    def __init__(self, folder: Path, workdir: Path, code: Path, config: SandboxConfig) -> None:
        self._folder, self._code, self._config = folder, code, config
        self.key = secrets.token_hex(16).encode()
        self.prefix = str(folder / "k")
        self.exited: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._note: str | None = None
        scratch = folder / "scratch"
        scratch.mkdir()
        connection = {"ip": self.prefix, "key": self.key.decode(), "ports": PORTS}
        request = {
            "connection": connection,
            "workdir": str(workdir),
            "scratch": str(scratch),
            "seed": config.seed,
            "code": str(code),
            "rlimits": rlimits(config),
        }
        path = folder / "request.json"
        path.write_text(json.dumps(request))
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self._popen = subprocess.Popen(
                [sys.executable, "-P", "-m", "mappa_envs.sandbox.kernel_app", str(path)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=workdir, env=self._environment(scratch), start_new_session=True,
            )  # fmt: skip
        self._tree = psutil.Process(self._popen.pid)
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._wait, args=(loop,), name="mappa-kernel-wait", daemon=True).start()
        self._watchdog = asyncio.ensure_future(self._watch_memory())

    def _environment(self, scratch: Path) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TZ", "SYSTEMROOT") if name in os.environ}
        packages = [path for path in sys.path if path.endswith("-packages")]
        own = {
            "HOME": scratch,
            "TMPDIR": scratch,
            "MPLCONFIGDIR": scratch / "mpl",
            "IPYTHONDIR": scratch / "ipython",
        }
        return {
            **kept, **THREAD_LIMITS, **{name: str(path) for name, path in own.items()},
            "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join([str(self._code), *packages]),
            "JPY_PARENT_PID": str(os.getpid()), "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        }  # fmt: skip

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        code = self._popen.wait()
        with contextlib.suppress(RuntimeError):  # the loop is gone when the interpreter exits
            loop.call_soon_threadsafe(self._ended, code)

    def _ended(self, code: int) -> None:
        if not self.exited.done():
            self.exited.set_result(self._note or describe_exit(code))

    def log(self) -> str:
        """Return the end of its stderr."""
        with contextlib.suppress(OSError):
            return self._log.read_bytes()[-500:].decode(errors="replace").strip()
        return ""

    async def _watch_memory(self) -> None:
        limit = self._config.memory_mb * 2**20
        while not self.exited.done():
            await asyncio.sleep(_WATCH_SECONDS)
            used = 0
            with contextlib.suppress(psutil.Error):
                for process in [self._tree, *self._tree.children(recursive=True)]:
                    with contextlib.suppress(psutil.Error):
                        used += process.memory_info().rss
            if used > limit + 2**28:
                self._note = f"it used more than {self._config.memory_mb} MiB of memory"
                self.kill()

    def kill(self) -> None:
        """Kill the process and every descendant that still has it as an ancestor or shares its session."""
        with contextlib.suppress(psutil.Error):
            for child in self._tree.children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    child.kill()
        with contextlib.suppress(OSError):
            if self._popen.returncode is None:
                os.killpg(self._popen.pid, signal.SIGKILL)

    async def close(self) -> None:
        """Kill, wait and delete the private folder."""
        self.kill()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self.exited), 2)
        self._watchdog.cancel()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)


def describe_exit(code: int) -> str:
    """Return how a process with this return code ended, in words."""
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = str(-code)
        return f"killed by {name}"
    return f"exit status {code}"


class SpawnedSandbox:
    """A `Sandbox` of plain kernels (level 0).

    Args:
        config: Limits; `allow_unsafe` must be true.

    Raises:
        SandboxError: If `allow_unsafe` is false.
    """

    level = Level.NONE

    def __init__(self, config: SandboxConfig) -> None:
        self.config = config
        self._root = run_folder()
        copy_inside_code(self._root / "code")
        self._context: zmq.Context[Any] = zmq.Context()
        self._kernels: list[SandboxKernel] = []
        self._workspaces: list[HostWorkspace] = []
        self._starts = asyncio.Semaphore(_STARTS_AT_ONCE)
        self._count = 0
        self._closed = False

    async def workspace(self) -> HostWorkspace:
        """Make an empty workspace for one episode."""
        self._check_open()
        folder = self._new_folder("w")
        space = HostWorkspace.at(folder, self.config)
        self._workspaces.append(space)
        return space

    async def kernel(self, workspace: Workspace) -> SandboxKernel:
        """Start a fresh kernel in `workspace`."""
        self._check_open()
        if not isinstance(workspace, HostWorkspace) or workspace.path is None:
            raise SandboxError("kernel() needs a workspace of this sandbox", got=type(workspace).__name__)
        async with self._starts:
            process = SpawnedProcess(self._new_folder("k"), workspace.path, self._root / "code", self.config)
            kernel = SandboxKernel(process, self.config, self._context)
            self._kernels.append(kernel)
            try:
                await kernel.warm_up()
            except BaseException:
                await kernel.close()
                raise
        self._kernels = [k for k in self._kernels if k.alive]
        return kernel

    async def close(self) -> None:
        """Kill every kernel and delete every workspace. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        await asyncio.gather(*(kernel.close() for kernel in self._kernels))
        await asyncio.gather(*(space.close() for space in self._workspaces))
        await asyncio.to_thread(shutil.rmtree, self._root, ignore_errors=True)
        self._context.destroy(linger=0)

    def _new_folder(self, kind: str) -> Path:
        self._count += 1
        folder = self._root / f"{kind}{self._count}"
        folder.mkdir(mode=0o700)
        return folder

    def _check_open(self) -> None:
        if self._closed:
            raise SandboxError("this sandbox is closed", fix="open a new one with open_sandbox()")
