"""Running a benchmark: what is finished is kept, the rest is spread over processes."""

from __future__ import annotations

import multiprocessing
import os
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

import torch

from mappa_rl.bench.config import BenchConfig
from mappa_rl.bench.grid import BenchRun, runs_of
from mappa_rl.bench.report import Report, write_report
from mappa_rl.bench.summary import CellSummary
from mappa_rl.bench.work import RunResult, finished, work
from mappa_rl.errors import EvaluationError, MappaError


@dataclass(frozen=True, slots=True)
class Failed:
    """A run that came to no result."""

    run: BenchRun
    reason: str
    """Text of the error; the traceback too where it is none of this project's."""


OnRun = Callable[[RunResult | Failed, int, int], None]
"""Called with each run as it finishes, how many are done, and how many there are."""


def run_bench(bench: BenchConfig, out: Path, on_run: OnRun | None = None) -> Report:
    """Run a benchmark and write its report to a folder.

    Runs that are finished in the folder are kept, as far as their settings, tasks and topology are still the same;
    an interrupted run goes on where it stopped. A run that fails does not stop the others, and is tried again next
    time.

    Args:
        bench: What to run.
        out: Folder of `runs/`, `bench.json`, `table.md` and `success.png`.
        on_run: Hears of each run.

    Raises:
        ConfigError: If something in the benchmark is wrong; nothing has been run then.
        EvaluationError: If no run came to a result, or a finished one is damaged.
    """
    runs, folder = runs_of(bench), out / "runs"
    results: dict[str, RunResult] = {}
    failures: dict[str, Failed] = {}
    for run in runs:
        if (result := finished(run, folder)) is not None:
            results[run.name] = result
    due = [run for run in runs if run.name not in results]
    for made in _all(due, folder, bench):
        if isinstance(made, Failed):
            failures[made.run.name] = made
        else:
            results[made.run.name] = made
        if on_run is not None:
            on_run(made, len(results) + len(failures), len(runs))
    if not results:
        first = next(iter(failures.values()))
        raise EvaluationError(f"no run of the benchmark came to a result; {first.run.name}: {first.reason}")
    cells = dict.fromkeys(run.cell for run in runs)
    by_cell = {cell: [results[r.name] for r in runs if r.cell == cell and r.name in results] for cell in cells}
    report = Report(
        bench=bench.model_dump(mode="json"),
        cells=tuple(CellSummary.of(mine) for mine in by_cell.values() if mine),
        failed={name: failure.reason for name, failure in failures.items()},
        kept=len(runs) - len(due),
    )
    write_report(report, out)
    return report


def _all(due: Sequence[BenchRun], folder: Path, bench: BenchConfig) -> Iterator[RunResult | Failed]:
    jobs = min(bench.jobs, len(due))
    if jobs <= 1:
        if bench.threads is not None:
            torch.set_num_threads(bench.threads)
        yield from (_attempt(run, folder) for run in due)
        return
    threads = bench.threads or max(1, (os.cpu_count() or 1) // jobs)
    pool = ProcessPoolExecutor(
        jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_start_worker, initargs=(threads,)
    )
    futures: dict[Future[RunResult | Failed], BenchRun] = {pool.submit(_attempt, run, folder): run for run in due}
    try:
        for future in as_completed(futures):
            try:
                yield future.result()
            except BrokenProcessPool:
                yield Failed(futures[future], "its process, or one beside it, was killed: out of memory?")
    finally:
        pool.shutdown(cancel_futures=True)


def _attempt(run: BenchRun, folder: Path) -> RunResult | Failed:
    try:
        return work(run, folder)
    except MappaError as error:
        return Failed(run, str(error))
    except Exception:
        return Failed(run, traceback.format_exc())


def _start_worker(threads: int) -> None:
    torch.set_num_threads(threads)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.join,), daemon=True).start()


def _end_with(wait: Callable[[], None]) -> None:
    """End this process when its parent has died: a killed benchmark leaves no workers behind."""
    wait()
    os._exit(1)
