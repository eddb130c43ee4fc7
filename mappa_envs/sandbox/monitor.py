"""The half of a kernel that agent code cannot reach: makes its rooms, forks it, watches its memory, buries it.

At level 3 it is process 1 of the kernel's pid namespace, so whatever the kernel started dies with it. Below, it
adopts the kernel's orphans and kills them at the end. Runs inside; forked from the zygote.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import time
from typing import Any

from mappa_envs.sandbox import syscalls
from mappa_envs.sandbox.syscalls import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_PRIVATE, MS_RDONLY, MS_REC

HOME, WORK, TMP, SOCKETS = "/agent/home", "/agent/home/work", "/agent/tmp", "/agent/sockets"
WATCH_SECONDS = 0.2
_PAGE = os.sysconf("SC_PAGE_SIZE")
_FLAGS = MS_NOSUID | MS_NODEV


def run(order: dict[str, Any], report: socket.socket, commands: socket.socket) -> None:
    """Be the monitor of one kernel; never returns."""
    try:
        os.setsid()
        if order["level"] == 3:
            # It stays in the zygote's user namespace, whose rights it needs to mount; the kernel gets its own.
            flags = syscalls.CLONE_NEWIPC | syscalls.CLONE_NEWUTS | syscalls.CLONE_NEWNET
            syscalls.unshare(syscalls.CLONE_NEWNS | flags)
        else:
            syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
        places = _make_rooms(order)
        kernel = os.fork()
        if kernel == 0:
            _become_kernel(order, places, report, commands)
        _watch(order, kernel, report, commands)
    except BaseException as error:
        _tell(report, {"failed": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(0)


def _tell(report: socket.socket, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> None:
    with contextlib.suppress(OSError):
        socket.send_fds(report, [json.dumps(message).encode()], list(descriptors))


def _make_rooms(order: dict[str, Any]) -> dict[str, str]:
    """Make the kernel's private folders; at level 3 also hide everything that is not its own."""
    name = order["id"]
    if order["level"] == 3:
        syscalls.mount("none", "/", "", MS_REC | MS_PRIVATE)
        syscalls.mount("proc", "/proc", "proc", _FLAGS | MS_NOEXEC)
        syscalls.mount("agent", "/agent", "tmpfs", _FLAGS, f"size={order['disk_mb']}m,nr_inodes=20000,mode=0755")
        for path in (HOME, WORK, TMP, SOCKETS):
            os.mkdir(path)
        syscalls.mount("shm", "/dev/shm", "tmpfs", _FLAGS | MS_NOEXEC, "size=64m,nr_inodes=1000,mode=0777")
        own = f"{order['sockets']}/{name}"
        os.mkdir(own, 0o700)
        syscalls.mount(own, SOCKETS, "", MS_BIND)
        if order["tmp_is_free"]:
            syscalls.mount(TMP, "/tmp", "", MS_BIND)
        for path in (order["sockets"], order["workspaces"]):
            syscalls.mount("hidden", path, "tmpfs", _FLAGS | MS_RDONLY, "size=4k,mode=0555")
        return {"home": HOME, "work": WORK, "tmp": TMP, "sockets": SOCKETS}
    scratch, own = f"{order['scratch']}/{name}", f"{order['sockets']}/{name}"
    places = {"home": f"{scratch}/home", "work": order["workdir"], "tmp": f"{scratch}/tmp", "sockets": own}
    for path in (scratch, places["home"], places["tmp"], own):
        os.mkdir(path, 0o700)
        if order["kernel_uid"] is not None:
            os.chown(path, order["kernel_uid"], order["kernel_uid"])
    return places


def _become_kernel(
    order: dict[str, Any], places: dict[str, str], report: socket.socket, commands: socket.socket
) -> None:
    try:
        commands.close()
        os.setsid()
        null = os.open("/dev/null", os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        keep = report.fileno()
        os.closerange(3, keep)
        os.closerange(keep + 1, 1 << 16)
        from mappa_envs.sandbox import confine

        app = confine.kernel(order, places)
        _tell(report, {"ready": True, "facts": confine.facts(order) if order.get("probe") else None})
        report.close()
        app.start()
    except BaseException as error:
        _tell(report, {"failed": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(0)


def _watch(order: dict[str, Any], kernel: int, report: socket.socket, commands: socket.socket) -> None:
    ended = syscalls.pidfd_open(kernel)
    own = syscalls.pidfd_open(os.getpid())
    # As process 1 this one takes no signal from inside; nor may anything inside look into its memory.
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    _tell(report, {"started": True}, (own, ended))
    os.close(own)
    poller = select.poll()
    for descriptor in (ended, commands.fileno(), report.fileno()):
        poller.register(descriptor, select.POLLIN)
    limit = order["memory_mb"] * 2**20
    base = _anonymous(kernel)
    why = None
    while True:
        ready = [descriptor for descriptor, _ in poller.poll(WATCH_SECONDS * 1000)]
        if commands.fileno() in ready:
            data, descriptors, _, _ = socket.recv_fds(commands, 4096, 1, socket.MSG_CMSG_CLOEXEC)
            if not data:
                break
            _attach(report, descriptors)
        if report.fileno() in ready:  # the host says kill, or is gone
            break
        if ended in ready:
            break
        _reap(except_for=kernel)
        tree = _descendants()
        if len(tree) > order["rlimits"]["RLIMIT_NPROC"]:  # only where that limit is shared, see `confine.kernel`
            why = f"it had more than {order['max_processes']} processes"
            break
        if _over(tree, limit, base):
            why = f"it used more than {order['memory_mb']} MiB of memory"
            break
    _finish(order, kernel, report, why)


def _attach(report: socket.socket, descriptors: list[int]) -> None:
    try:
        syscalls.attach_mount(descriptors[0], WORK)
        _tell(report, {"attached": True})
    except OSError as error:
        _tell(report, {"attached": False, "error": str(error)})
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _reap(except_for: int) -> None:
    """Bury orphans, whose count would run into the limit of processes; the kernel itself is left for the end."""
    with contextlib.suppress(ChildProcessError):
        while True:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None or found.si_pid == except_for:
                return
            os.waitpid(found.si_pid, 0)


def _anonymous(pid: int) -> int:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/statm") as file:
        fields = file.read().split()
        return (int(fields[1]) - int(fields[2])) * _PAGE
    return 0


def _over(tree: list[int], limit: int, base: int) -> bool:
    """Tell whether the kernel's processes use more than `limit` bytes beyond what they share with the zygote.

    The quick count takes pages that parent and child still share twice; only where it is too high are the
    proportional sizes read, which takes a millisecond per process.
    """
    if sum(max(0, _anonymous(pid) - base) for pid in tree) <= limit:
        return False
    return sum(_proportional(pid) for pid in tree) > limit + base


def _proportional(pid: int) -> int:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            if line.startswith("Pss_Anon:"):
                return int(line.split()[1]) * 1024
    return _anonymous(pid)


def _descendants() -> list[int]:
    """Return every process beneath this one."""
    found: list[int] = []
    stack = [os.getpid()]
    while stack:
        pid = stack.pop()
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as file:
                    stack += [int(child) for child in file.read().split()]
        if pid != os.getpid():
            found.append(pid)
    return found


def _finish(order: dict[str, Any], kernel: int, report: socket.socket, why: str | None) -> None:
    """Kill what is left and report how the kernel ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(kernel, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(kernel, 0)[1])
    if order["level"] != 3:
        _kill_orphans(order["kernel_uid"])
        shutil.rmtree(f"{order['scratch']}/{order['id']}", ignore_errors=True)
    _tell(report, {"exit": code, "why": why})


def _kill_orphans(uid: int | None) -> None:
    """Kill what the kernel left: all of it became this process's children when its own parents ended."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        if uid is not None:  # all at once, so that nothing can fork faster than it is killed
            helper = os.fork()
            if helper == 0:
                with contextlib.suppress(OSError):
                    os.setresgid(uid, uid, uid)
                    os.setresuid(uid, uid, uid)
                    os.kill(-1, signal.SIGKILL)
                os._exit(0)
            os.waitpid(helper, 0)
        for pid in _descendants():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)
