"""From a checked task folder to a task."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
import pandas as pd

from mappa_envs.errors import TaskError
from mappa_envs.grading.tables.grade import encode_truth
from mappa_envs.tasks.tabular.base import TabularTask, TaskData
from mappa_envs.tasks.tabular.folder import TASK_FILE, TaskFolder
from mappa_envs.tasks.tabular.folder_checks import check_folder
from mappa_envs.tasks.tabular.folder_reading import FolderTables
from mappa_envs.tasks.tabular.layout import prediction_columns, score_trivial, statement


def folder_task(folder: TaskFolder) -> TabularTask:
    """Return the task of one folder.

    Raises:
        TaskError: If the folder is malformed; says all that is wrong.
    """
    tables = _read(folder)
    metric, settings, classes = tables.metric, tables.settings, tables.classes
    rows = (len(tables.train), len(tables.test))
    truth = encode_truth(_answers(tables)[tables.target], classes, metric)
    trivial = score_trivial(metric, tables.known_target(), truth, classes)
    reference = metric.best if settings.reference is None else settings.reference
    if (reference - trivial) * (1 if metric.greater_is_better else -1) <= 0:
        raise TaskError(
            f"the reference of {folder.name!r} is no better than the trivial predictor",
            expected=f"{metric.name} better than {trivial:g}",
            got=f"{reference:g}",
            fix=f"correct `reference` in {TASK_FILE}",
        )
    return TabularTask(
        id=f"folder/{folder.name}",
        prompt=statement(
            tables.description,
            {},
            metric,
            target=tables.target,
            id_column=tables.id_column,
            classes=classes,
            rows=rows,
        ),
        kind=tables.kind,
        source="folder",
        metric=metric.name,
        target=tables.target,
        id_column=tables.id_column,
        prediction_columns=prediction_columns(metric, tables.target, classes),
        classes=classes,
        rows=rows,
        trivial=trivial,
        reference=reference,
        licence=settings.licence,
        load=partial(load_folder, folder),
    )


@lru_cache(maxsize=4)
def load_folder(folder: TaskFolder) -> TaskData:
    """Read the public files and the answers of a folder.

    Raises:
        TaskError: If it is malformed.
    """
    tables = _read(folder)
    return TaskData(tables.files, _answers(tables))


def _read(folder: TaskFolder) -> FolderTables:
    tables, problems = check_folder(folder)
    if tables is None:
        raise TaskError(
            f"the task folder {folder.name!r} is malformed",
            got="; ".join(problem.text for problem in problems if problem.severity == "error"),
            fix="correct it, and check with: mappa tasks validate FOLDER",
        )
    return tables


def _answers(tables: FolderTables) -> pd.DataFrame:
    values = tables.answers[tables.target]
    if tables.kind == "regression":
        values = values.astype(np.float64)
    return pd.DataFrame({tables.id_column: tables.answers[tables.id_column], tables.target: values})
