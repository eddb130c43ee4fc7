"""Baselines of the embedded tables: `python -m mappa_envs.tasks.tabular.baselines [name ...]` rewrites `facts.json`.

The reference of a table is a gradient boosting (scikit-learn's `HistGradientBoosting*`) whose settings are the best of
a small seeded search by cross-validation on the training rows, scored by the table's own metric. It sees only what an
agent sees: `train.csv` and `test.csv`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from mappa_envs.errors import TaskError
from mappa_envs.grading.tables.grade import encode_truth
from mappa_envs.grading.tables.metrics import Array, Metric, get_metric
from mappa_envs.tasks.tabular.base import TEST, TRAIN, TaskData
from mappa_envs.tasks.tabular.embedded import (
    FACTS_FILE,
    ID,
    Facts,
    read_facts,
    read_table,
    split_frame,
    task_data,
)
from mappa_envs.tasks.tabular.layout import score_trivial
from mappa_envs.tasks.tabular.table import Table
from mappa_envs.tasks.tabular.tables import TABLES

SEED = 20260123
CANDIDATES = 5
FOLDS = 2
MAX_SEARCH_ROWS = 3000
"""The search uses so many rows at most; the chosen settings are fitted on all."""
_MOST_VALUES = 200
"""The most frequent values of a text column that are told apart; the others count as one."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One candidate of the search."""

    learning_rate: float
    max_iter: int
    max_leaf_nodes: int
    min_samples_leaf: int
    l2_regularization: float
    aim: str
    """What the model is fitted to, see `_AIMS`: metrics differ in what serves them best."""


_AIMS = {
    "labels": ("plain", "balanced"),
    "ordinal": ("plain", "rank"),
    "absolute": ("absolute", "logarithm"),
    "logarithmic": ("logarithm",),
}
"""Ways to fit, by the group of the metric: as it is; with balanced class weights; to the rank of the class, rounded;
for absolute error; to the logarithm."""

_GROUPS = {
    "f1": "labels",
    "f1_macro": "labels",
    "mcc": "labels",
    "qwk": "ordinal",
    "mae": "absolute",
    "medae": "absolute",
    "mape": "absolute",
    "smape": "absolute",
    "rmsle": "logarithmic",
}


def candidates(metric: Metric, positive: bool) -> list[Settings]:
    """Return the settings that the search tries, the same for every table with the metric.

    Args:
        metric: The metric that is optimised.
        positive: Whether the whole target is positive or zero, so that logarithms exist.
    """
    random = np.random.default_rng(SEED)
    aims = [aim for aim in _AIMS.get(_GROUPS.get(metric.name, ""), ("plain",)) if positive or aim != "logarithm"]
    found = []
    for index in range(CANDIDATES):
        learning_rate = float(random.choice([0.05, 0.1]))
        found.append(
            Settings(
                learning_rate=learning_rate,
                max_iter=int(random.choice([4, 8]) / learning_rate),
                max_leaf_nodes=int(random.choice([4, 8, 16, 31])),
                min_samples_leaf=int(random.choice([5, 10, 20, 40])),
                l2_regularization=float(random.choice([0.0, 1.0, 10.0])),
                aim=aims[index % len(aims)],
            )
        )
    return found


def features(train: pd.DataFrame, test: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the features of both parts: dates as numbers, numbers as they are, other texts as they are."""
    parts = [part.drop(columns=ID) for part in (train, test)]
    for column in list(parts[0].columns):
        if pd.api.types.is_numeric_dtype(parts[0][column]):
            continue
        times = [_times(part[column]) for part in parts]
        if times[0] is None or times[1] is None:
            continue
        for index, time in enumerate(times):
            assert time is not None
            known = {
                f"{column} day": (time - pd.Timestamp("1970-01-01", tz="UTC")).dt.total_seconds() / 86400,
                f"{column} year": time.dt.year,
                f"{column} month": time.dt.month,
                f"{column} day of year": time.dt.day_of_year,
                f"{column} weekday": time.dt.day_of_week,
                f"{column} hour": time.dt.hour + time.dt.minute / 60,
            }
            parts[index] = parts[index].drop(columns=column).assign(**known)
    return parts[0], parts[1]


def _times(values: pd.Series) -> pd.Series | None:
    """Return the column as times if it is one, else None."""
    known = values.dropna().astype(str)
    if not known.str.fullmatch(r"\d{4}-\d\d-\d\d.*|\d{1,2}/\d{1,2}/\d{4}.*|\d\d:\d\d").mean() > 0.99:
        return None
    return pd.to_datetime(values, errors="coerce", format="mixed", utc=True)


def model(settings: Settings, train: pd.DataFrame, classes: int) -> Pipeline:
    """Return the unfitted pipeline of one candidate."""
    texts = [c for c in train.columns if not pd.api.types.is_numeric_dtype(train[c])]
    numbers = [c for c in train.columns if c not in texts]
    by_value = OrdinalEncoder(
        handle_unknown="use_encoded_value",
        unknown_value=np.nan,
        encoded_missing_value=np.nan,
        max_categories=_MOST_VALUES,
    )
    columns = ColumnTransformer([("texts", by_value, texts), ("numbers", "passthrough", numbers)])
    common: dict[str, Any] = {
        "learning_rate": settings.learning_rate,
        "max_iter": settings.max_iter if classes < 10 else settings.max_iter // 2,
        "max_leaf_nodes": settings.max_leaf_nodes,
        "min_samples_leaf": settings.min_samples_leaf,
        "l2_regularization": settings.l2_regularization,
        "categorical_features": list(range(len(texts))),
        "early_stopping": False,
        "random_state": SEED,
    }
    if classes and settings.aim != "rank":
        weights = "balanced" if settings.aim == "balanced" else None
        return make_pipeline(columns, HistGradientBoostingClassifier(class_weight=weights, **common))
    loss = "absolute_error" if settings.aim == "absolute" else "squared_error"
    return make_pipeline(columns, HistGradientBoostingRegressor(loss=loss, **common))


def fit_predict(
    settings: Settings, metric: Metric, classes: int, x: pd.DataFrame, y: Array, x_test: pd.DataFrame
) -> Array:
    """Fit one candidate and return encoded predictions.

    Args:
        settings: The candidate.
        metric: Says what a prediction is.
        classes: Number of classes; 0 in regression.
        x: Training features.
        y: Class codes or numbers, shape (rows,).
        x_test: Features to predict for.
    """
    fitted = model(settings, x, classes).fit(x, np.log1p(y) if settings.aim == "logarithm" else y)
    if not classes or settings.aim == "rank":
        values = fitted.predict(x_test)
        if settings.aim == "logarithm":
            values = np.expm1(values)
        if settings.aim == "rank":
            return np.clip(np.rint(values), 0, classes - 1).astype(np.int64)
        return np.maximum(values, 0.0) if metric.truth_is == "not negative" else values
    chances = fitted.predict_proba(x_test)
    match metric.takes:
        case "probabilities":
            return chances
        case "scores":
            return chances[:, 1]
        case "ranking":
            return np.argsort(-chances, axis=1, kind="stable")[:, : metric.ranks]
        case _:
            return chances.argmax(axis=1)


def search(x: pd.DataFrame, y: Array, metric: Metric, classes: int) -> Settings:
    """Return the candidate with the best mean metric over the folds."""
    rows = np.random.default_rng(SEED).permutation(len(y))[:MAX_SEARCH_ROWS]
    x, y = x.iloc[rows].reset_index(drop=True), y[rows]
    folds = (StratifiedKFold if classes else KFold)(FOLDS, shuffle=True, random_state=SEED)

    def value(settings: Settings) -> float:
        scores = [
            metric.compute(
                y[held], fit_predict(settings, metric, classes, x.iloc[kept], y[kept], x.iloc[held]), classes
            )
            for kept, held in folds.split(x, y if classes else None)
        ]
        return float(np.mean(scores)) * (1 if metric.greater_is_better else -1)

    return max(candidates(metric, positive=not classes and bool((y >= 0).all())), key=value)


def measure(table: Table) -> Facts:
    """Read one table and compute its facts.

    Raises:
        TaskError: If the reference is no better than the trivial predictor.
    """
    frame = read_table(table)
    train, test = split_frame(frame, table)
    classes = _classes(frame, table)
    data = task_data(train, test, table, classes)
    metric = get_metric(table.metric)
    truth = encode_truth(test[table.target], classes, metric)
    trivial = score_trivial(metric, train[table.target], truth, classes)
    reference = score_reference(data, table, classes)
    if (reference - trivial) * (1 if metric.greater_is_better else -1) <= 0:
        raise TaskError(
            f"the reference of {table.name!r} is no better than the trivial predictor",
            expected=f"a better {metric.name} than {trivial}",
            got=f"{reference}",
        )
    x = frame.drop(columns=table.target)
    missing = round(float(x.isna().to_numpy().mean()), 4)
    return Facts(len(train), len(test), x.shape[1], missing, classes, trivial, reference)


def _classes(frame: pd.DataFrame, table: Table) -> tuple[str, ...]:
    if table.kind == "regression":
        return ()
    found = set(frame[table.target])
    if table.classes and found != set(table.classes):
        raise TaskError(f"the classes of {table.name!r}", expected=str(table.classes), got=str(sorted(found)))
    return table.classes or tuple(sorted(found))


def score_reference(data: TaskData, table: Table, classes: tuple[str, ...]) -> float:
    """Return the metric of the tuned gradient boosting on the test rows."""
    metric = get_metric(table.metric)
    train, test = _read(data, TRAIN, table), _read(data, TEST, table)
    x, x_test = features(train.drop(columns=table.target), test)
    y = encode_truth(train[table.target], classes, metric)
    best = search(x, y, metric, len(classes))
    predicted = fit_predict(best, metric, len(classes), x, y, x_test)
    return metric.compute(encode_truth(data.answers[table.target], classes, metric), predicted, len(classes))


def _read(data: TaskData, file: str, table: Table) -> pd.DataFrame:
    dtype = {table.target: str} if table.kind == "classification" else None
    return pd.read_csv(BytesIO(data.files[file]), dtype=dtype, keep_default_na=False, na_values=[""])


def main(names: list[str]) -> int:
    """Measure the named tables, all by default, and write the facts; return the exit status."""
    path = Path(__file__).with_name(FACTS_FILE)
    for name in names or TABLES:
        known = measure(TABLES[name])
        write_facts({**read_facts(path), name: known}, path)
        print(f"{name}: trivial {known.trivial:.4g}, reference {known.reference:.4g}", flush=True)
    return 0


def write_facts(known: Mapping[str, Facts], path: Path) -> None:
    """Write facts in the order of the tables, one line each; what is no table any more is left out."""
    lines = [f"{json.dumps(name)}: {json.dumps(asdict(known[name]))}" for name in TABLES if name in known]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
