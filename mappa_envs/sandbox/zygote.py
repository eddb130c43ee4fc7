"""The preloaded process that every kernel is forked from. It runs inside bubblewrap at level 3, bare at 2 and 1.

One thread, no event loop, no zmq context, no socket but its own: forking is safe only so. The IPython shell is made
beforehand, see `kernel_app.prepare`; its history, which would be a thread and a file, is switched off. The zygote was
started with a clean environment and never holds anything secret, because agents can read all inherited memory.

It takes orders on an inherited socket, which no path leads to. Messages are JSON with descriptors beside them:

    kernel     fork a kernel (+ its report socket)         attach      give a running kernel its workspace
    workspace  make a workspace (replies its descriptor)   drop        free a workspace
    write      create a file in a workspace (+ its source)
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time
from typing import Any

from mappa_envs.sandbox import files, monitor, syscalls

PRELOADED = (
    "numpy", "pandas", "scipy.stats", "scipy.optimize", "sklearn.ensemble", "sklearn.linear_model",
    "sklearn.model_selection", "sklearn.preprocessing", "sklearn.pipeline", "sklearn.compose", "sklearn.impute",
    "sklearn.metrics", "sklearn.neighbors", "sklearn.tree", "sympy", "matplotlib.pyplot",
    "matplotlib_inline.backend_inline",
    "ipykernel.kernelapp", "jupyter_client.session", "zmq.eventloop.zmqstream",
    "IPython.core.pylabtools", "mappa_envs.sandbox.kernel_app", "mappa_envs.sandbox.confine",
)  # fmt: skip
KEPT = ("mappa_envs.sandbox.kernel_app", "mappa_envs.sandbox.streams")
"""Modules of this project that agents can import, because their kernel runs them."""
WORKSPACES = "/ws"
_MESSAGE = 1 << 20


def send(channel: socket.socket, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> None:
    """Send one message; a reader that is gone is no error."""
    with contextlib.suppress(OSError):
        socket.send_fds(channel, [json.dumps(message).encode()], list(descriptors))


def receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Receive one message with its descriptors; None at the end."""
    data, descriptors, _, _ = socket.recv_fds(channel, _MESSAGE, 4, socket.MSG_CMSG_CLOEXEC)
    return (json.loads(data), descriptors) if data else None


class Zygote:
    """State of the zygote: its settings, and a command socket to the monitor of every kernel."""

    def __init__(self, settings: dict[str, Any], control: socket.socket) -> None:
        self.settings = settings
        self.control = control
        self.monitors: dict[str, socket.socket] = {}
        self.own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY) if settings["level"] == 3 else -1

    def serve(self) -> None:
        """Take orders until the host closes the control socket."""
        while True:
            ends = {channel.fileno(): name for name, channel in self.monitors.items()}
            poller = select.poll()
            for end in (self.control.fileno(), *ends):
                poller.register(end, select.POLLIN)
            readable = {end for end, _ in poller.poll()}
            for end in readable & ends.keys():  # monitors never write: their kernel has ended
                self.monitors.pop(ends[end]).close()
            if self.control.fileno() in readable:
                order = receive(self.control)
                if order is None:
                    return
                self.obey(*order)

    def obey(self, order: dict[str, Any], descriptors: list[int]) -> None:
        """Carry out one order and reply; a failure is a reply, too."""
        reply: tuple[int, ...] = ()
        try:
            reply = getattr(self, f"_{order['op']}")(order, descriptors)
            send(self.control, {"ok": True}, reply)
        except OSError as error:
            send(self.control, {"ok": False, "errno": error.errno, "error": str(error)})
        except (ValueError, RuntimeError) as error:
            fault = isinstance(error, RuntimeError)
            send(self.control, {"ok": False, "errno": None, "error": str(error), "fault": fault})
        finally:
            for descriptor in (*descriptors, *reply):
                os.close(descriptor)

    def _kernel(self, order: dict[str, Any], descriptors: list[int]) -> tuple[int, ...]:
        if len(os.listdir("/proc/self/task")) != 1:
            raise RuntimeError("the zygote has more than one thread, so forking it is not safe")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if self._fork_into_new_pids() == 0:
            try:
                self.control.close()
                ours.close()
                for other in self.monitors.values():
                    other.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                report = socket.socket(fileno=os.dup(descriptors[0]))
                os.close(descriptors[0])
                monitor.run({**self.settings, **order}, report, theirs)
            finally:
                os._exit(70)
        theirs.close()
        self.monitors[order["id"]] = ours
        return ()

    def _fork_into_new_pids(self) -> int:
        """Fork; at level 3 the child is process 1 of a pid namespace, without a process in between."""
        if self.own_pids < 0:
            return os.fork()
        syscalls.unshare(syscalls.CLONE_NEWPID)
        try:
            return os.fork()
        finally:
            with contextlib.suppress(OSError):  # in the child: its namespace is another one now
                syscalls.setns(self.own_pids, syscalls.CLONE_NEWPID)

    def _attach(self, order: dict[str, Any], descriptors: list[int]) -> tuple[int, ...]:
        mounted = syscalls.clone_mount(f"{WORKSPACES}/{order['workspace']}")
        try:
            send(self.monitors[order["id"]], {"attach": True}, (mounted,))
        except KeyError:
            raise RuntimeError("this kernel has ended") from None
        finally:
            os.close(mounted)
        return ()

    def _workspace(self, order: dict[str, Any], descriptors: list[int]) -> tuple[int, ...]:
        path = f"{WORKSPACES}/{order['name']}"
        os.mkdir(path)
        inodes = 20_000
        options = f"size={order['disk_mb']}m,nr_inodes={inodes},mode=0777"
        syscalls.mount("workspace", path, "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, options)
        return (os.open(path, os.O_RDONLY | os.O_DIRECTORY),)

    def _drop(self, order: dict[str, Any], descriptors: list[int]) -> tuple[int, ...]:
        path = f"{WORKSPACES}/{order['name']}"
        syscalls.unmount(path)
        os.rmdir(path)
        return ()

    def _write(self, order: dict[str, Any], descriptors: list[int]) -> tuple[int, ...]:
        root = os.open(f"{WORKSPACES}/{order['name']}", os.O_RDONLY | os.O_DIRECTORY)
        try:
            files.write_regular(root, order["path"], descriptors[0])
        finally:
            os.close(root)
        return ()


def enter_namespaces(uid: int | None) -> None:
    """At level 3: become an unprivileged user, then own a mount namespace in which workspaces can be mounted.

    Args:
        uid: User and group id to take where this process is root, or None to stay who it is.
    """
    if uid is not None:
        # For root bubblewrap covers these, and a covered /proc forbids kernels to mount their own. An ordinary
        # user cannot write to them anyway.
        for name in ("sys", "sysrq-trigger", "irq", "bus"):
            syscalls.unmount(f"/proc/{name}")
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        # Changing the user closed /proc/self, where the maps of the new namespace are written.
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
    user, group = os.getuid(), os.getgid()
    syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNS | syscalls.CLONE_NEWPID)
    syscalls.map_self(user, group)
    # Only process namespaces of the own user namespace can be entered again, see `_fork_into_new_pids`.
    child = os.fork()
    if child != 0:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)
    syscalls.mount("none", "/", "", syscalls.MS_REC | syscalls.MS_PRIVATE)
    flags = syscalls.MS_NOSUID | syscalls.MS_NODEV
    syscalls.mount("workspaces", WORKSPACES, "tmpfs", flags, "size=1m,mode=0711")


def preload() -> None:
    """Import what kernels share, and make sure that nothing of it started a thread."""
    for name in PRELOADED:
        importlib.import_module(name)
    import matplotlib.font_manager
    import numpy
    import pandas

    # The first use of these is slow, and lazy parts are then shared as well.
    matplotlib.font_manager.findfont("DejaVu Sans")
    numpy.linalg.lstsq(numpy.eye(2), numpy.ones(2), rcond=None)
    repr(pandas.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}).describe())


def rehearse(folder: str) -> None:
    """Build a kernel in a throw-away child, and import here what it had to import there.

    What is imported only when a kernel starts depends on the versions of a dozen packages; this finds it for all.
    """
    from mappa_envs.sandbox import kernel_app

    reading, writing = os.pipe()
    known = set(sys.modules)
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            null = os.open("/dev/null", os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            channels = ("shell", "iopub", "stdin", "control", "hb")
            ports = {channel: port for port, channel in enumerate(channels, 1)}
            connection = {"ip": f"{folder}/rehearsal", "key": "rehearsal", "ports": ports, "heartbeat": True}
            kernel_app.build(connection, workdir=folder, scratch=folder, seed=None)
            os.write(writing, json.dumps([name for name in sys.modules if name not in known]).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        found = pipe.read()
    os.waitpid(pid, 0)
    for name in json.loads(found or b"[]"):
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    # ipykernel looks at every module; some answer the first such look with an import.
    for module in list(sys.modules.values()):
        with contextlib.suppress(Exception):
            getattr(module, "__file__", None)


def main() -> None:
    """Start up, say so, and serve."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    # Not in the arguments, which every kernel can read in /proc.
    first = receive(control)
    if first is None:
        return
    settings, started = first[0], time.monotonic()
    try:
        if settings["level"] == 3:
            enter_namespaces(settings["server_uid"])
        preload()
        rehearse(os.environ["TMPDIR"])
        from mappa_envs.sandbox import kernel_app

        kernel_app.prepare()
    except Exception as error:
        send(control, {"ok": False, "errno": None, "error": f"{type(error).__name__}: {error}"})
        raise SystemExit(1) from None
    sys.path[:] = [entry for entry in sys.path if entry != settings["code"]]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Listed here, once: a look at the names of all modules would copy five megabytes of them in every kernel.
    settings["forgotten"] = [name for name in sys.modules if name.startswith("mappa_envs") and name not in KEPT]
    settings["forgotten"].append("__mp_main__")  # this file, under a name that multiprocessing gave it
    gc.collect()
    gc.freeze()
    syscalls.collapse_memory()
    send(control, {"ok": True, "seconds": time.monotonic() - started})
    with contextlib.suppress(KeyboardInterrupt, ConnectionError):
        Zygote(settings, control).serve()


if __name__ == "__main__":
    main()
