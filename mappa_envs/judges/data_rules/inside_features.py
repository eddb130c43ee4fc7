"""Looks at the feature files, in a fresh kernel that holds them and the public tables, and nothing that runs.

The host sends the source of this file as a cell: it imports nothing of this project. What it finds is data from
strangers all the same, so the host checks its form.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pandas as pd

MAX_ROWS = 2000
"""Training rows that the models and the search for leaks look at."""
MAX_SUSPECTS = 5
SUSPICIOUS = 0.6
"""Least strength of a single feature that is looked into."""
MARGIN = 0.05
"""By how much it must be stronger than every column of the raw table."""
KEPT_SHARE = 0.9
"""Share of the training rows that must be kept: outliers may go."""


def report(spec: dict[str, Any]) -> dict[str, Any]:
    """Return what is wrong with the files, and what can be predicted from them.

    Args:
        spec: `id`, `target`, `kind`, and `rows`: the places of the test rows to predict for.

    Returns:
        `readable`, `rows`, `columns`, `target`: what is wrong, empty if nothing is. Where nothing is wrong, also
        `classes`, `suspects` (single features with their strength and predictions), and predictions of one plain
        model from the features (`probe`) and from the raw table (`raw`).
    """
    ident, target = spec["id"], spec["target"]
    train, test = (_keyed(pd.read_csv(name, dtype={ident: str}, low_memory=False), ident) for name in _RAW)
    labels = train[target]
    found: dict[str, Any] = {"readable": "", "rows": "", "columns": "", "target": "", "suspects": [], "classes": []}
    found |= {"probe": None, "raw": None}
    tables = {}
    for name in ("X_train.csv", "X_test.csv", "y_train.csv"):
        table, fault = read(name, ident, numbers=name.startswith("X"))
        if table is None or fault:
            found["readable"] = f"{name}: {fault}"
            return found
        tables[name] = table
    x_train, x_test, y_train = tables.values()
    found["rows"] = rows_fault(train, test, x_train, x_test, y_train)
    found["columns"] = columns_fault(list(x_train), list(x_test), target)
    found["target"] = target_fault(y_train, labels, target)
    if found["rows"] or found["columns"] or found["target"]:
        return found
    labels = labels.loc[x_train.index]
    keep = np.random.default_rng(0).permutation(len(labels))[:MAX_ROWS]
    places = spec["rows"]
    x, x_new = x_train.to_numpy(np.float64)[keep], x_test.loc[test.index].to_numpy(np.float64)[places]
    raw, raw_new = raw_numbers(train.drop(columns=target).loc[x_train.index], test)
    raw, raw_new = raw[keep], raw_new[places]
    if spec["kind"] == "classification":
        names = sorted(set(labels.astype(str)))
        y = labels.astype(str).map({name: code for code, name in enumerate(names)}).to_numpy()[keep]
        found["classes"] = names
    else:
        y = labels.to_numpy(np.float64)[keep]
    found["suspects"] = suspects(x, x_new, raw, y, len(found["classes"]))
    found["probe"] = plain_model(x, y, x_new, len(found["classes"]))
    found["raw"] = plain_model(raw, y, raw_new, len(found["classes"]))
    return found


_RAW = ("train.csv", "test.csv")


def _keyed(table: pd.DataFrame, ident: str) -> pd.DataFrame:
    """Make the id the index; rows without ids are counted from 0."""
    if ident in table:
        return table.set_index(ident)
    return table.set_index(pd.Index([str(i) for i in range(len(table))]))


def read(name: str, ident: str, *, numbers: bool) -> tuple[pd.DataFrame | None, str]:
    """Return a table by id, or why it cannot be used."""
    try:
        table = pd.read_csv(name, dtype={ident: str}, low_memory=False)
    except Exception:
        return None, "it cannot be read as CSV"
    if list(table.columns[:1]) != [ident]:
        return None, "its first column is not the id"
    table = table.set_index(ident)
    if not len(table) or not len(table.columns):
        return None, "it is empty"
    if numbers:
        if not all(pd.api.types.is_numeric_dtype(kind) for kind in table.dtypes):
            return None, "a feature is not numeric"
        values = table.to_numpy(np.float64)
        if np.isnan(values).any():
            return None, "values are missing"
        if np.isinf(values).any() or (np.abs(values) > 1e30).any():
            return None, "values are infinite"
    return table, ""


def rows_fault(
    train: pd.DataFrame, test: pd.DataFrame, x_train: pd.DataFrame, x_test: pd.DataFrame, y_train: pd.DataFrame
) -> str:
    """Compare the ids of the five tables."""
    if x_train.index.has_duplicates or x_test.index.has_duplicates:
        return "an id occurs twice"
    if list(x_train.index) != list(y_train.index):
        return "X_train.csv and y_train.csv have other ids, or another order"
    if not x_train.index.isin(train.index).all():
        return "X_train.csv has ids that train.csv has not"
    if len(x_train) < KEPT_SHARE * len(train):
        return f"X_train.csv has {len(x_train)} of {len(train)} rows"
    if len(x_test) != len(test) or not x_test.index.isin(test.index).all():
        return f"X_test.csv has {int(x_test.index.isin(test.index).sum())} of the {len(test)} test rows"
    return ""


def columns_fault(train: list[str], test: list[str], target: str) -> str:
    """Compare the features of both tables."""
    if target in train or target in test:
        return "the target is among the features"
    if train != test:
        return f"X_train.csv has {len(train)} features, X_test.csv {len(test)}, and not the same"
    return ""


def target_fault(y_train: pd.DataFrame, labels: pd.Series, target: str) -> str:
    """Compare y_train.csv with the target of train.csv, by id."""
    if list(y_train.columns) != [target]:
        return "y_train.csv has other columns than the id and the target"
    given, true = y_train[target], labels.reindex(y_train.index)
    if pd.api.types.is_numeric_dtype(given) and pd.api.types.is_numeric_dtype(true):
        same = np.isclose(given.to_numpy(np.float64), true.to_numpy(np.float64), rtol=1e-6, atol=1e-9)
    else:
        same = (given.astype(str) == true.astype(str)).to_numpy()
    return "" if same.all() else f"{int((~same).sum())} values are not those of train.csv"


def raw_numbers(train: pd.DataFrame, test: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the raw columns as numbers, texts by their place in the alphabet, missing values as NaN."""
    both = pd.concat([train, test.reindex(columns=train.columns)])
    for name in both.columns:
        if not pd.api.types.is_numeric_dtype(both[name].dtype):
            codes = pd.factorize(both[name].astype(str).where(both[name].notna()), sort=True)[0].astype(float)
            both[name] = np.where(codes < 0, np.nan, codes)
    values = both.to_numpy(np.float64)
    return values[: len(train)], values[len(train) :]


def suspects(x: np.ndarray, x_new: np.ndarray, raw: np.ndarray, y: np.ndarray, classes: int) -> list[dict[str, Any]]:
    """Return the features that alone predict the target better than any raw column does, with their predictions."""
    known = max((strength(column, y, classes) for column in raw.T), default=0.0)
    found = []
    for column, new in zip(x.T, x_new.T, strict=True):
        own = strength(column, y, classes)
        if own >= SUSPICIOUS and own > known + MARGIN:
            predict = lookup(column, y, classes)
            found.append({"strength": float(own), "predicted": predict(new).tolist()})
    return sorted(found, key=lambda item: -item["strength"])[:MAX_SUSPECTS]


def strength(column: np.ndarray, y: np.ndarray, classes: int) -> float:
    """Return how well one feature alone predicts the target in rows that its lookup table was not made from."""
    predicted = np.empty(len(y), dtype=np.float64)
    for half in (0, 1):
        inside = np.arange(len(y)) % 2 == half
        predicted[inside] = lookup(column[~inside], y[~inside], classes)(column[inside])
    return skill(y, predicted, classes)


def lookup(column: np.ndarray, y: np.ndarray, classes: int) -> Any:
    """Return a function from values of a feature to the mean or commonest target of their bin."""
    bins = int(np.clip(len(y) // 10, 4, 64))
    column = np.nan_to_num(column, nan=-1e30)
    edges = np.unique(np.quantile(column, np.linspace(0, 1, bins + 1)[1:-1]))
    places = np.searchsorted(edges, column)
    common: Any = np.bincount(y).argmax() if classes else y.mean()
    table = np.full(len(edges) + 1, common, dtype=np.float64)
    for place in np.unique(places):
        inside = y[places == place]
        table[place] = np.bincount(inside).argmax() if classes else inside.mean()
    return lambda new: table[np.searchsorted(edges, np.nan_to_num(new, nan=-1e30))]


def skill(y: np.ndarray, predicted: np.ndarray, classes: int) -> float:
    """Return 0 for a prediction that knows nothing, 1 for a perfect one.

    Classification: accuracy between that of the commonest class and 1. Regression: Spearman's rank correlation.
    """
    if classes:
        common = np.bincount(y.astype(int)).max() / len(y)
        return max(0.0, float(((predicted == y).mean() - common) / (1 - common))) if common < 1 else 0.0
    if len(set(y.tolist())) < 2 or len(set(predicted.tolist())) < 2:
        return 0.0
    return max(0.0, float(pd.Series(predicted).rank().corr(pd.Series(y, dtype=np.float64).rank())))


def plain_model(x: np.ndarray, y: np.ndarray, x_new: np.ndarray, classes: int) -> list[Any]:
    """Return the predictions of a small gradient boosting: numbers, or one probability per class."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    model = kind(max_iter=30, max_leaf_nodes=15, early_stopping=False, random_state=0)
    if not classes:
        return model.fit(x, y).predict(x_new).tolist()
    if len(set(y.tolist())) < 2:
        return np.eye(classes)[np.full(len(x_new), y[0])].tolist()
    model.fit(x, y)
    shares = np.zeros((len(x_new), classes))
    shares[:, model.classes_] = model.predict_proba(x_new)
    return shares.tolist()


def main() -> None:
    """Report on the files of the current folder."""
    with open("spec.json") as file:
        spec = json.load(file)
    found = report(spec)
    with open("found.json.part", "w") as file:
        json.dump(found, file, allow_nan=False)
    os.rename("found.json.part", "found.json")
