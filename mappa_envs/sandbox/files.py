"""Safe file access beneath a directory that agents write to: no link is followed, nothing special is opened.

Runs on both sides of the wall: the host reads with it, the zygote writes with it. Imports nothing of this project
but `mappa_envs.sandbox.syscalls`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import sys
from collections.abc import Iterator

if sys.platform == "linux":
    from mappa_envs.sandbox.syscalls import openat2

MAX_FILES = 10_000
MAX_DEPTH = 32
_NO_OPENAT2 = (errno.ENOSYS, errno.EPERM, errno.EACCES)


def parts_of(path: str) -> list[str]:
    """Split a relative path.

    Raises:
        ValueError: If it is absolute, empty, or has a `..`, a NUL or more than `MAX_DEPTH` parts.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or path.startswith("/") or ".." in parts or "\0" in path or len(parts) > MAX_DEPTH:
        raise ValueError(f"not a path beneath the workspace: {path!r}")
    return parts


def open_beneath(root: int, parts: list[str], flags: int, mode: int = 0) -> int:
    """Open a path beneath directory descriptor `root` without following links.

    Raises:
        OSError: If it does not exist or leads through a link.
    """
    if sys.platform == "linux":
        try:
            return openat2(root, "/".join(parts), flags | os.O_NOFOLLOW, mode)
        except OSError as error:
            if error.errno not in _NO_OPENAT2:
                raise
    # Older kernels, containers that filter openat2, and macOS: one component at a time.
    folder = os.dup(root)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=folder)
    finally:
        os.close(folder)


def read_regular(root: int, path: str, max_bytes: int) -> bytes:
    """Read a regular file with one name and at most `max_bytes` bytes.

    Raises:
        ValueError: If it is anything else; the message says what.
        OSError: If it cannot be opened.
    """
    # O_NONBLOCK: opening a FIFO must not wait for a writer.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
    descriptor = open_beneath(root, parts_of(path), flags)
    with open(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise ValueError("not a regular file")
        if facts.st_nlink != 1:
            raise ValueError(f"{facts.st_nlink} hard links")
        if facts.st_size > max_bytes:
            raise ValueError(f"{facts.st_size} bytes, more than {max_bytes}")
        data = file.read(max_bytes + 1)  # it may grow meanwhile
        if len(data) > max_bytes:
            raise ValueError(f"more than {max_bytes} bytes")
        return data


def write_regular(root: int, path: str, source: int) -> None:
    """Create `path` with the content of file descriptor `source`, replacing a file, making folders.

    Raises:
        ValueError: If the path is no path beneath `root`.
        OSError: If it leads through a link or the disk is full.
    """
    parts = parts_of(path)
    for depth in range(1, len(parts)):
        parent = _folder(root, parts[: depth - 1])
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(parts[depth - 1], dir_fd=parent)
                os.chmod(parts[depth - 1], 0o777, dir_fd=parent)  # agents may be other users than this process
        finally:
            os.close(parent)
    parent = _folder(root, parts[:-1])
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(parts[-1], dir_fd=parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        target = open_beneath(parent, parts[-1:], flags, 0o666)
        os.fchmod(target, 0o666)
        with open(target, "wb") as out, open(os.dup(source), "rb") as data:
            shutil.copyfileobj(data, out, 1 << 20)
    finally:
        os.close(parent)


def _folder(root: int, parts: list[str]) -> int:
    return open_beneath(root, parts, os.O_RDONLY | os.O_DIRECTORY) if parts else os.dup(root)


def walk_regular(root: int) -> Iterator[tuple[str, int, int]]:
    """Yield (path, size, disk bytes) of the regular files beneath `root`, at most `MAX_FILES` entries in all."""
    seen = 0
    stack: list[list[str]] = [[]]
    while stack:
        parts = stack.pop()
        try:
            folder = _folder(root, parts)
        except OSError:
            continue
        with contextlib.closing(_Descriptor(folder)), os.scandir(folder) as entries:
            for entry in entries:
                seen += 1
                if seen > MAX_FILES:
                    return
                try:
                    facts = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                if stat.S_ISDIR(facts.st_mode) and len(parts) + 1 < MAX_DEPTH:
                    stack.append([*parts, entry.name])
                elif stat.S_ISREG(facts.st_mode):
                    yield "/".join([*parts, entry.name]), facts.st_size, facts.st_blocks * 512


class _Descriptor:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def close(self) -> None:
        os.close(self._descriptor)


def clear(root: int) -> None:
    """Delete everything beneath `root`, following no link; what cannot be deleted stays."""
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        for entry in list(entries):
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    with contextlib.suppress(OSError):
                        os.chmod(entry.name, 0o700, dir_fd=root)
                    shutil.rmtree(entry.name, ignore_errors=True, dir_fd=root)
                else:
                    os.unlink(entry.name, dir_fd=root)


def escaped(path: str) -> str:
    """Return a file name that is safe to print: control characters and undecodable bytes as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in path)
