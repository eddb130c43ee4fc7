"""What can be wrong with a task folder: everything is looked at, and all of it is said at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from mappa_envs.tasks.tabular.base import SAMPLE, TEST, TRAIN
from mappa_envs.tasks.tabular.folder import TaskFolder, task_folders
from mappa_envs.tasks.tabular.folder_reading import FolderTables, Problem, read_folder
from mappa_envs.tasks.tabular.layout import prediction_columns

_SHORT_DESCRIPTION = 40


def validate(path: Path) -> dict[str, list[Problem]]:
    """Check a task folder, or every task folder in a folder.

    Returns:
        Problems by task; an empty list means that nothing is wrong.

    Raises:
        TaskError: If there is no task folder.
    """
    return {folder.name: check_folder(folder)[1] for folder in task_folders(path)}


def check_folder(folder: TaskFolder) -> tuple[FolderTables | None, list[Problem]]:
    """Read and check one task folder.

    Returns:
        Its parts, None if there is an error, and what is wrong.
    """
    tables, problems = read_folder(folder)
    if tables is None:
        return None, problems
    problems += [Problem("error", text) for text in _column_errors(tables)]
    if not problems:
        problems += [Problem("error", text) for text in (*_id_errors(tables), *_target_errors(tables))]
    if not problems:
        problems += [Problem("error", text) for text in _baseline_errors(tables)]
        problems += [Problem("warning", text) for text in _warnings(tables)]
    failed = any(problem.severity == "error" for problem in problems)
    return (None if failed else tables), problems


def _column_errors(tables: FolderTables) -> Iterator[str]:
    id_column, target = tables.id_column, tables.target
    if id_column == target:
        yield f"the id and the target are one column: {target!r}"
    for name, frame, wanted in (
        (TRAIN, tables.train, (target,)),
        (TEST, tables.test, (id_column,)),
        (SAMPLE, tables.sample, (id_column,)),
        ("the answer file", tables.answers, (id_column, target)),
    ):
        for column in wanted:
            if column not in frame.columns:
                yield f"{name} has no column {column!r}, only {', '.join(map(repr, frame.columns[:8]))}"
    if target in tables.test.columns:
        yield f"{TEST} holds the target {target!r}: the answers must not be public"


def _id_errors(tables: FolderTables) -> Iterator[str]:
    wanted = set(tables.test[tables.id_column])
    for name, frame in ((TEST, tables.test), (SAMPLE, tables.sample), ("the answer file", tables.answers)):
        ids = frame[tables.id_column]
        if ids.duplicated().any():
            yield f"{name} repeats ids, e.g. {ids[ids.duplicated()].iloc[0]!r}"
        if (ids == "").any():
            yield f"{name} has a row without an id"
        missing, extra = wanted - set(ids), set(ids) - wanted
        if missing:
            yield f"{name} lacks {len(missing)} ids of {TEST}, e.g. {min(missing)!r}"
        if extra:
            yield f"{name} has {len(extra)} ids that are not in {TEST}, e.g. {min(extra)!r}"


def _target_errors(tables: FolderTables) -> Iterator[str]:
    known, hidden = tables.train[tables.target], tables.answers[tables.target]
    if (known == "").all():
        yield f"no row of {TRAIN} has a target"
        return
    if (hidden == "").any():
        yield f"the answer file lacks {(hidden == '').sum()} values"
        return
    yield from _label_errors(tables, hidden) if tables.kind == "classification" else _number_errors(tables)
    columns = prediction_columns(tables.metric, tables.target, tables.classes)
    handed_in = [column for column in tables.sample.columns if column != tables.id_column]
    if set(handed_in) != set(columns):
        yield f"{SAMPLE} has the columns {handed_in}; {tables.metric.name} needs {list(columns)}"
    merged = tables.test.merge(tables.answers[[tables.id_column, tables.target]], on=tables.id_column)
    for column in tables.test.columns:
        if hidden.nunique() > 1 and (merged[column] == merged[tables.target]).all():
            yield f"column {column!r} of {TEST} equals the answers"


def _label_errors(tables: FolderTables, hidden: pd.Series) -> Iterator[str]:
    classes, metric = tables.classes, tables.metric
    known = set(tables.train[tables.target]) - {""}
    if known - set(classes):
        yield f"{TRAIN} has labels that task.yaml does not list: {sorted(known - set(classes))[:3]}"
    if set(hidden) - set(classes):
        yield f"the answer file has labels that {TRAIN} lacks: {sorted(set(hidden) - set(classes))[:3]}"
    if len(classes) < 2 or hidden.nunique() < 2:
        yield "there are fewer than two classes"
    if metric.two_classes and len(classes) != 2:
        yield f"{metric.name} needs two classes, there are {len(classes)}"
    if metric.ranks and any(" " in label for label in classes):
        yield f"{metric.name} needs labels without spaces"


def _number_errors(tables: FolderTables) -> Iterator[str]:
    for name, column in ((TRAIN, tables.train[tables.target]), ("the answer file", tables.answers[tables.target])):
        filled = column[column != ""]
        numbers = pd.to_numeric(filled, errors="coerce").to_numpy(dtype=np.float64)
        wrong = ~np.isfinite(numbers)
        if wrong.any():
            yield f"{name}: {wrong.sum()} values of {tables.target!r} are no numbers, e.g. {filled[wrong].iloc[0]!r}"
        elif tables.metric.truth_is == "not negative" and (numbers < 0).any():
            yield f"{name}: {tables.metric.name} needs values that are not negative"
        elif tables.metric.truth_is == "not zero" and (numbers == 0).any():
            yield f"{name}: {tables.metric.name} needs values that are not zero"
        elif numbers.min() == numbers.max():
            yield f"{name}: all values of {tables.target!r} are equal"


def _baseline_errors(tables: FolderTables) -> Iterator[str]:
    trivial, reference = tables.baselines()
    if (reference - trivial) * (1 if tables.metric.greater_is_better else -1) <= 0:
        yield f"the reference {reference:g} is no better than the trivial predictor's {tables.metric.name} {trivial:g}"


def _warnings(tables: FolderTables) -> Iterator[str]:
    if len(tables.description.strip()) < _SHORT_DESCRIPTION:
        yield "the description is very short"
    blank = int((tables.train[tables.target] == "").sum())
    if blank:
        yield f"{blank} rows of {TRAIN} have no target"
    features = [c for c in tables.test.columns if c in tables.train.columns and c != tables.id_column]
    missing = [c for c in tables.test.columns if c not in tables.train.columns and c != tables.id_column]
    if missing:
        yield f"{TEST} has columns that {TRAIN} lacks: {missing[:3]}"
    if not features:
        yield f"{TRAIN} and {TEST} share no feature"
        return
    train, test = (pd.util.hash_pandas_object(frame[features], index=False) for frame in (tables.train, tables.test))
    copied = float(test.isin(train).mean())
    if len(features) > 2 and copied > 0.05:
        yield f"{copied:.0%} of the rows of {TEST} are also in {TRAIN}"
    if tables.settings.reference is None and not np.isfinite(tables.metric.worst):
        yield "task.yaml has no reference: a score of 1 then means no error at all"
