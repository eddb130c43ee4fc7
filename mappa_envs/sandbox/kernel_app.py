"""The IPython kernel that runs inside the sandbox: stock ipykernel, with output bounded at the source.

This file runs in the kernel's process. It must import nothing of this project but `mappa_envs.sandbox.streams`,
because little else of it is visible there.
"""

# ruff: noqa: E402
from __future__ import annotations

import contextlib
import contextvars
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

# debugpy costs 100 ms of start-up and is a second control channel; agents have no use for it.
sys.modules.setdefault("debugpy", None)  # type: ignore[arg-type]

import ipykernel.ipkernel
from ipykernel.compiler import XCachingCompiler
from ipykernel.displayhook import ZMQShellDisplayHook
from ipykernel.iostream import IOPubThread
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQDisplayPublisher, ZMQInteractiveShell
from IPython.core.profiledir import ProfileDir
from jupyter_client.session import new_id
from traitlets import Float, Type

from mappa_envs.sandbox.streams import EVALUE_CHARS, TEXT_CHARS, BoundedStream, bounded, clean, cut_middle


def _drain_streams() -> None:
    """Keep the order: what other programs printed before a result or an error goes first."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, BoundedStream):
            stream.drain_descriptor()


class _Publisher(ZMQDisplayPublisher):
    def publish(self, data: Any, metadata: Any = None, **kwargs: Any) -> None:
        _drain_streams()
        super().publish(bounded(data), metadata, **kwargs)


class _DisplayHook(ZMQShellDisplayHook):
    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        _drain_streams()
        super().write_format_data(bounded(format_dict), md_dict)


class _Shell(ZMQInteractiveShell):
    display_pub_class = Type(_Publisher)
    displayhook_class = Type(_DisplayHook)

    def _showtraceback(self, etype: Any, evalue: Any, stb: list[str]) -> None:
        _drain_streams()
        text = clean(cut_middle("\n".join(stb), TEXT_CHARS))
        super()._showtraceback(etype, clean(cut_middle(_safe_str(evalue), EVALUE_CHARS)), [text])

    def system(self, cmd: str) -> None:
        """Run `!cmd` on pipes: there is no pseudo-terminal in the sandbox."""
        done = subprocess.Popen(
            self.var_expand(cmd, depth=1), shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
        with done.stdout or contextlib.nullcontext(io.StringIO()) as output:
            while chunk := output.read(4096):
                sys.stdout.write(chunk)
        self.user_ns["_exit_code"] = done.wait()

    system_piped = system

    def ask_exit(self) -> None:
        """Do nothing on `exit()`: the host decides when the kernel ends."""


class _Kernel(IPythonKernel):
    shell_class = Type(_Shell)
    # ipykernel waits before it replies, so that output arrives first; our client takes them in any order.
    _execute_sleep = Float(0.0)

    def __init__(self, **kwargs: Any) -> None:
        # ipykernel lists the files of all modules for its debugger. Touching each of them would copy 15 MB that a
        # forked kernel shares with all others, and take a fifth of its start.
        with _no_modules(ipykernel.ipkernel):
            super().__init__(**kwargs)

    async def do_execute(self, *args: Any, **kwargs: Any) -> Any:
        try:
            reply = await super().do_execute(*args, **kwargs)
        except Exception as error:  # e.g. the cell's exception has a __str__ that raises
            reply = {
                "status": "error", "ename": type(error).__name__, "evalue": _safe_str(error), "traceback": [],
                "execution_count": self.shell.execution_count, "user_expressions": {}, "payload": [],
            }  # fmt: skip
        if reply.get("status") == "error":
            reply["evalue"] = clean(cut_middle(str(reply.get("evalue", "")), EVALUE_CHARS))
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, BoundedStream):
                stream.finish()
        return reply


class _IOPub(IOPubThread):
    """IOPub thread whose pipe from forked processes is a socket file instead of a TCP port."""

    pipe_path = ""

    def send_multipart(self, *args: Any, **kwargs: Any) -> None:
        """Send at once when already on the IOPub thread.

        ipykernel queues it again, so that `print(..., flush=True)` returns before the text is out, and a cell that
        then holds the interpreter's lock for ever takes the text with it.
        """
        if threading.current_thread() is self.thread:
            self._really_send(*args, **kwargs)
        else:
            super().send_multipart(*args, **kwargs)

    def _setup_pipe_in(self) -> None:
        import zmq
        from zmq.eventloop.zmqstream import ZMQStream

        self._pipe_uuid = os.urandom(16)
        pipe_in = self.socket.context.socket(zmq.PULL)
        pipe_in.linger = 0
        pipe_in.bind(f"ipc://{self.pipe_path}")
        self._pipe_in = ZMQStream(pipe_in, self.io_loop)
        self._pipe_in.on_recv(self._handle_pipe_msg)

    def _setup_pipe_out(self) -> Any:
        import zmq

        context = zmq.Context()
        pipe_out = context.socket(zmq.PUSH)
        pipe_out.linger = 1000
        pipe_out.connect(f"ipc://{self.pipe_path}")
        return context, pipe_out


class App(IPKernelApp):
    """`IPKernelApp` whose connection comes as an argument, not in a file, and is always ipc."""

    kernel_class = Type(_Kernel)
    outstream_class = "mappa_envs.sandbox.streams.BoundedStream"
    heartbeat_wanted = False

    def parse_command_line(self, argv: Any = None) -> None:
        """Leave out: building the parser takes 10 ms, and there is nothing to parse."""

    def init_connection_file(self) -> None:
        """Leave out: there is no connection file to read, write or delete."""

    def write_connection_file(self, **kwargs: Any) -> None:
        """Leave out, as above."""

    def update_config(self, config: Any) -> None:
        """Leave out what changes nothing: IPython applies the configuration twice, which touches every setting."""
        if config != self.config:
            super().update_config(config)

    def init_config_files(self) -> None:
        """Leave out: kernels are alike everywhere, whatever the machine configures for its own IPython."""

    def load_config_file(self, *args: Any, **kwargs: Any) -> None:
        """Leave out, as above."""

    def init_code(self) -> None:
        """Leave out start-up files, as above; IPython would also list all modules, see `_Kernel.__init__`."""
        self.shell.user_ns_hidden.update(self.shell.user_ns)

    def init_heartbeat(self) -> None:
        """Start the heartbeat only for stock clients: ours watches the process itself."""
        if self.heartbeat_wanted:
            super().init_heartbeat()

    def init_crash_handler(self) -> None:
        """Leave `sys.excepthook` alone."""

    def _bind_socket(self, s: Any, port: int) -> Any:
        # ipykernel's XPUB would drop messages silently at 1000; the amount is bounded by BoundedStream instead.
        s.sndhwm = 0
        return super()._bind_socket(s, port)


@contextlib.contextmanager
def _no_modules(module: Any) -> Iterator[None]:
    """Let the code of `module` see an empty `sys.modules`."""

    class Sys:
        modules: Mapping[str, Any] = {}

        def __getattr__(self, name: str) -> Any:
            return getattr(sys, name)

    module.sys = Sys()
    try:
        yield
    finally:
        module.sys = sys


def _safe_str(value: object) -> str:
    try:
        return str(value)
    except Exception as error:
        return f"<str() of the exception failed: {type(error).__name__}>"


def _config() -> Any:
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.xmode = "Plain"
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.cache_size = 0
    config.IPCompleter.use_jedi = False
    config.IPKernelApp.extensions = []
    config.IPKernelApp.exec_PYTHONSTARTUP = False
    config.IPKernelApp.log_level = 50
    return config


def prepare() -> None:
    """Make what is the same in every kernel, so that it is made once, before kernels are forked.

    The application and its shell only: no thread, loop, socket, file or secret, which a fork must not inherit.
    `build` then gives them what is a kernel's own; it calls this itself in a process that was not forked.
    """
    config = _config()
    app = App.instance(config=config)
    app.log.setLevel(app.log_level)  # else records of every level are made, and then dropped by the handler
    app.session  # noqa: B018  # made when it is first asked for
    shell = _Shell.instance(config=config, profile_dir=ProfileDir(), compiler_class=XCachingCompiler)
    shell.run_cell("pass", silent=True)  # has made what is made when it is first used
    shell.display_formatter.format(0)
    tempfile.tempdir = None  # looked up meanwhile, and another in the kernel


def build(connection: Mapping[str, Any], *, workdir: str, scratch: str, seed: int | None) -> Any:
    """Make and initialise the kernel application of this process; `start()` then runs it for ever.

    Args:
        connection: `ip` (path prefix of the sockets), `key`, `ports` (of each channel) and `heartbeat`.
        workdir: Directory to enter before the first cell; it may be mounted only later.
        scratch: Private writable directory for IPython's own files.
        seed: Seed of `random` and `numpy.random`, or None for one from the operating system.
    """
    _reseed(seed)
    _IOPub.pipe_path = f"{connection['ip']}-0"
    import ipykernel.kernelapp

    ipykernel.kernelapp.IOPubThread = _IOPub
    os.environ["IPYTHONDIR"] = f"{scratch}/ipython"
    if not _Shell.initialized():
        prepare()
    app = App.instance()
    app.heartbeat_wanted = bool(connection.get("heartbeat"))
    app.default_extensions = []
    app.transport = "ipc"
    app.ip = connection["ip"]
    app.session.pid, app.session.session = os.getpid(), new_id()
    app.session.key = str(connection["key"]).encode()
    for channel, port in connection["ports"].items():
        setattr(app, f"{channel}_port", port)
    shell = _Shell.instance()
    app.user_ns = shell.user_ns
    app.initialize([])
    _own(shell, app)
    _threads_keep_their_cell()
    warnings.filterwarnings("ignore", message="To exit: use")  # IPython's advice after sys.exit()
    _enable_plots(shell)

    def enter(*_: object) -> None:
        os.chdir(workdir)
        shell.events.unregister("pre_run_cell", enter)

    shell.events.register("pre_run_cell", enter)
    return app


def _own(shell: Any, app: App) -> None:
    """Give a prepared shell what its constructor takes from the kernel and its surroundings."""
    shell.parent = shell.kernel = app.kernel
    shell.profile_dir = app.profile_dir
    shell.ipython_dir = app.ipython_dir
    shell.starting_dir = os.getcwd()
    shell.user_ns["_dh"][:] = [Path(shell.starting_dir)]


def _threads_keep_their_cell() -> None:
    """Start threads in a copy of the context that starts them, as Python 3.14 does.

    What a thread prints after its cell has ended then still carries that cell's id, and the host leaves it out of
    the next cell's output.
    """
    start = threading.Thread.start

    def start_in_context(self: threading.Thread) -> None:
        context, run = contextvars.copy_context(), self.run
        self.run = lambda: context.run(run)  # type: ignore[method-assign]
        start(self)

    threading.Thread.start = start_in_context  # type: ignore[method-assign]


def _reseed(seed: int | None) -> None:
    random.seed(seed)
    if "numpy" in sys.modules:
        import numpy

        numpy.random.seed(seed)


def _enable_plots(shell: Any) -> None:
    """Show figures as PNG at the end of a cell; `%matplotlib inline` does the same and takes 24 ms more."""
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    if "matplotlib" in sys.modules:
        from matplotlib_inline.backend_inline import _enable_matplotlib_integration

        _enable_matplotlib_integration()


def _main() -> None:
    """Run one kernel in a process of its own: `python -m mappa_envs.sandbox.kernel_app REQUEST.json` (level 0)."""
    request = json.loads(Path(sys.argv[1]).read_text())
    os.umask(0o077)
    import resource

    for name, value in request["rlimits"].items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(kind, (value, value))
        except (OSError, ValueError):
            print(f"{name} could not be set", file=sys.stderr)  # macOS refuses RLIMIT_AS
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path[:] = ["", *(entry for entry in sys.path if entry != request["code"])]
    app = build(request["connection"], workdir=request["workdir"], scratch=request["scratch"], seed=request["seed"])
    app.start()


if __name__ == "__main__":
    _main()
