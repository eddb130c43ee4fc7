"""Stock Jupyter tools on sandboxed kernels, by the entry-point group `jupyter_client.kernel_provisioners`.

A kernelspec asks for it in its `kernel.json`:

    "interrupt_mode": "message",
    "metadata": {"kernel_provisioner": {"provisioner_name": "mappa-sandbox", "config": {"limits": {"memory_mb": 1024}}}}

or the environment variable `JUPYTER_DEFAULT_PROVISIONER_NAME=mappa-sandbox` makes it the default.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.provisioner_base import KernelProvisionerBase
from traitlets import Dict

from mappa_envs import background
from mappa_envs.errors import SandboxError
from mappa_envs.sandbox.base import SandboxConfig
from mappa_envs.sandbox.client import PORTS
from mappa_envs.sandbox.forked import ForkedSandbox
from mappa_envs.sandbox.process import ServerProcess
from mappa_envs.sandbox.shared import shared_sandbox
from mappa_envs.sandbox.workspace import HostWorkspace

T = TypeVar("T")


class SandboxProvisioner(KernelProvisionerBase):
    """Runs a kernel of a `KernelManager` in the sandbox; the kernelspec's `argv` is not used.

    The kernel has a workspace of its own, which is deleted with the manager.
    """

    limits = Dict(config=True, help="Fields of SandboxConfig, e.g. {'memory_mb': 1024, 'require_level': 3}")

    _process: ServerProcess | None = None
    _last: ServerProcess | None = None
    _workspace: HostWorkspace | None = None

    @property
    def has_process(self) -> bool:
        """Whether a kernel was launched and not cleaned up."""
        return self._process is not None

    async def poll(self) -> int | None:
        """Return None while the kernel runs, then an exit status (0 where there was no kernel)."""
        if self._process is None:
            return 0
        return 1 if self._process.exited.done() else None

    async def wait(self) -> int | None:
        """Wait until the kernel has ended, and free what belonged to it."""
        process = self._process
        if process is not None:
            await _on_background(_ended(process))
            self._last, self._process = process, None
        return 0

    async def send_signal(self, signum: int) -> None:
        """Send a signal to the kernel; SIGKILL takes all of its processes."""
        process = self._process
        if process is not None:
            await _on_background(_signalled(process, signum))

    async def kill(self, restart: bool = False) -> None:
        """Kill the kernel with all of its processes."""
        await self.send_signal(signal.SIGKILL)

    async def terminate(self, restart: bool = False) -> None:
        """Kill, too: there is nothing in the sandbox worth a polite end."""
        await self.kill(restart)

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Prepare the manager for sockets that are files."""
        if self.parent is not None:
            self.parent.transport = "ipc"
        for name in ("extra_arguments", "transport_encryption"):
            kwargs.pop(name, None)
        return await super().pre_launch(cmd=[], **kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Start a kernel and return its connection."""
        self._process = await _on_background(self._launch())
        self.connection_info = {
            "transport": "ipc",
            "ip": self._process.prefix,
            "key": self._process.key,  # type: ignore[typeddict-item]  # jupyter_client compares bytes
            "signature_scheme": "hmac-sha256",
            "shell_port": PORTS["shell"],
            "iopub_port": PORTS["iopub"],
            "stdin_port": PORTS["stdin"],
            "control_port": PORTS["control"],
            "hb_port": PORTS["hb"],
        }
        return self.connection_info

    async def _launch(self) -> ServerProcess:
        sandbox = await shared_sandbox(SandboxConfig(**{"min_idle": 0, **self.limits}))
        if not isinstance(sandbox, ForkedSandbox):
            raise SandboxError(
                "Jupyter kernels in the sandbox need isolation level 1 or higher", got=f"level {int(sandbox.level)}",
                fix="see `mappa doctor`",
            )  # fmt: skip
        if self._workspace is None or self._workspace.closed:
            self._workspace = await sandbox.workspace()
        return await sandbox.process(self._workspace, like=self._last)

    async def cleanup(self, restart: bool = False) -> None:
        """Delete the workspace, unless the kernel is about to be started again in it."""
        process, self._process = self._process, None
        if process is not None:
            self._last = process
            await _on_background(process.close())
        if not restart and self._workspace is not None:
            await _on_background(self._workspace.close())
            self._workspace = None


async def _on_background(work: Coroutine[Any, Any, T]) -> T:
    return await asyncio.wrap_future(background.submit(work))


async def _ended(process: ServerProcess) -> None:
    await asyncio.shield(process.exited)
    await process.close()


async def _signalled(process: ServerProcess, number: int) -> None:
    if number == signal.SIGKILL:
        process.kill()
    elif number != 0:
        process.signal(number)
