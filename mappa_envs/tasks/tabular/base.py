"""A task on tables: public files for the team, hidden answers for the grader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

import pandas as pd

from mappa_envs.tasks.base import Task

TableKind = Literal["classification", "regression"]

TRAIN, TEST, SAMPLE, SUBMISSION = "train.csv", "test.csv", "sample_submission.csv", "submission.csv"
"""Names of the public files, and of the file that the team hands in."""


@dataclass(frozen=True, slots=True)
class TaskData:
    """The data of one task, as `TabularTask.load` returns it."""

    files: Mapping[str, bytes]
    """`train.csv`, `test.csv` and `sample_submission.csv`, UTF-8 with comma and LF; all that agents may see."""
    answers: pd.DataFrame
    """The id column (text) and the target (text in classification, float64 in regression) of the test rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TabularTask(Task):
    """Predict `target` for the rows of `test.csv`.

    `kind` is `classification` or `regression`. `prompt` describes the table, its columns, the metric and what to
    hand in. Labels are texts, as they are written in `train.csv`.
    """

    metric: str
    """Name in `mappa_envs.grading.tables.metrics.METRICS`."""
    target: str
    id_column: str
    prediction_columns: tuple[str, ...]
    """What a submission has besides the id: the target, or one column per class in the order of `classes`."""
    classes: tuple[str, ...] = ()
    """Labels: with two, the second is the positive one; in ascending order where the target is ordinal. Empty in
    regression."""
    rows: tuple[int, int]
    """Numbers of training and test rows."""
    trivial: float
    """Raw metric of the trivial predictor: majority class, class shares, or mean of the training rows."""
    reference: float
    """Raw metric of a strong model. Hidden, as is `trivial`."""
    licence: str
    """Source, licence and credits of the data."""
    load: Callable[[], TaskData] = field(repr=False, compare=False)
    """Makes the data; deterministic, cached by its maker."""

    def files(self) -> Mapping[str, bytes]:
        """Return the public files by name: `train.csv`, `test.csv`, `sample_submission.csv`.

        Raises:
            TaskError: If the data cannot be read.
        """
        return MappingProxyType(dict(self.load().files))

    def answers(self) -> pd.DataFrame:
        """Return the hidden answers, a new frame each time: id (text) and target of every test row.

        Never write them where agent code can read.

        Raises:
            TaskError: If the data cannot be read.
        """
        return self.load().answers.copy()
