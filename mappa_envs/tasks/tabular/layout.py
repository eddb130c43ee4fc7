"""What every table task has: its text, its trivial predictor and its sample submission."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from mappa_envs.grading.tables.metrics import Array, Metric
from mappa_envs.tasks.tabular.base import SAMPLE, SUBMISSION, TEST, TRAIN


def prediction_columns(metric: Metric, target: str, classes: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a submission besides the id."""
    return tuple(classes) if metric.takes == "probabilities" and len(classes) > 2 else (target,)


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """Write a frame as UTF-8 with commas and LF, missing values as empty cells."""
    text = io.StringIO()
    frame.to_csv(text, index=False, lineterminator="\n")
    return text.getvalue().encode("utf-8")


def trivial_cells(metric: Metric, target: pd.Series, classes: Sequence[str]) -> tuple[str, ...]:
    """Return one row of the trivial predictor, as text cells.

    Args:
        metric: Says what a prediction is.
        target: The training target: labels as text, or float64.
        classes: The labels; empty in regression.

    Returns:
        The most frequent label or labels, the shares of the classes, 0.5 as a score, or the mean.
    """
    if not classes:
        return (repr(float(target.mean())),)
    counts = target.value_counts().reindex(list(classes), fill_value=0)
    match metric.takes:
        case "labels":
            return (str(counts.idxmax()),)
        case "ranking":
            return (" ".join(counts.sort_values(ascending=False, kind="stable").index[: metric.ranks]),)
        case "scores":
            return ("0.5",)
        case _:
            shares = [repr(float(count) / len(target)) for count in counts]
            return (shares[1],) if len(classes) == 2 else tuple(shares)


def score_trivial(metric: Metric, target: pd.Series, truth: Array, classes: Sequence[str]) -> float:
    """Return the raw metric of the trivial predictor.

    Args:
        metric: The metric.
        target: The training target, as for `trivial_cells`.
        truth: Encoded true values of the test rows.
        classes: The labels; empty in regression.
    """
    cells = trivial_cells(metric, target, classes)
    if metric.takes in ("labels", "ranking"):
        words = cells[0].split(" ") if metric.ranks else cells
        row: list[float] = [list(classes).index(word) for word in words]
    else:
        row = [float(cell) for cell in cells]
        if metric.takes == "probabilities" and len(row) == 1:
            row = [1.0 - row[0], row[0]]
    predicted = np.tile(np.array(row), (len(truth), 1))
    one_column = metric.takes in ("labels", "scores", "numbers")
    return metric.compute(truth, predicted[:, 0] if one_column else predicted, len(classes))


def sample_submission(ids: Sequence[str], id_column: str, columns: Sequence[str], cells: Sequence[str]) -> bytes:
    """Return a valid submission with the same cells in every row."""
    frame = pd.DataFrame({id_column: list(ids), **{name: cell for name, cell in zip(columns, cells, strict=True)}})
    return csv_bytes(frame)


def statement(
    about: str,
    meanings: Mapping[str, str],
    metric: Metric,
    *,
    target: str,
    id_column: str,
    classes: Sequence[str],
    rows: tuple[int, int],
) -> str:
    """Return the text of a task.

    Args:
        about: What the table is.
        meanings: Column, or glob pattern, and what it means; may be empty.
        metric: The task's metric.
        target: The column to predict.
        id_column: The column that names a row.
        classes: Labels; with two, the second is the positive one. Empty in regression.
        rows: Numbers of training and test rows.
    """
    lines = [about.strip(), "", "Files:"]
    lines += [
        f"- {TRAIN}: {rows[0]} rows with the target `{target}`",
        f"- {TEST}: {rows[1]} rows without it",
        f"- {SAMPLE}: a submission of the right form",
        f"`{id_column}` names a row and means nothing else.",
    ]
    if meanings:
        lines += ["", "Columns (* stands for any text):"]
        lines += [f"- `{name}`: {meaning}" for name, meaning in meanings.items()]
    direction = "higher is better" if metric.greater_is_better else "lower is better"
    lines += ["", f"Predict `{target}` for every row of {TEST}. Metric: {metric.title}; {direction}."]
    form = _columns(metric, target, id_column, classes)
    lines += [f"Hand in {SUBMISSION}, comma-separated, one row per row of {TEST}, in any order: {form}"]
    return "\n".join(lines)


def _columns(metric: Metric, target: str, id_column: str, classes: Sequence[str]) -> str:
    both = f"columns `{id_column}` and `{target}`"
    listed = ", ".join(classes)
    match metric.takes:
        case "labels":
            positive = f" The positive class is {classes[1]}." if metric.two_classes else ""
            return f"{both}, a label out of: {listed}.{positive}"
        case "ranking":
            return f"{both}, up to {metric.ranks} labels separated by spaces, the likeliest first, out of: {listed}."
        case "scores" if classes:
            return (
                f"{both}, a number that is higher the likelier the label is {classes[1]} (not {classes[0]}); "
                "a probability serves."
            )
        case "probabilities" if len(classes) == 2:
            return f"{both}, the probability of {classes[1]} (not {classes[0]})."
        case "probabilities":
            return f"columns `{id_column}` and one per class with its probability, summing to 1: {listed}."
        case _:
            return f"{both}, a number."
