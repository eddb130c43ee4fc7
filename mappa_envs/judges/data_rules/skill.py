"""How much a plain model got out of features, measured on the hidden answers, on the host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mappa_envs.judges.data_rules.inside_features import skill

Predicted = Sequence[float] | Sequence[Sequence[float]]


def model_skill(truth: Sequence[str] | Sequence[float], predicted: Predicted, classes: Sequence[str]) -> float:
    """Return 0 (or less) for predictions that know nothing, 1 for perfect ones.

    Classification: 1 - B / B0, with B the Brier score of the predicted shares and B0 that of the true class shares.
    Regression: Spearman's rank correlation.

    Args:
        truth: Labels or numbers.
        predicted: One row of shares per label, in the order of `classes`; or one number each.
        classes: Labels; empty in regression. A true label that is none of them counts as wholly missed.
    """
    if not classes:
        return skill(np.asarray(truth, dtype=np.float64), np.asarray(predicted, dtype=np.float64), 0)
    hits = np.array([[label == name for name in classes] for label in truth], dtype=np.float64)
    unknown = 1.0 - hits.sum(axis=1)
    wrong = ((np.asarray(predicted, dtype=np.float64) - hits) ** 2).sum(axis=1) + unknown
    base = ((hits.mean(axis=0) - hits) ** 2).sum(axis=1) + unknown
    return 1.0 - float(wrong.mean() / base.mean()) if base.mean() > 0 else 0.0


def lone_skill(truth: Sequence[str] | Sequence[float], predicted: Sequence[float], classes: Sequence[str]) -> float:
    """Return what `inside_features.skill` says of one feature's predictions: class codes or numbers."""
    if not classes:
        return skill(np.asarray(truth, dtype=np.float64), np.asarray(predicted, dtype=np.float64), 0)
    codes = {name: code for code, name in enumerate(classes)}
    coded = np.array([codes.get(str(label), len(classes)) for label in truth], dtype=np.int64)
    return skill(coded, np.asarray(predicted, dtype=np.float64), len(classes))
