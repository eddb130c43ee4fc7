"""`grade_submission`: from the bytes that a team handed in to a grade, whatever the bytes are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from mappa_envs.grading.tables.cells import Faults, LabelReader, as_distribution, key_function, read_number
from mappa_envs.grading.tables.faults import Fault
from mappa_envs.grading.tables.metrics import Array, Metric, get_metric
from mappa_envs.grading.tables.reading import Rows, read_rows
from mappa_envs.tasks.tabular.base import SUBMISSION, TabularTask

MAX_SUBMISSION_BYTES = 32 << 20
"""Larger submissions get the fault `too_large` unread."""


@dataclass(frozen=True, slots=True)
class TableGrade:
    """What a submission is worth."""

    valid: bool
    """Whether it was scored; false if any fault is fatal."""
    faults: tuple[Fault, ...]
    metric: str
    """Name of the task's metric."""
    value: float | None
    """Raw value of the task's metric; None if invalid."""
    normalised: float | None
    """0 = trivial predictor, 1 = reference model; below 0 or above 1 where it is worse or better. None if invalid."""
    score: float
    """`normalised` clipped to 0..1; 0 if invalid."""
    rows: int
    """Data rows read from the submission."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Further raw values that these predictions allow, by metric name; empty if invalid. Classification: `accuracy`
    and `f1` (of the positive class; macro with more than two). Regression: `rmse`, `mae`, `r2` and `rmse_range`
    (RMSE as a percentage of the range of the true values)."""

    @property
    def reason(self) -> str:
        """One line that says why it has this score."""
        fatal = [fault.message for fault in self.faults if fault.fatal]
        if fatal:
            return "invalid submission: " + "; ".join(fatal)
        return f"{self.metric} {self.value:.6g}, normalised {self.normalised:.3f}"


def invalid_grade(task: TabularTask, *faults: Fault, rows: int = 0) -> TableGrade:
    """Return the grade of a submission that cannot be scored."""
    return TableGrade(False, faults, task.metric, None, None, 0.0, rows)


def grade_submission(data: bytes | None, task: TabularTask) -> TableGrade:
    """Grade a submission against the hidden answers, joining by id.

    Never raises because of `data`, evaluates nothing in it, and reads nothing beyond `MAX_SUBMISSION_BYTES` and twice
    the rows that are asked for.

    Args:
        data: The bytes of `submission.csv`; None if there is none.
        task: The task with its answers.

    Raises:
        ConfigError: If the task's metric is unknown.
        TaskError: If the task's own data cannot be read.
    """
    metric = get_metric(task.metric)
    if data is None:
        return invalid_grade(task, Fault("missing_file", f"there is no {SUBMISSION}"))
    if len(data) > MAX_SUBMISSION_BYTES:
        message = f"{len(data)} bytes; at most {MAX_SUBMISSION_BYTES} are read"
        return invalid_grade(task, Fault("too_large", message))
    answers = task.answers()
    rows = read_rows(data, task.id_column, task.prediction_columns, 2 * len(answers) + 1000)
    if any(fault.fatal for fault in rows.faults):
        return invalid_grade(task, *rows.faults, rows=len(rows.ids))
    faults = Faults()
    wanted = answers[task.id_column].tolist()
    order = _join(rows.ids, wanted, faults)
    predicted = _predictions(rows, task, metric, faults)
    if faults:
        return invalid_grade(task, *rows.faults, *faults.listed(), rows=len(rows.ids))
    truth = encode_truth(answers[task.target], task.classes, metric)
    return grade_predictions(truth, predicted[order], task, rows.faults)


def grade_predictions(truth: Array, predicted: Array, task: TabularTask, faults: tuple[Fault, ...] = ()) -> TableGrade:
    """Grade encoded predictions (see `mappa_envs.grading.tables.metrics`) in the order of the truth."""
    metric = get_metric(task.metric)
    value = metric.compute(truth, predicted, len(task.classes))
    normalised = (value - task.trivial) / (task.reference - task.trivial)
    return TableGrade(
        valid=True,
        faults=faults,
        metric=task.metric,
        value=value,
        normalised=normalised,
        score=min(1.0, max(0.0, normalised)),
        rows=len(predicted),
        metrics=_further(truth, predicted, task, metric),
    )


def encode_truth(values: pd.Series, classes: Sequence[str], metric: Metric) -> Array:
    """Encode true values as the metric takes them.

    Args:
        values: Labels, or float64 in regression.
        classes: The labels; empty in regression.
        metric: The metric.

    Returns:
        Class codes, 0/1 for scores, or float64.
    """
    if not classes:
        return values.to_numpy(dtype=np.float64)
    encoded = values.map({label: code for code, label in enumerate(classes)}).to_numpy(dtype=np.int64)
    return encoded.astype(np.float64) if metric.takes == "scores" else encoded


def _join(ids: Sequence[str], wanted: Sequence[str], faults: Faults) -> Array:
    """Return for each wanted id the row that has it."""
    key = key_function(wanted)
    places: dict[str, int] = {}
    asked = set(wanted)
    for place, text in enumerate(map(key, ids)):
        if text not in asked:
            faults.add("unknown_id", repr(text))
        elif places.setdefault(text, place) != place:
            faults.add("duplicate_id", repr(text))
    missing = [text for text in wanted if text not in places]
    if missing:
        faults.add("missing_id", repr(missing[0]), len(missing))
    return np.array([places.get(text, -1) for text in wanted], dtype=np.int64)


def _predictions(rows: Rows, task: TabularTask, metric: Metric, faults: Faults) -> Array:
    """Return encoded predictions in the order of the rows; meaningless where there are faults."""
    places = [f"for id {id_[:40]!r}" for id_ in rows.ids]
    if metric.takes in ("labels", "ranking"):
        reader = LabelReader(task.classes)
        if metric.takes == "labels":
            codes = [reader.read(cells[0], at, faults) for cells, at in zip(rows.cells, places, strict=True)]
            return np.array(codes, dtype=np.int64)
        ranked = [
            reader.read_ranking(cells[0], metric.ranks, at, faults)
            for cells, at in zip(rows.cells, places, strict=True)
        ]
        return np.array(ranked, dtype=np.int64)
    numbers = np.array(
        [[read_number(cell, at, faults) for cell in cells] for cells, at in zip(rows.cells, places, strict=True)],
        dtype=np.float64,
    )
    if metric.takes == "probabilities":
        return as_distribution(numbers, rows.ids, faults)
    single = numbers[:, 0]
    if metric.takes == "numbers" and metric.truth_is == "not negative" and (single < 0).any():
        row = int(np.flatnonzero(single < 0)[0])
        faults.add("negative_value", f"{single[row]:g} {places[row]}", int((single < 0).sum()))
    return single


def _further(truth: Array, predicted: Array, task: TabularTask, metric: Metric) -> dict[str, float]:
    """Return the raw values that every task of the kind has, for averages over tasks."""
    if task.kind == "regression":
        rmse = get_metric("rmse").compute(truth, predicted, 0)
        spread = float(truth.max() - truth.min())
        others = {name: get_metric(name).compute(truth, predicted, 0) for name in ("mae", "r2")}
        return {"rmse": rmse, **others, "rmse_range": 100.0 * rmse / spread}
    match metric.takes:
        case "probabilities":
            labels = predicted.argmax(axis=1)
        case "scores":
            labels = (predicted >= 0.5).astype(np.int64)
        case "ranking":
            labels = predicted[:, 0]
        case _:
            labels = predicted
    truth = truth.astype(np.int64)
    f1 = get_metric("f1" if len(task.classes) == 2 else "f1_macro")
    return {
        "accuracy": get_metric("accuracy").compute(truth, labels, len(task.classes)),
        "f1": f1.compute(truth, labels, len(task.classes)),
    }
