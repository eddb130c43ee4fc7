"""Progress and results on the terminal."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table

from mappa_envs.tasks.math.contamination import ContaminationReport
from mappa_rl.evaluation.evaluate import NO_AGENT, UNCLEAR, Evaluation
from mappa_rl.evaluation.run import Measured
from mappa_rl.training.result import TrainResult


def new_run_dir(parent: Path) -> Path:
    """Return a run folder under `parent` that does not exist yet, named by the time."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    candidates = [parent / stamp, *(parent / f"{stamp}-{i}" for i in range(2, 1000))]
    return next(path for path in candidates if not path.exists())


def evaluation_table(result: Evaluation) -> Table:
    """Return avg@k, pass@k, majority@k and success per task kind as a table."""
    k = result.samples
    table = Table(
        "what",
        "value",
        box=None,
        header_style="bold",
        title=f"{result.tasks} held-out tasks x {k}",
    )
    table.add_row(f"success (avg@{k})", str(result.success))
    for size, interval in result.pass_at.items():
        if size > 1:
            table.add_row(f"pass@{size}", str(interval))
    if result.majority is not None and k > 1:
        table.add_row(f"majority@{k}", str(result.majority))
    for kind, share in result.by_kind.items():
        table.add_row(f"success: {kind}", f"{100 * share:.1f} %")
    if result.undecided:
        table.add_row("undecided by the grader", str(result.undecided))
    if result.failed:
        table.add_row("lost by the sandbox", str(result.failed))
    return table


def agent_table(result: Evaluation) -> Table:
    """Return per agent the mean score, how often it was the first to go wrong, and shares of failures, as a table."""
    failures = sum(result.faults.values())
    table = Table("agent", box=None, header_style="bold")
    for title in ("mean score", f"first fault in {failures} failures", "unscored", "truncated"):
        table.add_column(title, justify="right")
    for name, agent in result.agents.items():
        score = "-" if agent.score is None else f"{agent.score:.2f} / 10"
        shares = (f"{100 * agent.failed:.1f} %", f"{100 * agent.truncated:.1f} %")
        table.add_row(name, score, str(result.faults.get(name, 0)), *shares)
    for name in (NO_AGENT, UNCLEAR):
        if name in result.faults:
            table.add_row(f"({name})", "", str(result.faults[name]), "", "")
    return table


def print_evaluation(console: Console, measured: Measured) -> None:
    """Print a measured team: transcripts, tables, success, and where everything is."""
    for text in measured.transcripts:
        console.print(text, markup=False)
        console.print()
    result = measured.evaluation
    console.print(evaluation_table(result))
    console.print(agent_table(result))
    console.print(f"held-out success: {result.success}", style="bold")
    if measured.found:
        done = sum(task.samples for task in result.by_task.values()) + result.failed
        console.print(
            f"{measured.found} of {done} episodes were in {measured.log} already (--fresh plays all anew)",
            markup=False,
            soft_wrap=True,
        )
    console.print(f"the result is in {measured.file}, its episodes in {measured.log}", markup=False, soft_wrap=True)


class TrainProgress:
    """Prints one line per step: success, and each agent's mean score; on a terminal with a bar and the time left.

    Use it as a context manager, so that the bar goes away whatever happens.

    Args:
        console: Where to print.
        steps: Steps of the whole run.
    """

    def __init__(self, console: Console, steps: int) -> None:
        self._console, self._steps = console, steps
        self._bar = Progress(
            "training",
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("training", total=steps)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, kind: str, record: dict[str, Any]) -> None:
        """Print an evaluation, a step, or what was found before the run."""
        if kind == "contamination":
            self._contamination(record["report"])
            return
        if kind == "eval":
            self._console.print(
                f"step {record['step']:>3}  held-out success {record['evaluation'].success}",
                style="bold",
                soft_wrap=True,
            )
            return
        scores = "  ".join(
            f"{key.removeprefix('score/')} {value:4.1f}" for key, value in record.items() if key.startswith("score/")
        )
        self._console.print(
            f"step {record['step']:>3}/{self._steps}  success {100 * record['success']:5.1f} %   score: {scores}",
            soft_wrap=True,
        )
        self._bar.update(self._task, completed=record["step"])

    def _contamination(self, report: ContaminationReport) -> None:
        if not report.clean:
            self._console.print(
                f"note: {len(report.eval_ids)} of {report.eval_size} held-out tasks are like one of "
                f"{report.train_size} training tasks, with equal numbers and answers (contamination.json names them)"
            )

    def finish(self, result: TrainResult) -> None:
        """Print the result."""
        if result.before and result.after:
            gain = 100 * (result.after.success.mean - result.before.success.mean)
            self._console.print(f"held-out success before: {result.before.success}", style="bold")
            self._console.print(f"held-out success after:  {result.after.success}  ({gain:+.1f} points)", style="bold")
        if result.comparison:
            self._console.print(f"after against before:    {result.comparison}", style="bold", soft_wrap=True)
        if result.best_step not in (None, 0, result.steps):
            self._console.print(f"held-out success was best after step {result.best_step}")
        if result.stopped:
            self._console.print(f"stopped after step {result.steps}: {result.stopped}", soft_wrap=True)
            self._console.print(f"to go on: mappa train --resume {result.run_dir}", markup=False, soft_wrap=True)
        self._console.print(f"{result.seconds:.0f} s; everything is in {result.run_dir}")
