"""What a freshly forked kernel does to itself, in the only order that works. Runs inside."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from typing import Any

from mappa_envs.sandbox import isolation, syscalls
from mappa_envs.sandbox.isolation import DEVICE, MAKE_SOCK, READ, READ_DIR, READ_WRITE

_DEVICES = ("null", "zero", "full", "random", "urandom")
_BACKSTOP = 1000
_PROC_BELOW_3 = ("cpuinfo", "meminfo", "stat", "version", "loadavg", "filesystems")


def kernel(order: dict[str, Any], places: dict[str, str]) -> Any:
    """Confine this process and return its kernel application, ready to be started."""
    # The zygote's objects stay frozen: collecting them would write to, and so copy, every page that is shared.
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    level, uid = order["level"], order["kernel_uid"]
    os.umask(0o022 if level == 3 else 0)
    os.environ.update(HOME=places["home"], TMPDIR=places["tmp"], PWD=places["work"], PYTHONPATH=order["python_path"])
    os.chdir(places["home"])
    limits = dict(order["rlimits"])
    limits["RLIMIT_AS"] += isolation.address_space()
    if level < 3 and uid is None:
        # Without a user or a user namespace of its own the kernel shares the count with all that the user runs, so
        # the limit is only a backstop: the monitor kills the kernel that has too many, before others run short.
        limits["RLIMIT_NPROC"] += isolation.tasks_of(os.getuid()) + _BACKSTOP
    if uid is not None:
        _take_uid(uid, order["kernel_groups"], order["keep_dac"])
    # Cleared by the change of user.
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if level == 3:
        # A user namespace of its own also gives it a process count of its own.
        user, group = os.getuid(), os.getgid()
        syscalls.unshare(syscalls.CLONE_NEWUSER)
        syscalls.map_self(user, group)
        isolation.set_rlimits(limits)
        syscalls.drop_capabilities()
        isolation.landlock(_rules(order, places))
    else:
        isolation.set_rlimits(limits)
    if level == 2:
        isolation.landlock(_rules(order, places))
    from mappa_envs.sandbox import kernel_app

    for name in order["forgotten"]:
        sys.modules.pop(name, None)
    sys.path.insert(0, "")
    connection = {**order["connection"], "ip": f"{places['sockets']}/k"}
    app = kernel_app.build(connection, workdir=places["work"], scratch=places["home"], seed=order["seed"])
    gc.enable()
    isolation.seccomp()
    return app


def _take_uid(uid: int, groups: list[int], keep_dac: bool) -> None:
    """Become `uid`, a member of `groups`.

    With `keep_dac` it may still read where only root may: an interpreter in root's home, at level 2.
    """
    if keep_dac:
        syscalls.prctl(syscalls.PR_SET_KEEPCAPS, 1)
    os.setgroups(groups)
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    syscalls.drop_capabilities(1 << syscalls.CAP_DAC_READ_SEARCH if keep_dac else 0)


def _rules(order: dict[str, Any], places: dict[str, str]) -> list[tuple[str, int]]:
    rules = [rule for path in order["readable"] for rule in _without(path, order["hidden"])]
    rules += [(f"/dev/{name}", DEVICE) for name in _DEVICES]
    if order["level"] == 3:
        rules += [("/", READ_DIR), ("/proc", READ), ("/dev/shm", READ_WRITE), ("/etc", READ)]
    else:
        rules += [(f"/proc/{name}", READ) for name in _PROC_BELOW_3]
        rules += [(places["work"], READ_WRITE)]
    rules += [(places["home"], READ_WRITE), (places["tmp"], READ_WRITE), (places["sockets"], MAKE_SOCK)]
    return rules


def _without(path: str, hidden: list[str]) -> list[tuple[str, int]]:
    """Return rules that make `path` readable but for the paths in `hidden`: Landlock can only allow."""
    if path in hidden:
        return []
    if not any(other.startswith(f"{path.rstrip('/')}/") for other in hidden):
        return [(path, READ)]
    rules = [(path, READ_DIR)]
    with contextlib.suppress(OSError):
        for name in os.listdir(path):
            rules += _without(f"{path.rstrip('/')}/{name}", hidden)
    return rules


def facts(order: dict[str, Any]) -> dict[str, Any]:
    """Look around as agent code would and return what is seen; the host decides whether it is good enough."""
    seen: dict[str, Any] = {"uid": os.getuid(), "visible": [], "writable": [], "status": {}}
    for path in order["probe"]["must_not_see"]:
        if os.path.lexists(path):
            seen["visible"].append(path)
    for path in order["probe"]["must_not_open"]:
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_RDONLY))
            seen["visible"].append(path)
    for path in ("/", "/usr", "/etc"):
        with contextlib.suppress(OSError):
            name = f"{path}/.mappa-probe-{os.getpid()}"
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            os.unlink(name)
            seen["writable"].append(path)
    with contextlib.suppress(OSError), open("/proc/self/status") as file:
        lines = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        seen["status"] = {name: lines.get(name) for name in ("Seccomp", "NoNewPrivs", "CapEff", "NSpid")}
    with contextlib.suppress(OSError), open("/proc/net/dev") as file:
        seen["interfaces"] = [line.split(":")[0].strip() for line in file.readlines()[2:]]
    import socket

    for family in ("AF_INET", "AF_INET6"):
        with contextlib.suppress(OSError):
            socket.socket(getattr(socket, family)).close()
            seen["network"] = True
    try:
        import sqlite3  # noqa: F401

        import sklearn.svm  # noqa: F401  # not preloaded: the interpreter must be readable from inside
    except ImportError as error:
        seen["import_error"] = str(error)
    return seen
