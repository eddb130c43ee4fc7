"""Speed and size of sandboxed kernels beside stock ones, measured in one run on this machine.

    python benchmarks/sandbox.py            # about two minutes
    python benchmarks/sandbox.py --quick    # about twenty seconds, for CI

Columns: `stock` a KernelManager per episode; `process` a new Python process per cell; `cold` a kernel forked when
it is asked for; `pool` a warm kernel. Times are medians in milliseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import psutil  # type: ignore[import-untyped]
from jupyter_client.manager import AsyncKernelManager

from mappa_envs.sandbox import Kernel, Level, SandboxConfig, Workspace, open_sandbox
from mappa_envs.sandbox.forked import ForkedSandbox

IMPORT = "import pandas as pd; int(pd.Series([40, 2]).sum())"
CELL = "1 + 1"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def _ms(times: list[float]) -> str:
    return f"{statistics.median(times) * 1000:.1f}"


async def _timed(work: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await work()
    return time.perf_counter() - started


async def stock(rounds: int) -> tuple[list[float], list[float], list[float]]:
    """Return times to first result, times of a cell, and PSS of a stock kernel."""
    first, cells, sizes = [], [], []
    for _ in range(rounds):
        manager = AsyncKernelManager(kernel_name="python3")
        started = time.perf_counter()
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        await manager.start_kernel(env={**os.environ, **ONE_THREAD}, **quiet)
        client = manager.client()
        client.start_channels()
        await client.wait_for_ready(timeout=60)
        await client.execute_interactive(IMPORT, output_hook=lambda _: None, timeout=60)
        first.append(time.perf_counter() - started)
        for _ in range(5):
            cells.append(
                await _timed(lambda c=client: c.execute_interactive(CELL, output_hook=lambda _: None, timeout=60))  # type: ignore[misc]
            )
        sizes.append(psutil.Process(getattr(manager.provisioner, "pid", None)).memory_full_info().pss)
        client.stop_channels()
        await manager.shutdown_kernel(now=True)
    return first, cells, sizes


def process(rounds: int) -> tuple[list[float], list[float]]:
    """Return times of a new process with pandas, and of one with a bare cell."""

    def run(code: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **ONE_THREAD})
        return time.perf_counter() - started

    return [run(IMPORT) for _ in range(rounds)], [run(CELL) for _ in range(rounds)]


async def _episode(sandbox: ForkedSandbox, code: str = IMPORT) -> tuple[float, Workspace, Kernel]:
    started = time.perf_counter()
    space = await sandbox.workspace()
    kernel = await sandbox.kernel(space)
    result = await kernel.execute(code, timeout=60)
    if result.status != "ok":
        raise SystemExit(f"a benchmark cell failed: {result.output}")
    return time.perf_counter() - started, space, kernel


async def one_by_one(sandbox: ForkedSandbox, rounds: int) -> tuple[list[float], list[float]]:
    """Return times from asking for a kernel to its first result, and times of further cells."""
    first, cells = [], []
    for _ in range(rounds):
        await sandbox.warm()
        seconds, space, kernel = await _episode(sandbox)
        first.append(seconds)
        for _ in range(5):
            cells.append(await _timed(lambda k=kernel: k.execute(CELL)))  # type: ignore[misc]
        await kernel.close()
        await space.close()
    return first, cells


def _pss(tree: list[psutil.Process]) -> float:
    """Return the proportional size of some processes, or NaN where they may not be asked for it."""
    try:
        return float(sum(child.memory_full_info().pss for child in tree))
    except psutil.AccessDenied:
        return math.nan


async def at_once(sandbox: ForkedSandbox, count: int) -> tuple[float, float, float, float]:
    """Start `count` episodes at once and keep them.

    Returns:
        Seconds until all had their first result, seconds for one more pandas cell in each, PSS per kernel in bytes
        (with its monitor, the zygote shared among them), and seconds to close all.
    """
    started = time.perf_counter()
    episodes = await asyncio.gather(*(_episode(sandbox) for _ in range(count)))
    ready = time.perf_counter()
    await asyncio.gather(*(kernel.execute(IMPORT, timeout=60) for _, _, kernel in episodes))
    done = time.perf_counter()
    tree = psutil.Process(sandbox._server._popen.pid).children(recursive=True)  # type: ignore[union-attr]
    pss = _pss(tree) / count
    closing = time.perf_counter()
    await asyncio.gather(*(kernel.close() for _, _, kernel in episodes))
    await asyncio.gather(*(space.close() for _, space, _ in episodes))
    return ready - started, done - ready, pss, time.perf_counter() - closing


async def churn(sandbox: ForkedSandbox, count: int, workers: int) -> float:
    """Return episodes per second, each started, run and closed, `workers` at a time."""
    remaining = iter(range(count))

    async def work() -> None:
        for _ in remaining:
            _, space, kernel = await _episode(sandbox)
            await kernel.close()
            await space.close()

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(workers)))
    return count / (time.perf_counter() - started)


async def _open(level: Level, min_idle: int) -> ForkedSandbox:
    sandbox = await open_sandbox(SandboxConfig(max_level=level, min_idle=min_idle))
    if not isinstance(sandbox, ForkedSandbox):
        raise SystemExit("this machine cannot isolate kernels; see `mappa doctor`")
    return sandbox


async def main(quick: bool, level: Level) -> None:
    """Measure and print."""
    rounds, many = (3, 12) if quick else (10, 50)
    user = "root" if os.getuid() == 0 else "ordinary user"
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f} at the start, Python {platform.python_version()}, {user}")

    stock_first, stock_cells, stock_sizes = await stock(rounds)
    process_first, process_cells = process(rounds)
    started = time.perf_counter()
    cold = await _open(level, 0)
    opened = time.perf_counter() - started
    cold_first, cold_cells = await one_by_one(cold, 2 * rounds)
    ready, again, pss, closing = await at_once(cold, many)
    rate = await churn(cold, many, 4)
    await cold.close()
    warm = await _open(level, 2)
    pool_first, pool_cells = await one_by_one(warm, 2 * rounds)
    await warm.close()

    print(f"sandbox level {int(cold.level)}, opened in {opened:.1f} s\n")
    rows = [
        ("", "stock", "process", "cold", "pool"),
        ("first result with pandas, ms", _ms(stock_first), _ms(process_first), _ms(cold_first), _ms(pool_first)),
        ("next cell, ms", _ms(stock_cells), _ms(process_cells), _ms(cold_cells), _ms(pool_cells)),
        ("PSS per kernel, MiB", f"{statistics.median(stock_sizes) / 2**20:.0f}", "-", f"{pss / 2**20:.0f}", "-"),
    ]
    for row in rows:
        print(f"{row[0]:32}" + "".join(f"{cell:>10}" for cell in row[1:]))
    print(f"\n{many} at once: {ready:.2f} s to all first results ({many / ready:.1f} kernels/s),", end=" ")
    print(f"{again:.2f} s for one more cell in each, {closing:.2f} s to close")
    print(f"start, one cell, close, 4 at a time: {rate:.1f} episodes/s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Speed and size of sandboxed kernels beside stock ones.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, for CI")
    parser.add_argument("--level", type=int, default=3, choices=(1, 2, 3), help="highest isolation level to use")
    arguments = parser.parse_args()
    asyncio.run(main(arguments.quick, Level(arguments.level)))
