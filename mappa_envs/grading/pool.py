"""Killable worker processes for algebra, with a hard deadline on each question.

Workers are separate programs started by path (never forked copies of this process, which may hold torch threads or
locks), lazily, and at most `size` at a time. A worker that misses its deadline is killed and its successor is
started at once, so that the next question seldom waits. All of it works from threads and, through
`answers.grade`, from asyncio.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Outcome = Literal["equal", "different", "undecided", "gold_unparsable", "answer_unparsable"]

START_SECONDS = 60.0
"""Time for a worker to import the algebra system; it does not count against the deadline of a question."""
_PROGRAM = Path(__file__).with_name("algebra_worker.py")
_MAX_REPLY_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Question:
    """One comparison of LaTeX texts; see `algebra_worker.compare`."""

    gold: str
    answer: str
    tolerance: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a worker found, or why it found nothing."""

    outcome: Outcome
    reason: str


class _Worker:
    """One process; used by one thread at a time."""

    def __init__(self) -> None:
        self.ready = False
        self.process = subprocess.Popen(
            # -P: the folder of the program holds our modules, which must not shadow anyone's.
            [sys.executable, "-P", str(_PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._buffer = b""

    def wait_ready(self) -> bool:
        self.ready = self.ready or self._read_line(time.monotonic() + START_SECONDS) is not None
        return self.ready

    def ask(self, question: Question, seconds: float) -> Reply | None:
        """Return the reply, or None if none came within `seconds`; the worker is of no use then."""
        line = json.dumps(
            {
                "gold": question.gold,
                "answer": question.answer,
                "tolerance": question.tolerance,
                "deadline": seconds,
            }
        )
        deadline = time.monotonic() + seconds
        if self.process.stdin is None:
            return None
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            return None
        reply = self._read_line(deadline)
        return None if reply is None else Reply(*json.loads(reply))

    def _read_line(self, deadline: float) -> bytes | None:
        if self.process.stdout is None:
            return None
        descriptor = self.process.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN | select.POLLHUP)
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not poll.poll(left * 1000):
                return None
            chunk = os.read(descriptor, 65_536)
            if not chunk or len(self._buffer) > _MAX_REPLY_BYTES:
                return None
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def end(self) -> str:
        """Say how the process ended, once its pipe is closed."""
        try:
            return f"exit code {self.process.wait(0.5)}"
        except subprocess.TimeoutExpired:
            return "still running"

    def close(self) -> None:
        """Kill the process and free its pipes."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # Unsent bytes for a process that is gone.
                    pipe.close()


class AlgebraPool:
    """At most `size` workers, started when first needed."""

    def __init__(self, size: int = 2) -> None:
        """Make an empty pool.

        Args:
            size: Most workers at a time, at least 1; each takes about 100 MB.
        """
        self.size = size
        self._workers: list[_Worker] = []
        self._idle: list[_Worker] = []
        self._closed = False
        self._owner = os.getpid()
        self._free = threading.Condition()

    def ask(self, question: Question, seconds: float) -> tuple[Reply, float]:
        """Put a question to a worker; waiting for a free worker and its start do not count as its time.

        Args:
            question: What to compare.
            seconds: Hard deadline of the computation.

        Returns:
            The reply, `undecided` with the reason if the worker was killed or died, and the seconds it took.
        """
        worker = self._acquire()
        if worker is None:
            return Reply("undecided", "the grading workers are closed"), 0.0
        reply: Reply | None = None
        try:
            if not worker.wait_ready():
                return Reply("undecided", f"a grading worker did not start ({worker.end()})"), 0.0
            begin = time.monotonic()
            reply = worker.ask(question, seconds)
            spent = time.monotonic() - begin
            if reply is not None:
                return reply, spent
            if spent >= seconds:
                return Reply("undecided", f"the comparison took longer than {seconds:.3g} s"), spent
            return Reply("undecided", f"the grading worker died ({worker.end()})"), spent
        finally:
            self._release(worker, usable=reply is not None)

    def warm_up(self) -> None:
        """Start all workers without waiting for them."""
        with self._free:
            while len(self._workers) < self.size and not self._closed:
                self._idle.append(self._start())
            self._free.notify_all()

    def close(self) -> None:
        """Kill all workers; questions that are being worked on and later ones are undecided."""
        if os.getpid() != self._owner:
            return  # A forked child must not end its parent's workers.
        with self._free:
            self._closed = True
            for worker in self._workers:
                worker.process.kill()
            idle, self._idle = self._idle, []
            for worker in idle:
                self._end(worker)
            self._free.notify_all()

    def worker_pids(self) -> list[int]:
        """Return the process ids of all workers."""
        with self._free:
            return [worker.process.pid for worker in self._workers]

    def _start(self) -> _Worker:
        worker = _Worker()
        self._workers.append(worker)
        return worker

    def _end(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.close()

    def _acquire(self) -> _Worker | None:
        with self._free:
            while not self._closed:
                if self._idle:
                    # Workers that are ready stand last.
                    return self._idle.pop()
                if len(self._workers) < self.size:
                    return self._start()
                self._free.wait()
            return None

    def _release(self, worker: _Worker, usable: bool) -> None:
        with self._free:
            if usable and not self._closed:
                self._idle.append(worker)
            else:
                self._end(worker)
                if not self._closed:
                    with contextlib.suppress(OSError):  # The next question tries again, and reports it.
                        self._idle.insert(0, self._start())
            self._free.notify()


_lock = threading.Lock()
_pool: AlgebraPool | None = None
_left_to_parent: list[AlgebraPool] = []


def shared_pool() -> AlgebraPool:
    """Return this process's pool, making it on first use; it is closed at exit."""
    global _pool
    with _lock:
        if _pool is None:
            _pool = AlgebraPool(size=max(1, min(4, os.cpu_count() or 1)))
            atexit.register(_pool.close)
        return _pool


def _forget() -> None:
    # A forked child has copies of the pipes but not the right to use them: it gets workers of its own.
    global _pool, _lock
    if _pool is not None:
        _left_to_parent.append(_pool)
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
