"""The pool's bookkeeping with plain objects, then with kernels."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from conftest import Level, open_box

from mappa_envs import background
from mappa_envs.errors import SandboxError
from mappa_envs.sandbox.pool import STARTS_AT_ONCE, KernelPool


@dataclass
class Item:
    number: int
    alive: bool = True

    async def close(self) -> None:
        self.alive = False


class Factory:
    def __init__(self, *, fail: bool = False) -> None:
        self.made: list[Item] = []
        self.running = self.most = 0
        self.fail = fail

    async def __call__(self) -> Item:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.01)
        self.running -= 1
        if self.fail:
            raise SandboxError("no kernel today")
        self.made.append(Item(len(self.made)))
        return self.made[-1]


def test_every_item_is_handed_out_once_and_the_pool_fills_up_again() -> None:
    async def scenario() -> None:
        factory = Factory()
        pool = KernelPool(factory, 3)
        await pool.filled()
        assert pool.idle == 3
        taken = [await pool.take() for _ in range(5)]
        assert len({item.number for item in taken}) == 5
        await pool.filled()
        assert pool.idle == 3
        await pool.close()
        await pool.close()
        assert all(item.alive for item in taken)
        assert not any(item.alive for item in factory.made if item not in taken)

    background.run(scenario())


def test_a_start_that_the_interpreters_exit_overtook_leaves_nothing_open() -> None:
    async def scenario() -> None:
        factory = Factory()

        async def start() -> Item:
            if factory.made:
                raise RuntimeError("cannot schedule new futures after shutdown")
            return await factory()

        pool = KernelPool(start, 2)
        await pool.filled()
        await pool.close()
        assert [item.alive for item in factory.made] == [False]

    background.run(scenario())


def test_dead_items_are_never_handed_out() -> None:
    async def scenario() -> None:
        factory = Factory()
        pool = KernelPool(factory, 2)
        await pool.filled()
        factory.made[0].alive = factory.made[1].alive = False
        assert (await pool.take()).alive
        await pool.close()

    background.run(scenario())


def test_few_start_at_once_however_many_wait() -> None:
    async def scenario() -> None:
        factory = Factory()
        pool = KernelPool(factory, 0)
        items = await asyncio.gather(*(pool.take() for _ in range(40)))
        assert len({item.number for item in items}) == 40
        assert factory.most <= STARTS_AT_ONCE + 1
        await pool.close()

    background.run(scenario())


def test_a_start_that_fails_reaches_whoever_waits_and_not_the_background() -> None:
    async def scenario() -> None:
        factory = Factory(fail=True)
        pool = KernelPool(factory, 2)
        await pool.filled()
        assert pool.idle == 0
        with pytest.raises(SandboxError, match="no kernel today"):
            await pool.take()
        factory.fail = False
        await pool.filled()
        assert pool.idle == 2
        await pool.close()

    background.run(scenario())


@pytest.mark.parametrize("level", [Level.FULL, Level.LANDLOCK])
def test_warm_kernels_get_the_episodes_workspace(level: Level) -> None:
    box = open_box(level, min_idle=2)
    try:
        background.run(box.sandbox.warm())
        with box.episode(agents=2) as (space, first, second):
            background.run(space.write("given.txt", b"given"))
            assert background.run(first.execute("open('given.txt').read()")).output == "'given'\n"
            background.run(first.execute("open('made.txt', 'w').write('made')"))
            assert background.run(second.execute("open('made.txt').read()")).output == "'made'\n"
        assert box.cell("import os; os.listdir('.')").output == "[]\n"
    finally:
        background.run(box.sandbox.close())
