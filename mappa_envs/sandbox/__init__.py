"""The sandbox: persistent Jupyter kernels for agent code, isolated as well as the machine allows.

sandbox = await open_sandbox(SandboxConfig())
workspace = await sandbox.workspace()
kernel = await sandbox.kernel(workspace)
result = await kernel.execute("1 + 1")
"""

from mappa_envs.sandbox.base import (
    CellResult,
    FileInfo,
    Image,
    Kernel,
    Level,
    Sandbox,
    SandboxConfig,
    UnsafeFileError,
    Workspace,
)
from mappa_envs.sandbox.start import open_sandbox

__all__ = [
    "CellResult",
    "FileInfo",
    "Image",
    "Kernel",
    "Level",
    "Sandbox",
    "SandboxConfig",
    "UnsafeFileError",
    "Workspace",
    "open_sandbox",
]
