"""The tools of one episode: a kernel per agent that runs code, and the workspace that they share."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping
from weakref import WeakKeyDictionary

from mappa_envs.code_blocks import python_code
from mappa_envs.sandbox.base import Kernel, SandboxConfig, UnsafeFileError, Workspace
from mappa_envs.sandbox.shared import shared_sandbox
from mappa_envs.transcript import FileRecord, ToolResult

NO_CODE = "No fenced python block was found, so nothing was run."
MAX_RECORDS = 200
"""Files of a workspace that are kept account of, the first by name."""
_RESTARTED = "(variables of earlier code are lost: the Python process was restarted)\n"

AT_ONCE = 2 * (os.cpu_count() or 1)
"""Cells of a process that run at the same time. Time limits are on the clock: with many episodes under way, a cell must
not run out of time because of its neighbours."""
_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def _turn_to_run() -> asyncio.Semaphore:
    return _slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE))


class Toolbox:
    """Runs the fenced Python of actions; starts a kernel only for an agent that runs code.

    It is also the `Evidence` of the episode.

    Args:
        config: Limits of agent code.
        given: Files that the workspace holds from the start.
    """

    def __init__(self, config: SandboxConfig, given: Mapping[str, bytes] | None = None) -> None:
        self.config = config
        self.level: int | None = None
        """Isolation level that code ran at; None when none ran."""
        self._given = dict(given or {})
        self._records = {name: FileRecord(name, len(data), "task", None) for name, data in self._given.items()}
        self._digests = {name: _digest(data) for name, data in self._given.items()}
        self._kernels: dict[str, Kernel] = {}
        self._workspace: Workspace | None = None
        self._lock: asyncio.Lock | None = None

    @property
    def in_use(self) -> bool:
        """Whether there are kernels or a workspace to close."""
        return bool(self._kernels) or self._workspace is not None

    @property
    def files(self) -> tuple[FileRecord, ...]:
        """The workspace as of the last `take_stock`, by name."""
        return tuple(self._records[name] for name in sorted(self._records))

    async def run_python(self, agent: str, action: str) -> ToolResult:
        """Run the fenced Python of an action in the agent's kernel.

        A kernel that died is replaced, and the agent is told that its variables are gone.

        Args:
            agent: PettingZoo agent id.
            action: The whole text; without a fenced block the status is `missing`.

        Raises:
            SandboxError: If the sandbox itself failed.
        """
        code = python_code(action)
        if code is None:
            return ToolResult("python", "", "missing", NO_CODE)
        kernel, replaced = await self._kernel(agent)
        async with _turn_to_run():
            cell = await kernel.execute(code)
        output = (_RESTARTED if replaced else "") + (cell.output if cell.output.strip() else "(no output)")
        return ToolResult("python", code, cell.status, output, cell.dropped_chars > 0)

    async def take_stock(self, writer: str, turn: int) -> None:
        """Look at the workspace again, and put what is new or changed down to `writer`.

        Contents are compared, not times: agents can set those.

        Args:
            writer: The agent that has just run code.
            turn: Index of its turn.
        """
        if self._workspace is None:
            return
        records, digests = {}, {}
        for info in (await self._workspace.files())[:MAX_RECORDS]:
            data = await self.read(info.path, info.size)
            digests[info.path] = _digest(data) if data is not None else f"{info.size} bytes"
            if self._digests.get(info.path) == digests[info.path]:
                records[info.path] = self._records[info.path]
            else:
                records[info.path] = FileRecord(info.path, info.size, writer, turn)
        self._records, self._digests = records, digests

    async def read(self, name: str, max_bytes: int) -> bytes | None:
        """Return a file's content; see `Evidence.read`."""
        if self._workspace is None:
            data = self._given.get(name)
            return data if data is not None and len(data) <= max_bytes else None
        try:
            return await self._workspace.read(name, max_bytes)
        except UnsafeFileError:
            return None

    async def run_apart(
        self, code: str, files: Mapping[str, bytes], result: str, *, max_bytes: int, timeout: float
    ) -> bytes | None:
        """Run code where no agent can reach it; see `Evidence.run_apart`."""
        sandbox = await shared_sandbox(self.config)
        space = await sandbox.workspace()
        try:
            for name, data in files.items():
                await space.write(name, data)
            kernel = await sandbox.kernel(space)
            try:
                async with _turn_to_run():
                    await kernel.execute(code, timeout=timeout)
            finally:
                await kernel.close()
            return await space.read(result, max_bytes)
        except UnsafeFileError:
            return None
        finally:
            await space.close()

    async def _kernel(self, agent: str) -> tuple[Kernel, bool]:
        """Return the agent's kernel and whether it replaces one that died."""
        old = self._kernels.get(agent)
        if old is not None and old.alive:
            return old, False
        if old is not None:
            await old.close()
        sandbox = await shared_sandbox(self.config)
        if self._lock is None:
            self._lock = asyncio.Lock()
        # Agents of one layer come here at the same time, and share one workspace.
        async with self._lock:
            if self._workspace is None:
                self._workspace = await sandbox.workspace()
                self.level = int(sandbox.level)
                for name, data in self._given.items():
                    await self._workspace.write(name, data)
        self._kernels[agent] = await sandbox.kernel(self._workspace)
        return self._kernels[agent], old is not None

    async def close(self) -> None:
        """Kill the kernels and delete the workspace; the toolbox can be used again."""
        kernels, workspace = list(self._kernels.values()), self._workspace
        self._kernels, self._workspace, self._lock = {}, None, None
        await asyncio.gather(*(kernel.close() for kernel in kernels))
        if workspace is not None:
            await workspace.close()


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
