"""Loads the model in a fresh kernel and has it predict rows that it has not been shown in this order.

The host sends the source of this file as a cell: it imports nothing of this project. Loading a model runs whatever
code its makers put into it, so nothing that comes out is believed: it is a list of predictions, and the host compares
them with what it knows.
"""

from __future__ import annotations

import json
import os
from typing import Any

import joblib
import numpy as np
import pandas as pd


def predictions(model: Any, rows: pd.DataFrame, *, classification: bool) -> dict[str, Any]:
    """Return `values` (numbers, or labels as text) and, where the model gives them, `shares` by class."""
    values = np.asarray(model.predict(rows)).ravel()
    if not classification:
        return {"values": values.astype(np.float64).tolist(), "classes": [], "shares": None}
    found: dict[str, Any] = {"values": [str(value) for value in values.tolist()], "classes": [], "shares": None}
    if hasattr(model, "predict_proba") and hasattr(model, "classes_"):
        found["classes"] = [str(name) for name in np.asarray(model.classes_).tolist()]
        found["shares"] = np.asarray(model.predict_proba(rows), dtype=np.float64).tolist()
    return found


def main() -> None:
    """Predict for the rows of `rows.csv`."""
    with open("spec.json") as file:
        spec = json.load(file)
    rows = pd.read_csv("rows.csv", dtype={spec["id"]: str}).set_index(spec["id"])
    model = joblib.load("model.joblib")
    found = predictions(model, rows, classification=spec["kind"] == "classification")
    with open("found.json.part", "w") as file:
        json.dump(found, file, allow_nan=False)
    os.rename("found.json.part", "found.json")
