"""Warm kernels, kept ready in the background so that an agent's first cell need not wait for a start."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from mappa_envs.errors import SandboxError

STARTS_AT_ONCE = max(2, os.cpu_count() or 2)
"""Starting a kernel is work of one core; more at once only makes each slower."""
REFILL_SECONDS = 0.05


class Startable(Protocol):
    """What a pool holds."""

    @property
    def alive(self) -> bool:
        """Whether it can be handed out."""
        ...

    async def close(self) -> None:
        """End it."""
        ...


T = TypeVar("T", bound=Startable)


class KernelPool(Generic[T]):
    """Keeps `min_idle` warm items; each is handed out once.

    Background starts go one at a time and only while nobody waits, so that they do not take the cores of a
    training process or of an agent that waits for its kernel.

    Args:
        start: Starts one item.
        min_idle: Items to keep ready.
    """

    def __init__(self, start: Callable[[], Awaitable[T]], min_idle: int) -> None:
        self._start, self._min_idle = start, min_idle
        self._idle: deque[T] = deque()
        self._slots = asyncio.Semaphore(STARTS_AT_ONCE)
        self._waiting = 0
        self._refill: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def idle(self) -> int:
        """Number of items that are ready."""
        return len(self._idle)

    @property
    def waiting(self) -> int:
        """Number of callers that wait for a start."""
        return self._waiting

    async def take(self) -> T:
        """Return a ready item, else start one.

        Raises:
            SandboxError: If none can be started.
        """
        item = self.take_idle()
        return item if item is not None else await self.start_now()

    def take_idle(self) -> T | None:
        """Return a ready item, or None if there is none."""
        try:
            while self._idle:
                item = self._idle.popleft()
                if item.alive:
                    return item
            return None
        finally:
            self.refill()

    async def start_now(self) -> T:
        """Start an item for somebody who waits for it.

        Raises:
            SandboxError: If it cannot be started.
        """
        async with self.slot():
            return await self._start()

    @contextlib.asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold one of the few places for starting something that somebody waits for."""
        self._waiting += 1
        try:
            async with self._slots:
                yield
        finally:
            self._waiting -= 1

    def refill(self) -> None:
        """Start filling up in the background, unless that is going on already."""
        if not self._closed and (self._refill is None or self._refill.done()):
            self._refill = asyncio.ensure_future(self._fill())

    async def filled(self) -> None:
        """Wait until the pool is full, or cannot be filled."""
        self.refill()
        if self._refill is not None:
            await asyncio.wait({self._refill})

    async def _fill(self) -> None:
        if self._idle:
            # Whoever just took one is about to use it: do not compete with that.
            await asyncio.sleep(REFILL_SECONDS)
        while len(self._idle) < self._min_idle and not self._closed:
            if self._waiting:
                await asyncio.sleep(0.02)
                continue
            try:
                item = await self._start()
            except SandboxError:
                # Whoever needs a kernel gets the error; trying again at once would only spin.
                return
            self._idle.append(item)

    async def close(self) -> None:
        """End what is idle and start nothing more. Safe to call twice."""
        self._closed = True
        if self._refill is not None:
            self._refill.cancel()
            await asyncio.wait({self._refill})
        idle, self._idle = list(self._idle), deque()
        await asyncio.gather(*(item.close() for item in idle))
