"""Reading a task folder: bytes, tables of text and settings, with everything that cannot be read named at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import yaml
from pydantic import ValidationError

from mappa_envs.errors import ConfigError
from mappa_envs.grading.tables.grade import encode_truth
from mappa_envs.grading.tables.metrics import Metric, get_metric
from mappa_envs.tasks.tabular.base import SAMPLE, TEST, TRAIN, TableKind
from mappa_envs.tasks.tabular.folder import SAMPLES, TaskFile, TaskFolder
from mappa_envs.tasks.tabular.layout import score_trivial

MAX_BYTES = 512 << 20
"""Largest file of a task folder."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a task folder."""

    severity: Literal["error", "warning"]
    """A folder with an error is no task."""
    text: str


@dataclass(frozen=True, slots=True)
class FolderTables:
    """The parts of a task folder; all cells are text, missing ones empty."""

    settings: TaskFile
    metric: Metric
    files: dict[str, bytes]
    """The public files, as they are."""
    train: pd.DataFrame
    test: pd.DataFrame
    sample: pd.DataFrame
    answers: pd.DataFrame
    description: str

    @property
    def kind(self) -> TableKind:
        """The task's kind: what `task.yaml` says, else what the metric is for."""
        if self.settings.kind is not None:
            return self.settings.kind
        return "classification" if "classification" in self.metric.kinds else "regression"

    @property
    def id_column(self) -> str:
        """The id column: what `task.yaml` says, else the first of the sample submission."""
        return self.settings.id_column or str(self.sample.columns[0])

    @property
    def target(self) -> str:
        """The target: what `task.yaml` says, else the last column of the sample submission."""
        return self.settings.target or str(self.sample.columns[-1])

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels: what `task.yaml` says, else those of the training rows, sorted, numbers by size."""
        if self.kind == "regression":
            return ()
        return self.settings.classes or tuple(sorted(set(self.known_target()), key=_label_order))

    def known_target(self) -> pd.Series:
        """Return the target of the training rows that have one: labels as text, or float64."""
        values = self.train[self.target]
        values = values[values != ""]
        return values.astype(np.float64) if self.kind == "regression" else values

    def known_answers(self) -> pd.DataFrame:
        """Return the id (text) and the target (labels as text, or float64) of the test rows."""
        values = self.answers[self.target]
        if self.kind == "regression":
            values = values.astype(np.float64)
        return pd.DataFrame({self.id_column: self.answers[self.id_column], self.target: values})

    def baselines(self) -> tuple[float, float]:
        """Return the raw metric of the trivial predictor and of the reference."""
        truth = encode_truth(self.known_answers()[self.target], self.classes, self.metric)
        trivial = score_trivial(self.metric, self.known_target(), truth, self.classes)
        return trivial, self.metric.best if self.settings.reference is None else self.settings.reference


def _label_order(label: str) -> tuple[bool, float, str]:
    try:
        return (False, float(label), label)
    except ValueError:
        return (True, 0.0, label)


def read_folder(folder: TaskFolder) -> tuple[FolderTables | None, list[Problem]]:
    """Read all parts of a folder.

    Returns:
        The parts, None if there is an error, and what is wrong.
    """
    problems: list[Problem] = []
    settings = _settings(folder.task_file, problems)
    metric = _metric(settings, problems)
    public = {
        TRAIN: _bytes((folder.public / TRAIN,), problems),
        TEST: _bytes((folder.public / TEST,), problems),
        SAMPLE: _bytes(tuple(folder.public / name for name in SAMPLES), problems),
    }
    answers = _bytes(folder.answers, problems)
    description = _bytes(folder.descriptions, problems)
    frames = {name: _table(data, name, problems) for name, data in (*public.items(), ("the answer file", answers))}
    if problems or settings is None or metric is None or description is None:
        return None, problems
    tables = FolderTables(
        settings=settings,
        metric=metric,
        files={name: data for name, data in public.items() if data is not None},
        train=frames[TRAIN],
        test=frames[TEST],
        sample=frames[SAMPLE],
        answers=frames["the answer file"],
        description=description.decode("utf-8", errors="replace"),
    )
    return tables, problems


def _settings(path: Path, problems: list[Problem]) -> TaskFile | None:
    data = _bytes((path,), problems)
    if data is None:
        return None
    try:
        fields = yaml.safe_load(data)
        if not isinstance(fields, dict):
            raise ConfigError("not a mapping", expected="metric: NAME", got=type(fields).__name__)
        return TaskFile(**fields)
    except ValidationError as error:
        text = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
    except (yaml.YAMLError, ConfigError, TypeError) as error:
        text = str(error)
    problems.append(Problem("error", f"{path.name}: {' '.join(text.split())}"))
    return None


def _metric(settings: TaskFile | None, problems: list[Problem]) -> Metric | None:
    if settings is None:
        return None
    try:
        metric = get_metric(settings.metric)
    except ConfigError as error:
        problems.append(Problem("error", " ".join(str(error).split())))
        return None
    if settings.kind is None and len(metric.kinds) > 1:
        problems.append(Problem("error", f"{metric.name} scores both kinds: say which `kind` this is"))
    elif settings.kind is not None and settings.kind not in metric.kinds:
        problems.append(Problem("error", f"{metric.name} scores {' or '.join(metric.kinds)}, not {settings.kind}"))
    return metric


def _bytes(places: Iterable[Path], problems: list[Problem]) -> bytes | None:
    """Return the content of the first place that exists."""
    places = tuple(places)
    for place in places:
        if not place.is_file():
            continue
        if place.stat().st_size > MAX_BYTES:
            problems.append(Problem("error", f"{place.name} has more than {MAX_BYTES} bytes"))
            return None
        try:
            return place.read_bytes()
        except OSError as error:
            problems.append(Problem("error", f"{place.name} cannot be read: {error}"))
            return None
    others = f" (nor {', '.join(place.name for place in places[1:])})" if len(places) > 1 else ""
    problems.append(Problem("error", f"missing: {places[0]}{others}"))
    return None


def _table(data: bytes | None, name: str, problems: list[Problem]) -> pd.DataFrame:
    if data is None:
        return pd.DataFrame()
    try:
        frame = pd.read_csv(BytesIO(data), dtype=str, keep_default_na=False, encoding="utf-8-sig", index_col=False)
    except (ValueError, UnicodeDecodeError) as error:  # pandas' parser errors are ValueErrors
        problems.append(Problem("error", f"{name} is no comma-separated UTF-8 table: {' '.join(str(error).split())}"))
        return pd.DataFrame()
    frame = frame.rename(columns=str.strip).apply(lambda column: column.str.strip())
    if frame.empty:
        problems.append(Problem("error", f"{name} has no rows"))
    return frame
