"""Progress and results on the terminal."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from mappa_rl.evaluate import Evaluation
from mappa_rl.trainer import TrainResult


def new_run_dir(parent: Path) -> Path:
    """Return a run folder under `parent` that does not exist yet, named by the time."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    candidates = [parent / stamp, *(parent / f"{stamp}-{i}" for i in range(2, 1000))]
    return next(path for path in candidates if not path.exists())


def evaluation_table(result: Evaluation) -> Table:
    """Return success per task kind and mean score per agent as a table."""
    table = Table(
        "what",
        "value",
        box=None,
        header_style="bold",
        title=f"{result.tasks} held-out tasks x {result.samples}",
    )
    for kind, share in result.by_kind.items():
        table.add_row(f"success: {kind}", f"{100 * share:.1f} %")
    for agent, score in result.scores.items():
        table.add_row(f"mean score: {agent}", f"{score:.2f} / 10")
    if result.undecided:
        table.add_row("undecided by the grader", str(result.undecided))
    if result.failed:
        table.add_row("lost by the sandbox", str(result.failed))
    return table


class TrainProgress:
    """Prints one line per step: success, and each agent's mean score.

    Args:
        console: Where to print.
        steps: Steps of the whole run.
    """

    def __init__(self, console: Console, steps: int) -> None:
        self._console, self._steps = console, steps

    def __call__(self, kind: str, record: dict[str, Any]) -> None:
        """Print an evaluation or a step."""
        if kind == "eval":
            self._console.print(
                f"step {record['step']:>3}  held-out success {record['evaluation'].success}", style="bold"
            )
            return
        scores = "  ".join(
            f"{key.removeprefix('score/')} {value:4.1f}" for key, value in record.items() if key.startswith("score/")
        )
        self._console.print(
            f"step {record['step']:>3}/{self._steps}  success {100 * record['success']:5.1f} %   score: {scores}"
        )

    def finish(self, result: TrainResult) -> None:
        """Print the result."""
        if result.before and result.after:
            gain = 100 * (result.after.success.mean - result.before.success.mean)
            self._console.print(f"held-out success before: {result.before.success}", style="bold")
            self._console.print(f"held-out success after:  {result.after.success}  ({gain:+.1f} points)", style="bold")
        self._console.print(f"{result.seconds:.0f} s; everything is in {result.run_dir}")
