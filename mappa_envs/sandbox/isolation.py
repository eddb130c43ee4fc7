"""What a kernel's process gives up before agent code runs: files (Landlock), system calls (seccomp), resources.

Runs inside the sandbox; imports nothing of this project but `mappa_envs.sandbox.syscalls`.

Order matters and is the caller's: namespaces and mounts, then Landlock (it binds one thread, so before threads
exist, and it forbids mounting), then the kernel application, then seccomp (it binds all threads at once).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import resource
import struct
from collections.abc import Iterable, Mapping

from mappa_envs.sandbox.syscalls import MACHINE, PR_SET_NO_NEW_PRIVS, prctl, syscall

# Landlock ------------------------------------------------------------------------------------------------------------

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE = (1 << i for i in range(6))
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = (1 << i for i in range(6, 13))
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15

READ = EXECUTE | READ_FILE | READ_DIR
READ_WRITE = (
    READ | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM
    | REFER | TRUNCATE
)  # fmt: skip
DEVICE = READ_FILE | WRITE_FILE
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV


def landlock_abi() -> int:
    """Return the Landlock ABI version of this kernel; 0 where there is none."""
    try:
        return syscall(_CREATE_RULESET, 0, 0, 1)
    except OSError:
        return 0


def landlock(rules: Iterable[tuple[str, int]]) -> int:
    """Confine this thread, and all that it starts, to the files that `rules` name.

    Args:
        rules: Pairs of a path and the rights beneath it; paths that do not exist are left out.

    Returns:
        The ABI version that was used. From 4 on TCP is shut, from 6 on signals and abstract sockets are too.

    Raises:
        OSError: If the kernel has no Landlock.
    """
    abi = landlock_abi()
    if abi < 1:
        raise OSError(errno.ENOSYS, "this kernel has no Landlock")
    handled = (1 << 13) - 1
    handled |= (REFER if abi >= 2 else 0) | (TRUNCATE if abi >= 3 else 0) | (IOCTL_DEV if abi >= 5 else 0)
    attributes = struct.pack("<QQQ", handled, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = syscall(_CREATE_RULESET, ctypes.c_char_p(attributes), size, 0)
    try:
        for path, rights in rules:
            _add_rule(ruleset, path, rights & handled)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    return abi


def _add_rule(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(path):
            rights &= _OF_FILES
        if rights:
            rule = struct.pack("<Qi", rights, descriptor)
            syscall(_ADD_RULE, ruleset, 1, ctypes.c_char_p(rule), 0)
    finally:
        os.close(descriptor)


# seccomp -------------------------------------------------------------------------------------------------------------

_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NUMBERS: Mapping[str, tuple[int | None, int | None]] = {
    # name: (x86_64, aarch64); None where the architecture does not have it
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "setns": (308, 268),
    "unshare": (272, 97), "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "acct": (163, 89),
    "quotactl": (179, 60), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    "fanotify_init": (300, 262), "syslog": (103, 116), "vhangup": (153, 58), "personality": (135, 92),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, None), "ioperm": (173, None),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "msgget": (68, 186),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "pidfd_getfd": (438, 438), "mount_setattr": (442, 442),
    "setuid": (105, 146), "setgid": (106, 144), "setreuid": (113, 145), "setregid": (114, 143),
    "setresuid": (117, 147), "setresgid": (119, 149), "setgroups": (116, 159), "setfsuid": (122, 151),
    "setfsgid": (123, 152), "move_pages": (279, 239), "migrate_pages": (256, 238), "mbind": (237, 235),
    "set_mempolicy": (238, 237), "lookup_dcookie": (212, 18), "nfsservctl": (180, 42),
    "uselib": (134, None), "ustat": (136, None), "modify_ldt": (154, None), "_sysctl": (156, None),
}  # fmt: skip
"""Denied with EPERM. memfd and System V memory count against no limit, so they go too."""
_SOCKET, _SOCKETPAIR, _CLONE, _IOCTL = (
    {"x86_64": 41, "aarch64": 198}, {"x86_64": 53, "aarch64": 199},
    {"x86_64": 56, "aarch64": 220}, {"x86_64": 16, "aarch64": 29},
)  # fmt: skip
_CLONE3 = 435
_NEW_NAMESPACES = 0x7E020080  # every CLONE_NEW* flag
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_AF_UNIX = 1

_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000


def _refuse(code: int) -> int:
    return 0x00050000 | code


def seccomp_program(machine: str = MACHINE) -> bytes:
    """Return the BPF program that refuses what agent code must not call.

    Args:
        machine: `x86_64` or `aarch64`.

    Raises:
        KeyError: For any other machine.
    """
    column = {"x86_64": 0, "aarch64": 1}[machine]
    code: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, _ARCH[machine]),  # another ABI's numbers would slip through the table
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
    ]
    if machine == "x86_64":
        code += [(_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _refuse(errno.ENOSYS))]  # x32
    for numbers in _NUMBERS.values():
        number = numbers[column]
        if number is not None:
            code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _refuse(errno.EPERM))]
    # glibc falls back from clone3, whose flags a filter cannot see, to clone.
    code += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _refuse(errno.ENOSYS))]
    for number in (_SOCKET[machine], _SOCKETPAIR[machine]):
        code += [
            (_EQUAL, 0, 4, number),
            (_LOAD, 0, 0, 16),
            (_EQUAL, 0, 1, _AF_UNIX),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _refuse(errno.EAFNOSUPPORT)),  # libzmq aborts on EPERM
        ]
    code += [
        (_EQUAL, 0, 4, _CLONE[machine]),
        (_LOAD, 0, 0, 16),
        (_ANY_BIT, 0, 1, _NEW_NAMESPACES),
        (_RETURN, 0, 0, _refuse(errno.EPERM)),
        (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 0, 4, _IOCTL[machine]),
        (_LOAD, 0, 0, 24),
        (_EQUAL, 1, 0, _TIOCSTI),
        (_EQUAL, 0, 1, _TIOCLINUX),
        (_RETURN, 0, 0, _refuse(errno.EPERM)),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in code)


def seccomp() -> None:
    """Apply `seccomp_program` to every thread of this process and to all that it starts.

    Raises:
        OSError: If the kernel refuses.
    """
    program = seccomp_program()
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    number, set_filter, sync_threads = {"x86_64": 317, "aarch64": 277}[MACHINE], 1, 1
    syscall(number, set_filter, sync_threads, ctypes.c_char_p(header))


# Resources -----------------------------------------------------------------------------------------------------------


def address_space() -> int:
    """Return the bytes of address space that this process has mapped already."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def tasks_of(uid: int) -> int:
    """Return how many tasks (threads) the user has on this machine, as RLIMIT_NPROC counts them."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{name}").st_uid == uid:
                    count += len(os.listdir(f"/proc/{name}/task"))
    return count


def set_rlimits(limits: Mapping[str, int]) -> None:
    """Lower soft and hard limits.

    Args:
        limits: Values by name in `resource` (`RLIMIT_NOFILE`, ...), in their own units. A hard limit that is
            lower already stays.
    """
    for name, value in limits.items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(kind, (value, value))
