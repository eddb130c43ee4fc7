"""One event loop on one thread per process, where kernels and judges live.

PettingZoo's `step` is synchronous; kernels and coaches are not. All asynchronous work of all environments of a
process runs on this loop, so that many environments overlap and share one sandbox.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_pid: int | None = None


class _Threads(ThreadPoolExecutor):
    """Runs work at once where the interpreter is ending: no pool takes any more then, but kernels are still closed."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError:
            done: Future[T] = Future()
            try:
                done.set_result(fn(*args, **kwargs))
            except BaseException as error:
                done.set_exception(error)
            return done


def loop() -> asyncio.AbstractEventLoop:
    """Return the running background loop of this process, starting it where needed (also after a fork)."""
    global _loop, _pid
    with _lock:
        if _loop is None or _pid != os.getpid() or _loop.is_closed():
            _loop, _pid = asyncio.new_event_loop(), os.getpid()
            _loop.set_default_executor(_Threads(thread_name_prefix="mappa-worker"))
            threading.Thread(target=_loop.run_forever, name="mappa-background", daemon=True).start()
        return _loop


def submit(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Run a coroutine on the background loop and return a future that any thread may wait for."""
    return asyncio.run_coroutine_threadsafe(work, loop())


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the background loop and return its result.

    Raises:
        RuntimeError: If called from the background loop itself, which would wait for itself for ever.
    """
    if threading.current_thread().name == "mappa-background":
        work.close()
        raise RuntimeError("background.run was called on the background loop; await the coroutine instead")
    return submit(work).result()
