"""Small table tasks with known answers."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from mappa_envs.grading.tables import get_metric
from mappa_envs.tasks.tabular.base import TabularTask, TaskData
from mappa_envs.tasks.tabular.layout import prediction_columns


def table_task(
    metric: str,
    truth: Sequence[str] | Sequence[float],
    classes: tuple[str, ...] = (),
    *,
    ids: Sequence[str] | None = None,
    trivial: float = 0.5,
    reference: float = 1.0,
) -> TabularTask:
    """Return a task with id column `id` and target `y`."""
    names = [str(i) for i in range(len(truth))] if ids is None else list(ids)
    answers = pd.DataFrame({"id": names, "y": list(truth)})
    return TabularTask(
        id="small",
        prompt="predict y",
        kind="classification" if classes else "regression",
        source="small",
        metric=metric,
        target="y",
        id_column="id",
        prediction_columns=prediction_columns(get_metric(metric), "y", classes),
        classes=classes,
        rows=(1, len(truth)),
        trivial=trivial,
        reference=reference,
        licence="",
        load=lambda: TaskData({}, answers),
    )


def handed_in(task: TabularTask, rows: Sequence[tuple[object, ...]]) -> bytes:
    """Return the bytes of a submission with the right header."""
    lines = [",".join((task.id_column, *task.prediction_columns)), *(",".join(map(str, row)) for row in rows)]
    return ("\n".join(lines) + "\n").encode()
