"""The metrics of table tasks: what a prediction looks like, which direction is better, and the value.

Values are scikit-learn's where it has the metric. Encoded arrays:

- `labels`: truth and prediction are class codes, shape (rows,), integers from 0.
- `probabilities`: truth is class codes, prediction has shape (rows, classes) and rows that sum to 1.
- `scores`: truth is 0 or 1 (or the number itself in regression), prediction any numbers, higher for likelier or more.
- `numbers`: truth and prediction are float64, shape (rows,), in the target's unit.
- `ranking`: truth is class codes, prediction has shape (rows, k): codes, best first, -1 where fewer are given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn import metrics as sk

from envs_registry.errors import did_you_mean
from mappa_envs.errors import ConfigError

Array = npt.NDArray[Any]
Takes = Literal["labels", "scores", "probabilities", "numbers", "ranking"]

_CLASSIFICATION = ("classification",)
_REGRESSION = ("regression",)
MAX_RANKS = 20


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    name: str
    title: str
    """Name and definition in words, for prompts."""
    takes: Takes
    """What the prediction columns hold; see the module."""
    best: float
    worst: float
    """The other bound; infinite where there is none."""
    compute: Callable[[Array, Array, int], float]
    """(truth, prediction, number of classes) -> value, on encoded arrays."""
    kinds: tuple[str, ...] = _CLASSIFICATION
    """Kinds of task that it may score."""
    two_classes: bool = False
    """Whether it is defined for exactly two classes only; the second is the positive one."""
    ranks: int = 0
    """k of a ranking metric, else 0."""
    truth_is: Literal["", "not negative", "not zero"] = ""
    """What true values must be for it to be defined."""

    @property
    def greater_is_better(self) -> bool:
        """The direction."""
        return self.best > self.worst


def smape(truth: Array, predicted: Array) -> float:
    """Return the symmetric mean absolute percentage error as a fraction: mean of 2|p - t| / (|p| + |t|), 0 to 2.

    A row where both are 0 counts 0 (Makridakis 1993; the form that M3 and the Kaggle competitions use).
    """
    size = np.abs(truth) + np.abs(predicted)
    difference = 2.0 * np.abs(predicted - truth)
    return float(np.mean(np.divide(difference, size, out=np.zeros_like(size), where=size > 0)))


def normalised_gini(truth: Array, predicted: Array) -> float:
    """Return the Gini coefficient of the ranking by `predicted`, divided by that of the perfect ranking; -1 to 1.

    Rows with equal predictions share their mean truth, so that row order never matters; with a 0/1 truth it equals
    2 ROC-AUC - 1. A constant truth gives 0.
    """
    perfect = _gini(truth, truth)
    return 0.0 if perfect == 0.0 else _gini(truth, predicted) / perfect


def _gini(truth: Array, predicted: Array) -> float:
    _, groups = np.unique(-predicted, return_inverse=True)
    # Sorted first: the sum within a group must not depend on the order of the rows either.
    order = np.lexsort((truth, groups))
    groups, truth = groups[order], truth[order]
    counts = np.bincount(groups)
    means = np.bincount(groups, weights=truth) / counts
    ranked = np.repeat(means, counts)
    total, rows = float(ranked.sum()), len(ranked)
    if total == 0.0:
        return 0.0
    return float(np.cumsum(ranked).sum()) / total / rows - (rows + 1) / (2 * rows)


def mean_average_precision(truth: Array, ranked: Array) -> float:
    """Return MAP@k with one right label per row: the mean of 1 / (place of the right label), 0 where it is absent."""
    hits = ranked == truth[:, None]
    return float(np.mean(np.where(hits.any(axis=1), 1.0 / (1 + hits.argmax(axis=1)), 0.0)))


def _roc_auc_multiclass(truth: Array, predicted: Array, n_classes: int) -> float:
    present = [code for code in range(n_classes) if 0 < np.sum(truth == code) < len(truth)]
    return float(np.mean([sk.roc_auc_score(truth == code, predicted[:, code]) for code in present]))


def _f1(truth: Array, predicted: Array, n_classes: int, *, average: str) -> float:
    return float(sk.f1_score(truth, predicted, average=average, zero_division=0.0))


def _qwk(truth: Array, predicted: Array, n_classes: int) -> float:
    if np.array_equal(truth, predicted):
        return 1.0  # kappa is 0/0 where all rows are of one class
    codes = list(range(n_classes))
    return float(np.nan_to_num(sk.cohen_kappa_score(truth, predicted, labels=codes, weights="quadratic")))


def _log_loss(truth: Array, predicted: Array, n_classes: int) -> float:
    return float(sk.log_loss(truth, predicted, labels=list(range(n_classes))))


def _of_two(function: Callable[..., float]) -> Callable[[Array, Array, int], float]:
    return lambda truth, predicted, n_classes: float(function(truth, predicted))


_ALL = (
    Metric("accuracy", "accuracy, the share of right labels", "labels", 1, 0, _of_two(sk.accuracy_score)),
    Metric(
        "f1",
        "F1 of the positive class",
        "labels",
        1,
        0,
        partial(_f1, average="binary"),
        two_classes=True,
    ),
    Metric(
        "f1_macro", "macro F1, the unweighted mean of each class's F1", "labels", 1, 0, partial(_f1, average="macro")
    ),
    Metric(
        "f1_weighted",
        "weighted F1, the mean of each class's F1 weighted by its number of rows",
        "labels",
        1,
        0,
        partial(_f1, average="weighted"),
    ),
    Metric("mcc", "Matthews correlation coefficient", "labels", 1, -1, _of_two(sk.matthews_corrcoef)),
    Metric("qwk", "quadratic weighted kappa, for classes in order", "labels", 1, -1, _qwk),
    Metric("roc_auc", "area under the ROC curve", "scores", 1, 0, _of_two(sk.roc_auc_score), two_classes=True),
    Metric(
        "roc_auc_multiclass",
        "area under the ROC curve, one class against the rest, mean over the classes",
        "probabilities",
        1,
        0,
        _roc_auc_multiclass,
    ),
    Metric("log_loss", "logarithmic loss (natural logarithm)", "probabilities", 0, np.inf, _log_loss),
    Metric(
        "gini",
        "normalised Gini coefficient of the ranking",
        "scores",
        1,
        -1,
        _of_two(normalised_gini),
        kinds=(*_CLASSIFICATION, *_REGRESSION),
        two_classes=True,
        truth_is="not negative",
    ),
    Metric(
        "rmse",
        "root mean squared error",
        "numbers",
        0,
        np.inf,
        _of_two(sk.root_mean_squared_error),
        kinds=_REGRESSION,
    ),
    Metric(
        "rmsle",
        "root mean squared error of log(1 + value)",
        "numbers",
        0,
        np.inf,
        _of_two(sk.root_mean_squared_log_error),
        kinds=_REGRESSION,
        truth_is="not negative",
    ),
    Metric("mae", "mean absolute error", "numbers", 0, np.inf, _of_two(sk.mean_absolute_error), kinds=_REGRESSION),
    Metric(
        "medae", "median absolute error", "numbers", 0, np.inf, _of_two(sk.median_absolute_error), kinds=_REGRESSION
    ),
    Metric(
        "mape",
        "mean absolute percentage error, as a fraction",
        "numbers",
        0,
        np.inf,
        _of_two(sk.mean_absolute_percentage_error),
        kinds=_REGRESSION,
        truth_is="not zero",
    ),
    Metric(
        "smape",
        "symmetric mean absolute percentage error, the mean of 2|p - t| / (|p| + |t|)",
        "numbers",
        0,
        2,
        _of_two(smape),
        kinds=_REGRESSION,
    ),
    Metric("r2", "coefficient of determination R2", "numbers", 1, -np.inf, _of_two(sk.r2_score), kinds=_REGRESSION),
    *(
        Metric(
            f"map_at_{k}",
            f"mean average precision at {k}: 1 / (place of the right label), 0 if it is not among the {k}",
            "ranking",
            1,
            0,
            _of_two(mean_average_precision),
            ranks=k,
        )
        for k in range(1, MAX_RANKS + 1)
    ),
)

METRICS: MappingProxyType[str, Metric] = MappingProxyType({metric.name: metric for metric in _ALL})
"""All metrics by name."""


def get_metric(name: str) -> Metric:
    """Find a metric by name.

    Raises:
        ConfigError: If there is none of that name.
    """
    if name not in METRICS:
        names = [name for name in METRICS if not name.startswith("map_at_")]
        raise ConfigError(
            f"unknown metric {name!r}",
            expected=f"one of {', '.join(names)}, or map_at_1 to map_at_{MAX_RANKS}",
            fix=did_you_mean(name, METRICS),
        )
    return METRICS[name]
