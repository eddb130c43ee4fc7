"""One sandbox per process and config, shared by all environments and closed at exit."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os

from mappa_envs import background
from mappa_envs.sandbox.base import Sandbox, SandboxConfig

_open: dict[tuple[int, SandboxConfig], asyncio.Task[Sandbox]] = {}


async def shared_sandbox(config: SandboxConfig) -> Sandbox:
    """Return this process's sandbox for `config`, opening it at the first call.

    Must be awaited on the background loop.

    Raises:
        SandboxError: If the machine cannot give the isolation that the config asks for.
    """
    from mappa_envs.sandbox import open_sandbox

    key = (os.getpid(), config)
    if key not in _open:
        _open[key] = asyncio.ensure_future(open_sandbox(config))
    task = _open[key]
    try:
        return await asyncio.shield(task)
    except Exception:
        _open.pop(key, None)
        raise


async def _close_all() -> None:
    mine = [key for key in _open if key[0] == os.getpid()]
    for key in mine:
        task = _open.pop(key)
        if task.done() and task.exception() is None:
            await task.result().close()
        else:
            task.cancel()


def close_shared() -> None:
    """Close every shared sandbox of this process; the next use opens a new one."""
    background.run(_close_all())


@atexit.register
def _at_exit() -> None:
    if any(pid == os.getpid() for pid, _ in _open):
        with contextlib.suppress(TimeoutError):
            background.submit(_close_all()).result(timeout=10)
