"""What each role of a data team has to leave in the workspace. `docs/data_judge.md` describes the files."""

from __future__ import annotations

X_TRAIN, X_TEST, Y_TRAIN = "X_train.csv", "X_test.csv", "y_train.csv"
"""Id column first, then numeric features (or the target as it was given)."""
MODEL = "model.joblib"
"""An object with `predict`, saved with joblib; in classification preferably also `predict_proba` and `classes_`."""
VALIDATION = "validation.json"
"""`{"value": NUMBER}`: the task's metric as the modeler expects it on unseen rows."""

FEATURE_FILES = (X_TRAIN, X_TEST, Y_TRAIN)

MAX_BYTES = 64 << 20
"""Larger artefacts count as missing."""
MAX_VALIDATION_BYTES = 4096
