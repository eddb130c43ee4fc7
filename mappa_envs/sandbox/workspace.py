"""Workspaces as the host sees them: a directory descriptor, never a path that agents could redirect."""

from __future__ import annotations

import asyncio
import atexit
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from mappa_envs.errors import SandboxError
from mappa_envs.sandbox import files
from mappa_envs.sandbox.base import FileInfo, SandboxConfig, UnsafeFileError


class HostWorkspace:
    """The folder of one episode; implements `Workspace`.

    Args:
        name: Its name in the sandbox.
        root: Directory descriptor, owned by this object.
        path: Its place on the host, or None where it has none (level 3: a tmpfs in the server's namespace).
        config: Limits.
        writer: Writes a file from a descriptor; None writes here.
        closer: Frees the folder after it was emptied.
        group: Group id that opens the folder to its kernels, where each has a user of its own.
    """

    def __init__(
        self,
        name: str,
        root: int,
        path: Path | None,
        config: SandboxConfig,
        *,
        writer: Callable[[str, int], Awaitable[None]] | None = None,
        closer: Callable[[], Awaitable[None]] | None = None,
        group: int | None = None,
    ) -> None:
        self.name, self.path, self.group = name, path, group
        self._root: int | None = root
        self._config = config
        self._writer, self._closer = writer, closer

    @classmethod
    def at(cls, path: Path, config: SandboxConfig, group: int | None = None) -> HostWorkspace:
        """Use the existing, empty folder `path`, which `close` deletes; open it to `group` if one is given."""
        if group is not None:
            os.chown(path, -1, group)
            path.chmod(0o2770)
        root = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return cls(path.name, root, path, config, group=group)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._root is None

    async def files(self) -> list[FileInfo]:
        """List the regular files; see `Workspace.files`."""
        root = self._open()
        found = await asyncio.to_thread(lambda: [(path, size) for path, size, _ in files.walk_regular(root)])
        return sorted((FileInfo(files.escaped(path), size) for path, size in found), key=lambda info: info.path)

    async def usage(self) -> int:
        """Return the bytes on disk of the regular files."""
        root = self._open()
        return await asyncio.to_thread(lambda: sum(blocks for _, _, blocks in files.walk_regular(root)))

    async def read(self, path: str, max_bytes: int) -> bytes:
        """Read a regular file; see `Workspace.read`."""
        root = self._open()
        try:
            return await asyncio.to_thread(files.read_regular, root, path, max_bytes)
        except (OSError, ValueError) as error:
            raise _unsafe(path, error, max_bytes) from None

    async def write(self, path: str, data: bytes) -> None:
        """Create a file; see `Workspace.write`."""
        root = self._open()
        if len(data) > self._config.disk_mb * 2**20:
            raise SandboxError(
                f"workspace: {path!r} is too large", expected=f"at most {self._config.disk_mb} MiB",
                got=f"{len(data)} bytes", fix="raise SandboxConfig.disk_mb",
            )  # fmt: skip
        source = await asyncio.to_thread(_spool, data)
        try:
            if self._writer is not None:
                files.parts_of(path)
                await self._writer(path, source)
            else:
                await asyncio.to_thread(files.write_regular, root, path, source)
        except (OSError, ValueError) as error:
            raise _unsafe(path, error, None) from None
        finally:
            os.close(source)

    async def close(self) -> None:
        """Delete the folder and all in it. Safe to call twice."""
        root, self._root = self._root, None
        if root is None:
            return
        try:
            await asyncio.to_thread(files.clear, root)
        finally:
            os.close(root)
        if self._closer is not None:
            await self._closer()
        if self.path is not None:
            await asyncio.to_thread(shutil.rmtree, self.path, ignore_errors=True)

    def _open(self) -> int:
        if self._root is None:
            raise SandboxError("this workspace is closed", fix="ask the sandbox for a new one")
        return self._root


def run_folder() -> Path:
    """Make a private folder for sockets and scratch files.

    Socket paths may have 107 bytes (103 on macOS), so a long TMPDIR is passed over for /tmp.
    """
    base = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix="mappa-", dir=base if len(os.fsencode(base)) <= 55 else "/tmp"))
    atexit.register(_remove_at_exit, folder, os.getpid())
    return folder


def _remove_at_exit(folder: Path, pid: int) -> None:
    """Delete the folder of a sandbox that nobody closed; a fork of this process must leave it alone."""
    if os.getpid() == pid:
        shutil.rmtree(folder, ignore_errors=True)


def _unsafe(path: str, error: Exception, max_bytes: int | None) -> UnsafeFileError:
    limit = f" of at most {max_bytes} bytes" if max_bytes is not None else ""
    got = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UnsafeFileError(
        f"workspace: {files.escaped(path)!r} is refused", expected=f"a regular file{limit} with one name, no links",
        got=got,
    )  # fmt: skip


def _spool(data: bytes) -> int:
    """Return a descriptor of an anonymous file with `data`, positioned at its start."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        return os.dup(file.fileno())
