"""Linux system calls that Python does not wrap, by ctypes. Imports nothing of this project: it runs inside too."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct

_libc = ctypes.CDLL(None, use_errno=True)

SYS_OPEN_TREE, SYS_MOVE_MOUNT, SYS_PIDFD_OPEN, SYS_OPENAT2 = 428, 429, 434, 437
"""These numbers are the same on every architecture, as are all since 424."""

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE, MS_SLAVE = 32, 4096, 16384, 1 << 18, 1 << 19
MNT_DETACH = 2
MADV_COLLAPSE = 25

RESOLVE_NO_XDEV, RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH = 1, 2, 4, 8

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP = 1, 4, 38, 24
PR_SET_KEEPCAPS, PR_SET_CHILD_SUBREAPER, PR_CAP_AMBIENT = 8, 36, 47
CAP_DAC_READ_SEARCH, CAP_SYS_ADMIN = 2, 21

MACHINE = platform.machine()


def syscall(number: int, *args: object) -> int:
    """Make a raw system call.

    Returns:
        Its result, not negative.

    Raises:
        OSError: With the call's errno.
    """
    converted = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    result = _libc.syscall(ctypes.c_long(number), *converted)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(result)


def _checked(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def prctl(option: int, arg2: int = 0, arg3: int = 0) -> None:
    """Set an attribute of this process with the system call of that name.

    Raises:
        OSError: If it fails.
    """
    zero = ctypes.c_ulong(0)
    _checked(_libc.prctl(option, ctypes.c_ulong(arg2), ctypes.c_ulong(arg3), zero, zero), f"prctl {option}")


def unshare(flags: int) -> None:
    """Move this process into new namespaces.

    Raises:
        OSError: If the machine does not allow it.
    """
    _checked(_libc.unshare(ctypes.c_int(flags)), f"unshare {flags:#x}")


def setns(descriptor: int, kind: int) -> None:
    """Move this process (for a pid namespace: its future children) into an existing namespace.

    Raises:
        OSError: If the machine does not allow it.
    """
    _checked(_libc.setns(ctypes.c_int(descriptor), ctypes.c_int(kind)), f"setns {kind:#x}")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount a file system, or change a mount.

    Raises:
        OSError: Naming the target, if it fails.
    """
    encoded = [text.encode() if text else None for text in (source, target, kind)]
    result = _libc.mount(*encoded, ctypes.c_ulong(flags), data.encode() if data else None)
    _checked(result, f"mount {target}")


def unmount(target: str) -> None:
    """Detach the mount at `target`; nothing happens if there is none."""
    _libc.umount2(target.encode(), MNT_DETACH)


def collapse_memory() -> int:
    """Put this process's private memory on huge pages, as far as the kernel can; a fork is then half as dear.

    A fork and the end of the forked process handle every page one by one; of a huge one that nobody has written to
    they handle 2 MiB at once, and even one that was split is handled in runs.

    Returns:
        Bytes on huge pages; 0 before Linux 6.1, which cannot.
    """
    size, done = 2 << 20, 0
    with open("/proc/self/maps") as file:
        areas = [line.split() for line in file]
    for place, rights, *rest in areas:
        if not rights.startswith("rw") or (len(rest) > 3 and rest[3] != "[heap]"):
            continue
        first, end = (int(address, 16) for address in place.split("-"))
        for start in range(-(-first // size) * size, end - size + 1, size):
            failed = _libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), MADV_COLLAPSE)
            done += 0 if failed else size
    return done


def map_self(uid: int, gid: int) -> None:
    """After `unshare(CLONE_NEWUSER)`: keep this process's user and group under the same numbers.

    Args:
        uid: User id before the call.
        gid: Group id before the call.

    Raises:
        OSError: If the maps cannot be written.
    """
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def clone_mount(path: str) -> int:
    """Return a descriptor of a detached copy of the mount at `path`, which another namespace may attach.

    Raises:
        OSError: If the kernel is older than 5.2 or the caller lacks CAP_SYS_ADMIN in its namespace.
    """
    open_tree_clone = 1
    return syscall(SYS_OPEN_TREE, -100, ctypes.c_char_p(path.encode()), open_tree_clone | os.O_CLOEXEC)


def attach_mount(descriptor: int, target: str) -> None:
    """Attach a mount from `clone_mount` at `target` in this process's mount namespace.

    Raises:
        OSError: If it cannot be attached.
    """
    empty_path = 0x4
    args = (ctypes.c_char_p(b""), -100, ctypes.c_char_p(target.encode()), empty_path)
    syscall(SYS_MOVE_MOUNT, descriptor, *args)


def pidfd_open(pid: int) -> int:
    """Return a descriptor of process `pid`: readable once it has ended, and never another process's."""
    return os.pidfd_open(pid) if hasattr(os, "pidfd_open") else syscall(SYS_PIDFD_OPEN, pid, 0)


def drop_capabilities(keep: int = 0) -> None:
    """Give up every capability of this process and of all that it will start.

    Args:
        keep: Bit mask of capabilities that stay effective.
    """
    for capability in range(64):
        if not keep >> capability & 1:
            with contextlib.suppress(OSError):  # EINVAL past the last one, EPERM where it is not ours anyway
                prctl(PR_CAPBSET_DROP, capability)
    header = struct.pack("<Ii", 0x20080522, 0)
    low, high = keep & 0xFFFFFFFF, keep >> 32
    data = struct.pack("<6I", low, low, low, high, high, high)
    number = {"x86_64": 126, "aarch64": 91}[MACHINE]
    syscall(number, ctypes.c_char_p(header), ctypes.c_char_p(data))


def openat2(root: int, path: str, flags: int, mode: int = 0, *, cross_mounts: bool = False) -> int:
    """Open `path` strictly beneath directory `root`, following no link of any kind.

    Args:
        root: Directory descriptor.
        path: Relative path.
        flags: As for `os.open`; O_CLOEXEC is added.
        mode: Permissions of a created file.
        cross_mounts: Allow mounts beneath `root`.

    Raises:
        OSError: ELOOP for a link, EXDEV for an escape, ENOSYS where the kernel is older than 5.6.
    """
    resolve = RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH
    resolve |= 0 if cross_mounts else RESOLVE_NO_XDEV
    how = struct.pack("<QQQ", flags | os.O_CLOEXEC, mode, resolve)
    raw = os.fsencode(path)
    return syscall(SYS_OPENAT2, root, ctypes.c_char_p(raw), ctypes.c_char_p(how), len(how))
