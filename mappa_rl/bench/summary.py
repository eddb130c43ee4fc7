"""Cells over their seeds, and which of them are compared with which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from mappa_rl.bench.cost import EpisodeCost, mean_cost
from mappa_rl.bench.grid import Cell
from mappa_rl.bench.work import RunResult
from mappa_rl.errors import EvaluationError
from mappa_rl.evaluation.stats import Interval, PairedComparison, holm, mean_interval, paired_comparison


@dataclass(frozen=True, slots=True)
class CellSummary:
    """A cell over its seeds."""

    cell: Cell
    scripted: bool
    """Whether it was played by a policy that knows the answers."""
    tasks_sha256: str
    success: Interval
    """Mean over tasks of the share of successful episodes, all seeds together. The interval is over tasks, for these
    seeds; how much seeds matter is seen from `by_seed`."""
    by_seed: dict[str, float]
    """Success per seed."""
    by_task: dict[str, tuple[int, int]]
    """Per task id, successes and episodes, all seeds together."""
    undecided: int
    lost: int
    """Episodes that the sandbox lost; they count in no number."""
    cost: EpisodeCost
    train_seconds: float | None
    """Mean over seeds; None without training, or where one was interrupted."""

    @classmethod
    def of(cls, results: Sequence[RunResult]) -> CellSummary:
        """Summarise the runs of one cell."""
        by_task: dict[str, tuple[int, int]] = {}
        for result in results:
            for task, one in result.evaluation.by_task.items():
                wins, episodes = by_task.get(task, (0, 0))
                by_task[task] = (wins + one.successes, episodes + one.samples)
        seconds = [result.train_seconds for result in results]
        known = [value for value in seconds if value is not None]
        return cls(
            cell=results[0].run.cell,
            scripted=results[0].run.play == "scripted",
            tasks_sha256=results[0].run.tasks_sha256,
            success=mean_interval([wins / episodes for wins, episodes in by_task.values()]),
            by_seed={str(r.run.config.seed): r.evaluation.success.mean for r in results},
            by_task=by_task,
            undecided=sum(r.evaluation.undecided for r in results),
            lost=sum(r.evaluation.failed for r in results),
            cost=mean_cost([result.cost for result in results]),
            train_seconds=sum(known) / len(known) if len(known) == len(seconds) else None,
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data; `from_json` is its inverse."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CellSummary:
        """Build a summary from what `to_json` returned.

        Raises:
            EvaluationError: If a key is missing or has the wrong form.
        """
        try:
            own = dict(data)
            own["cell"] = Cell(**own["cell"])
            own["success"] = Interval(**own["success"])
            own["cost"] = EpisodeCost(**own["cost"])
            own["by_task"] = {task: (wins, episodes) for task, (wins, episodes) in own["by_task"].items()}
            return cls(**own)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EvaluationError(
                "not the cell of a benchmark", expected="the JSON that CellSummary.to_json writes", got=repr(error)
            ) from error


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two cells on the same tasks."""

    what: str
    """In what they differ: `topology`, `policy`, `algorithm`, or `benchmark` (the new one and an old one)."""
    where: str
    """The labels that they share."""
    first: str
    second: str
    paired: PairedComparison
    """First against second, task by task."""
    p_holm: float
    """The p-value, adjusted by Holm's procedure for all contrasts that were made together."""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)


_Labels = tuple[str, str, str, str]


def difference(first: Cell, second: Cell) -> _Labels | None:
    """Return what, where, first and second of a contrast, if two cells differ in one thing only.

    An untrained policy has no algorithm, so it differs from a trained one in the policy alone.
    """
    if first.environment != second.environment:
        return None
    players = [" / ".join(part for part in (cell.policy, cell.algorithm) if part) for cell in (first, second)]
    if first.topology != second.topology:
        where = f"{first.environment} / {players[0]}"
        return ("topology", where, first.topology, second.topology) if players[0] == players[1] else None
    where = f"{first.environment} / {first.topology}"
    if first.policy == second.policy:
        return ("algorithm", f"{where} / {first.policy}", first.algorithm or "", second.algorithm or "")
    return ("policy", where, players[0], players[1]) if len({first.algorithm, second.algorithm} - {None}) < 2 else None


def contrasts(cells: Sequence[CellSummary]) -> list[Contrast]:
    """Compare all pairs of cells that differ in one thing only, the more successful one first.

    Scripted cells are left out: they know the answers, and each more comparison makes the others less sure.
    """
    made: list[tuple[_Labels, PairedComparison]] = []
    for pair in combinations([cell for cell in cells if not cell.scripted], 2):
        first, second = sorted(pair, key=lambda cell: -cell.success.mean)
        if labels := difference(first.cell, second.cell):
            made.append((labels, _paired(first, second)))
    return _adjusted(made)


def against(new: Sequence[CellSummary], old: Sequence[CellSummary]) -> tuple[list[Contrast], list[str]]:
    """Compare the cells of a benchmark with those of the same labels in an older one.

    Returns:
        Contrasts, new against old; and for each cell that has no equal on the other side, or one with other tasks,
        a line that says so.
    """
    mine, theirs = ({cell.cell: cell for cell in side} for side in (new, old))
    made: list[tuple[_Labels, PairedComparison]] = []
    notes = []
    for cell in dict.fromkeys([*mine, *theirs]):
        if cell not in mine or cell not in theirs:
            notes.append(f"{cell}: only in the {'new' if cell in mine else 'old'} benchmark")
        elif mine[cell].tasks_sha256 != theirs[cell].tasks_sha256:
            notes.append(f"{cell}: played on other tasks, so not compared")
        else:
            made.append((("benchmark", str(cell), "new", "old"), _paired(mine[cell], theirs[cell])))
    return _adjusted(made), notes


def pareto_front(cells: Iterable[CellSummary]) -> list[CellSummary]:
    """Return the cells that no other one beats: as successful with fewer tokens, or more so with as many.

    Scripted cells take no part. The front is ordered by tokens.
    """
    front: list[CellSummary] = []
    for cell in sorted(cells, key=lambda c: (c.cost.tokens, -c.success.mean)):
        if not cell.scripted and (not front or cell.success.mean > front[-1].success.mean):
            front.append(cell)
    return front


def _paired(first: CellSummary, second: CellSummary) -> PairedComparison:
    shared = [task for task in first.by_task if task in second.by_task]
    return paired_comparison([(Fraction(*first.by_task[task]), Fraction(*second.by_task[task])) for task in shared])


def _adjusted(made: Sequence[tuple[_Labels, PairedComparison]]) -> list[Contrast]:
    adjusted = holm([paired.p_value for _, paired in made])
    return [Contrast(*labels, paired, p) for (labels, paired), p in zip(made, adjusted, strict=True)]
