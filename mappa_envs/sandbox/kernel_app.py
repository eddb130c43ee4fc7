"""The IPython kernel that runs inside the sandbox: stock ipykernel, with output bounded at the source.

This file runs in the kernel's process. It must import nothing of this project but `mappa_envs.sandbox.isolation`,
because nothing else of it is visible there.
"""

# ruff: noqa: E402
from __future__ import annotations

import codecs
import contextlib
import contextvars
import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
import warnings
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

# debugpy costs 100 ms of start-up and is a second control channel; agents have no use for it.
sys.modules.setdefault("debugpy", None)  # type: ignore[arg-type]

import ipykernel.ipkernel
from ipykernel.displayhook import ZMQShellDisplayHook
from ipykernel.iostream import IOPubThread, OutStream
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQDisplayPublisher, ZMQInteractiveShell
from traitlets import Type

STREAM_CHARS = 1_000_000
"""Characters per stream and cell sent at once; of the rest only the last as many are sent, when the cell ends."""
STREAM_FLUSHES = 500
"""Explicit flushes per stream and cell that send a message of their own; later ones wait for the timer."""
TEXT_CHARS = 200_000
"""Characters of one displayed text or traceback."""
IMAGE_CHARS = 6_000_000
"""Characters of one displayed picture in base64."""
EVALUE_CHARS = 20_000


def cut_middle(text: str, limit: int) -> str:
    """Shorten `text` to about `limit` characters, keeping its head and tail and saying how much is gone."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters dropped ...]\n{text[-half:]}"


def clean(text: str) -> str:
    """Return text without lone surrogates: a message with one cannot be sent, and everything in it would be lost."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


def _bounded(data: Mapping[str, Any]) -> dict[str, Any]:
    """Bound a mime bundle: long texts lose their middle, other large entries are left out."""
    kept: dict[str, Any] = {}
    for mime, value in data.items():
        if isinstance(value, str) and mime == "text/plain":
            kept[mime] = clean(cut_middle(value, TEXT_CHARS))
        elif not isinstance(value, str | bytes) or len(value) <= IMAGE_CHARS:
            kept[mime] = value
    return kept or {"text/plain": "[display dropped: too large]"}


class BoundedStream(OutStream):
    """`stdout` or `stderr` that sends the head of a cell's output at once and the tail at its end."""

    _cell: str | None = None
    _sent = 0
    _flushes = 0
    _tail_chars = 0
    _dropped = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._tail: deque[str] = deque()
        self._header: Any = None
        self._mark = b"\0" + os.urandom(16)
        self._drained = threading.Event()
        super().__init__(*args, **kwargs)

    def _watch_pipe_fd(self) -> None:
        """Forward what is written to the file descriptor itself, by other programs and C libraries.

        A mark in the stream tells `finish` that all before it has been forwarded: ipykernel would let the rest of
        one cell's output run into the next cell.
        """
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        held = b""
        with contextlib.suppress(OSError):
            while self._should_watch and (data := os.read(self._fid, 65536)):
                *ended, held = (held + data).split(self._mark)
                for part in ended:
                    self._forward(decoder.decode(part, final=True))
                    self._drained.set()
                keep = next((n for n in range(len(self._mark) - 1, 0, -1) if held.endswith(self._mark[:n])), 0)
                ready, held = held[: len(held) - keep], held[len(held) - keep :]
                self._forward(decoder.decode(ready))

    def _forward(self, text: str) -> None:
        if text:
            self.write(text)

    def drain_descriptor(self) -> None:
        """Wait until what other programs wrote to the file descriptor so far has been forwarded."""
        self._drained.clear()
        with contextlib.suppress(OSError, AttributeError):  # the cell may have closed it
            os.write(self._original_stdstream_fd, self._mark)
            self._drained.wait(0.5)

    def _enter(self) -> None:
        header = self.parent_header
        if header is not self._header:
            self._header = header
            cell = header.get("msg_id")
            if cell == self._cell:
                return
            self._cell, self._sent, self._flushes = cell, 0, 0
            self._tail.clear()
            self._tail_chars = self._dropped = 0

    def write(self, string: str) -> int | None:
        """Write like any text stream; what is over the bound is kept for `finish` or dropped."""
        if not isinstance(string, str):
            raise TypeError(f"write() argument must be str, not {type(string).__name__}")
        string = clean(string)
        with self._buffer_lock:
            self._enter()
            head = string[: max(0, STREAM_CHARS - self._sent)]
            self._sent += len(head)
            rest = string[len(head) :]
            if rest:
                self._dropped += max(0, len(rest) - STREAM_CHARS)
                rest = rest[-STREAM_CHARS:]
                self._tail.append(rest)
                self._tail_chars += len(rest)
                while self._tail_chars > STREAM_CHARS + 100_000:
                    gone = len(self._tail.popleft())
                    self._tail_chars -= gone
                    self._dropped += gone
        if head:
            super().write(head)
        return len(string)

    def flush(self) -> None:
        """Send what is buffered, unless this cell has flushed too often already."""
        self._flushes += 1
        if self._flushes <= STREAM_FLUSHES:
            super().flush()

    def finish(self) -> None:
        """Send the kept tail with the number of dropped characters; called when a cell ends."""
        self.drain_descriptor()
        if self._flushes > STREAM_FLUSHES or self._tail:
            super().flush()
        if not self._tail:
            return
        with self._buffer_lock:
            text, dropped, parent = "".join(self._tail), self._dropped, self.parent_header
            self._tail.clear()
            self._tail_chars = self._dropped = 0
        content = {"name": self.name, "text": text, "dropped": dropped}
        self.session.send(self.pub_thread, "stream", content, parent=parent, ident=self.topic)


def _drain_streams() -> None:
    """Keep the order: what other programs printed before a result or an error goes first."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, BoundedStream):
            stream.drain_descriptor()


class _Publisher(ZMQDisplayPublisher):
    def publish(self, data: Any, metadata: Any = None, **kwargs: Any) -> None:
        _drain_streams()
        super().publish(_bounded(data), metadata, **kwargs)


class _DisplayHook(ZMQShellDisplayHook):
    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        _drain_streams()
        super().write_format_data(_bounded(format_dict), md_dict)


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
    outstream_class = f"{__name__}.BoundedStream"
    heartbeat_wanted = False

    def parse_command_line(self, argv: Any = None) -> None:
        """Leave out: building the parser takes 10 ms, and there is nothing to parse."""

    def init_connection_file(self) -> None:
        """Leave out: there is no connection file to read, write or delete."""

    def write_connection_file(self, **kwargs: Any) -> None:
        """Leave out, as above."""

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
    app = App.instance(config=_config())
    app.heartbeat_wanted = bool(connection.get("heartbeat"))
    app.default_extensions = []
    app.transport = "ipc"
    app.ip = connection["ip"]
    app.session.key = str(connection["key"]).encode()
    for channel, port in connection["ports"].items():
        setattr(app, f"{channel}_port", port)
    app.initialize([])
    _threads_keep_their_cell()
    shell = app.shell
    warnings.filterwarnings("ignore", message="To exit: use")  # IPython's advice after sys.exit()
    _enable_plots(shell)

    def enter(*_: object) -> None:
        os.chdir(workdir)
        shell.events.unregister("pre_run_cell", enter)

    shell.events.register("pre_run_cell", enter)
    return app


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
    """Run one kernel in a process of its own: `python kernel_app.py REQUEST.json` (level 0)."""
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
    sys.path[0] = ""
    sys.modules["mappa_kernel_app"] = sys.modules["__main__"]
    app = build(request["connection"], workdir=request["workdir"], scratch=request["scratch"], seed=request["seed"])
    app.start()


if __name__ == "__main__":
    _main()
