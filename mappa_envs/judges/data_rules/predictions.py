"""Predictions as submissions: made from a model's report, and compared with each other by id."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence

from mappa_envs.grading.tables.cells import canonical
from mappa_envs.grading.tables.metrics import get_metric
from mappa_envs.grading.tables.reading import read_rows
from mappa_envs.judges.data_rules.reports import ModelReport
from mappa_envs.tasks.tabular.base import TabularTask

Cells = Mapping[str, tuple[str, ...]]
"""Prediction cells by id."""

AGREEMENT = 0.99
"""Share of the rows that must agree for two submissions to hold the same predictions."""


def submission_of(report: ModelReport, ids: Sequence[str], task: TabularTask) -> bytes:
    """Write a model's predictions as the task wants them.

    Args:
        report: One prediction per id.
        ids: In the order of the report.
        task: Says what is asked for: labels, numbers, scores, shares or rankings.
    """
    metric = get_metric(task.metric)
    if task.kind == "regression":
        low = 0.0 if metric.truth_is == "not negative" else -math.inf
        rows = [[repr(max(low, float(value)))] for value in report.values]
    elif metric.takes == "labels":
        rows = [[str(value)] for value in report.values]
    else:
        shares = _shares(report, task.classes)
        if metric.takes == "ranking":
            rows = [[_ranked(row, task.classes, metric.ranks)] for row in shares]
        elif len(task.prediction_columns) == 1:
            rows = [[repr(row[1])] for row in shares]
        else:
            rows = [[repr(value) for value in row] for row in shares]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([task.id_column, *task.prediction_columns])
    writer.writerows([ident, *row] for ident, row in zip(ids, rows, strict=True))
    return out.getvalue().encode()


def _shares(report: ModelReport, classes: Sequence[str]) -> list[list[float]]:
    """Return one share per class of the task; a model without shares is sure of its labels."""
    names = [canonical(name) for name in classes]
    if report.shares is None:
        return [[float(canonical(str(value)) == name) for name in names] for value in report.values]
    places = {canonical(name): place for place, name in enumerate(report.classes)}
    return [[row[places[name]] if name in places else 0.0 for name in names] for row in report.shares]


def _ranked(row: Sequence[float], classes: Sequence[str], k: int) -> str:
    order = sorted(range(len(row)), key=lambda place: -row[place])
    return " ".join(classes[place] for place in order[:k])


def cells_of(data: bytes, task: TabularTask) -> Cells:
    """Return the prediction cells of a submission by id; nothing of what cannot be read."""
    rows = read_rows(data, task.id_column, task.prediction_columns, 2 * task.rows[1] + 1000)
    return {canonical(ident): cells for ident, cells in zip(rows.ids, rows.cells, strict=True)}


def constant(cells: Cells) -> bool:
    """Whether every row has the same prediction."""
    return len({tuple(map(_plain, row)) for row in cells.values()}) <= 1


def agree(some: Cells, other: Cells, share: float = AGREEMENT) -> bool:
    """Whether two submissions hold the same predictions, by id, in at least `share` of the rows of `other`."""
    same = sum(
        len(row) == len(some.get(ident, ())) and all(map(_same, some[ident], row)) for ident, row in other.items()
    )
    return bool(other) and same >= share * len(other)


def _same(one: str, other: str) -> bool:
    a, b = _plain(one), _plain(other)
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)
    return a == b


def _plain(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return canonical(cell)
