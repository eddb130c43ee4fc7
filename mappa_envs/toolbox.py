"""The tools of one episode: a kernel per agent that runs code, and the workspace that they share."""

from __future__ import annotations

import asyncio

from mappa_envs.code_blocks import python_code
from mappa_envs.sandbox.base import Kernel, SandboxConfig, Workspace
from mappa_envs.sandbox.shared import shared_sandbox
from mappa_envs.transcript import ToolResult

NO_CODE = "No fenced python block was found, so nothing was run."
_RESTARTED = "(variables of earlier code are lost: the Python process was restarted)\n"


class Toolbox:
    """Runs the fenced Python of actions; starts a kernel only for an agent that runs code.

    Args:
        config: Limits of agent code.
    """

    def __init__(self, config: SandboxConfig) -> None:
        self.config = config
        self.level: int | None = None
        """Isolation level that code ran at; None when none ran."""
        self._kernels: dict[str, Kernel] = {}
        self._workspace: Workspace | None = None
        self._lock: asyncio.Lock | None = None

    @property
    def in_use(self) -> bool:
        """Whether there are kernels or a workspace to close."""
        return bool(self._kernels) or self._workspace is not None

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
        cell = await kernel.execute(code)
        output = (_RESTARTED if replaced else "") + (cell.output if cell.output.strip() else "(no output)")
        return ToolResult("python", code, cell.status, output, cell.dropped_chars > 0)

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
        self._kernels[agent] = await sandbox.kernel(self._workspace)
        return self._kernels[agent], old is not None

    async def close(self) -> None:
        """Kill the kernels and delete the workspace; the toolbox can be used again."""
        kernels, workspace = list(self._kernels.values()), self._workspace
        self._kernels, self._workspace, self._lock = {}, None, None
        await asyncio.gather(*(kernel.close() for kernel in kernels))
        if workspace is not None:
            await workspace.close()
