"""Small table tasks that the tests make themselves, and a source of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np
import pandas as pd

from mappa_envs.grading.tables import get_metric
from mappa_envs.tasks.tabular.base import SAMPLE, TEST, TRAIN, TabularTask, TaskData
from mappa_envs.tasks.tabular.layout import csv_bytes, prediction_columns, sample_submission, statement, trivial_cells

ROWS = 240
CLASSES = {2: ("no", "yes"), 3: ("blue", "green", "red")}

CASES = {
    "shares": ("log_loss", 3, 1.1, 0.45),
    "labels": ("accuracy", 2, 0.6, 0.9),
    "scores": ("roc_auc", 2, 0.5, 0.97),
    "numbers": ("rmse", 0, 3.0, 1.0),
    "logs": ("rmsle", 0, 0.5, 0.12),
}
"""name: metric, number of classes, raw metric of the trivial and of the reference predictor."""


@lru_cache(maxsize=16)
def load(name: str) -> TaskData:
    """Make a table with numbers, a category, a date and missing values that tell the target but for some noise."""
    metric_name, classes, *_ = CASES[name]
    metric = get_metric(metric_name)
    rng = np.random.default_rng(sorted(CASES).index(name))
    frame = pd.DataFrame({"row_id": rng.permutation(ROWS), "size": rng.normal(size=ROWS).round(3)})
    frame["weight"] = rng.normal(size=ROWS).round(3)
    frame["shape"] = rng.choice(["round", "square", "flat"], ROWS)
    frame["seen"] = (pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, ROWS), "D")).strftime("%Y-%m-%d")
    signal = 2.0 * frame["size"] - frame["weight"] + frame["shape"].map({"round": 1.5, "square": 0.0, "flat": -1.5})
    signal += rng.normal(scale=0.4, size=ROWS)
    if classes:
        codes = pd.qcut(signal, classes, labels=False)
        frame["target"] = [CLASSES[classes][code] for code in codes]
    else:
        frame["target"] = (signal - signal.min() + 1.0).round(3)
    frame.loc[rng.random(ROWS) < 0.05, "weight"] = np.nan
    train, test = frame.iloc[: ROWS - 60], frame.iloc[ROWS - 60 :]
    labels = CLASSES.get(classes, ())
    ids = test["row_id"].astype(str).tolist()
    cells = trivial_cells(metric, train["target"], labels)
    return TaskData(
        files={
            TRAIN: csv_bytes(train),
            TEST: csv_bytes(test.drop(columns="target")),
            SAMPLE: sample_submission(ids, "row_id", prediction_columns(metric, "target", labels), cells),
        },
        answers=pd.DataFrame({"row_id": ids, "target": test["target"].to_numpy()}),
    )


def table_task(name: str) -> TabularTask:
    metric_name, classes, trivial, reference = CASES[name]
    metric, labels, rows = get_metric(metric_name), CLASSES.get(classes, ()), (ROWS - 60, 60)
    prompt = statement(
        f"Things of case {name}.", {}, metric, target="target", id_column="row_id", classes=labels, rows=rows
    )
    return TabularTask(
        id=f"case/{name}",
        prompt=prompt,
        kind="classification" if classes else "regression",
        source="cases",
        metric=metric_name,
        target="target",
        id_column="row_id",
        prediction_columns=prediction_columns(metric, "target", labels),
        classes=labels,
        rows=rows,
        trivial=trivial,
        reference=reference,
        licence="made by the tests",
        load=partial(load, name),
    )


class Cases:
    """Some or all of the cases, as a source."""

    name = "cases"

    def __init__(self, names: Sequence[str] = tuple(CASES)) -> None:
        self._names = tuple(names)
        self.size: int | None = len(self._names)

    def task(self, index: int) -> TabularTask:
        return table_task(self._names[index])
