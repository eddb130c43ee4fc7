"""What the rest of the project knows of a sandbox: configs, results, and the two async interfaces."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from mappa_envs.errors import MappaError


class Level(IntEnum):
    """How well agent code is confined."""

    NONE = 0
    """Timeouts, output caps and rlimits only: no isolation."""
    UID = 1
    """A user id of its own per kernel, rlimits, seccomp."""
    LANDLOCK = 2
    """File confinement by Landlock, seccomp, rlimits; no namespaces."""
    FULL = 3
    """Namespaces (user, pid, mount, ipc, net) in an outer bubblewrap, Landlock, seccomp, rlimits."""


class SandboxConfig(BaseModel):
    """Limits of agent code. Frozen: an environment's registered kwargs are copied, never shared."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    timeout: float = Field(default=10.0, gt=0)
    """Seconds a cell may run before it is interrupted."""
    grace: float = Field(default=2.0, ge=0)
    """Seconds an interrupted cell has to stop before its kernel is killed."""
    memory_mb: int = Field(default=2048, ge=256)
    """Memory of a kernel with all of its child processes, in MiB."""
    max_processes: int = Field(default=40, ge=1)
    max_open_files: int = Field(default=256, ge=64)
    disk_mb: int = Field(default=256, ge=1)
    """Size of an episode's workspace, in MiB."""
    output_chars: int = Field(default=8000, ge=200)
    """Characters of output kept per cell, half from the head and half from the tail."""
    min_idle: int = Field(default=2, ge=0)
    """Warm kernels kept ready."""
    cgroups: bool = True
    """Hold each kernel's tree by control groups as well, where this process may make them."""
    seed: int | None = Field(default=None, ge=0, lt=2**32)
    """Seed of `random` and `numpy.random` in every fresh kernel; None takes entropy from the system."""
    require_level: Level = Level.NONE
    """Refuse to start below this isolation level."""
    max_level: Level = Level.FULL
    """Use no isolation above this level, to compare levels or to test them."""
    allow_unsafe: bool = False
    """Allow level 0 (no isolation); without it a machine that can do no better is refused."""


@dataclass(frozen=True, slots=True)
class Image:
    """A picture that a cell displayed."""

    mime: str
    data: bytes


@dataclass(frozen=True, slots=True)
class CellResult:
    """What one cell did. Agent-controlled data: never parse a reward or a path out of it."""

    status: Literal["ok", "error", "timeout", "timeout_killed", "died"]
    """`timeout`: interrupted, kernel state kept; `timeout_killed` and `died`: the kernel is gone."""
    output: str
    """stdout, stderr, displayed text and the traceback in order of arrival, capped head+tail."""
    dropped_chars: int = 0
    """Characters cut out of `output`."""
    error_name: str | None = None
    """Exception class name when `status` is `error`."""
    images: tuple[Image, ...] = ()
    seconds: float = 0.0
    """Wall time of the cell; not for observations or infos (it would break determinism)."""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file of a workspace, as the host saw it without following links."""

    path: str
    """Relative to the workspace, with `/`; control characters escaped."""
    size: int
    """Bytes."""


class UnsafeFileError(MappaError, ValueError):
    """A file of a workspace that the host will not read: missing, a link, not regular, too large, outside."""


class Workspace(Protocol):
    """The folder that the agents of one episode share. Whatever is read from it is agent-controlled data."""

    async def files(self) -> list[FileInfo]:
        """List the regular files, sorted by path; links and special files are left out."""
        ...

    async def read(self, path: str, max_bytes: int) -> bytes:
        """Read a regular file without following any link.

        Args:
            path: Relative to the workspace, with `/`.
            max_bytes: Largest size that is accepted; nothing is truncated.

        Raises:
            UnsafeFileError: If it is missing, a link, has further hard links, is not regular, is too large, or
                lies outside.
        """
        ...

    async def write(self, path: str, data: bytes) -> None:
        """Create a file (and its folders) for the agents, replacing an old one.

        Args:
            path: Relative to the workspace, with `/`.
            data: Its content.

        Raises:
            UnsafeFileError: If the path leads outside or through a link.
            SandboxError: If the workspace is full or closed.
        """
        ...

    async def close(self) -> None:
        """Delete the folder and all in it. Safe to call twice."""
        ...


class Kernel(Protocol):
    """A persistent Python kernel of one agent in one episode."""

    @property
    def alive(self) -> bool:
        """Whether it can still run cells."""
        ...

    async def execute(self, code: str, *, timeout: float | None = None) -> CellResult:
        """Run a cell and return what it did; returns within `timeout + grace` plus a small margin, always.

        Args:
            code: Python (IPython) source.
            timeout: Seconds, or None for the config's.

        Raises:
            SandboxError: If the kernel is already closed or dead. A fault of the code is a result, not an error.
        """
        ...

    async def close(self) -> None:
        """Kill the kernel and all of its processes. Safe to call twice."""
        ...


class Sandbox(Protocol):
    """A source of workspaces and kernels. Bound to the event loop that it was started on."""

    config: SandboxConfig
    level: Level

    async def workspace(self) -> Workspace:
        """Make an empty workspace for one episode."""
        ...

    async def kernel(self, workspace: Workspace) -> Kernel:
        """Start a fresh kernel whose current directory is `workspace`."""
        ...

    async def close(self) -> None:
        """Kill every kernel, delete every workspace, stop the server. Safe to call twice."""
        ...


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
]
