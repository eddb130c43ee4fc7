from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from mappa_envs.errors import ConfigError
from mappa_envs.grading.tables import METRICS, get_metric
from mappa_envs.grading.tables.metrics import normalised_gini, smape

LABELS = (np.array([0, 1, 2, 1, 0, 2]), np.array([0, 2, 2, 1, 0, 1]))  # 4 of 6 right
BINARY = (np.array([0, 1, 1, 0, 1]), np.array([0, 1, 0, 1, 1]))  # tp 2, fp 1, fn 1, tn 1
SCORES = (np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.1, 0.4, 0.35, 0.8]))  # 3 of 4 pairs in order
CHANCES = (np.array([0, 1, 2]), np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.5, 0.25, 0.25]]))
NUMBERS = (np.array([1.0, 2.0, 4.0]), np.array([1.0, 4.0, 2.0]))
RANKED = (np.array([3, 1, 2]), np.array([[3, 0, 1], [0, 2, 1], [0, 1, -1]]))  # 1, 1/3, 0

HAND_COMPUTED = {
    "accuracy": (LABELS, 4 / 6),
    "f1": (BINARY, 2 * 2 / (2 * 2 + 1 + 1)),
    "f1_macro": (LABELS, (1 + 1 / 2 + 1 / 2) / 3),
    "f1_weighted": (LABELS, (2 * 1 + 2 / 2 + 2 / 2) / 6),
    "mcc": (BINARY, (2 * 1 - 1 * 1) / math.sqrt(3 * 3 * 2 * 2)),
    # squared distances observed: 2; expected, from the products of the margins: 48 / 6 = 8
    "qwk": (LABELS, 1 - 2 / 8),
    "roc_auc": (SCORES, 3 / 4),
    "roc_auc_multiclass": (CHANCES, (3 / 4 + 1 + 1 / 2) / 3),
    "log_loss": (CHANCES, -(math.log(0.5) + math.log(0.5) + math.log(0.25)) / 3),
    "gini": (SCORES, 2 * 3 / 4 - 1),
    "rmse": (NUMBERS, math.sqrt(8 / 3)),
    "rmsle": (NUMBERS, math.sqrt(2 * math.log(5 / 3) ** 2 / 3)),
    "mae": (NUMBERS, 4 / 3),
    "medae": (NUMBERS, 2.0),
    "mape": (NUMBERS, (0 + 1 + 0.5) / 3),
    "smape": (NUMBERS, (0 + 4 / 6 + 4 / 6) / 3),
    "r2": (NUMBERS, 1 - 8 / (14 / 3)),
    "map_at_3": (RANKED, (1 + 1 / 3 + 0) / 3),
}


@pytest.mark.parametrize("name", HAND_COMPUTED)
def test_values_computed_by_hand(name: str) -> None:
    (truth, predicted), value = HAND_COMPUTED[name]
    assert get_metric(name).compute(truth, predicted, 3) == pytest.approx(value, rel=1e-12)


def test_every_metric_has_a_value_computed_by_hand() -> None:
    assert {name for name in METRICS if not name.startswith("map_at_")} | {"map_at_3"} == set(HAND_COMPUTED)


@pytest.mark.parametrize("name", METRICS)
def test_direction_and_bounds(name: str) -> None:
    metric = METRICS[name]
    assert metric.best in (0, 1) and metric.worst != metric.best
    assert metric.greater_is_better == (metric.best == 1)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 4)), min_size=2, max_size=40))
def test_gini_of_two_classes_is_twice_the_auc_less_one(rows: list[tuple[int, int]]) -> None:
    truth, predicted = np.array(rows, dtype=float).T
    if 0 < truth.sum() < len(truth):
        assert normalised_gini(truth, predicted) == pytest.approx(2 * roc_auc_score(truth, predicted) - 1, abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)), min_size=2, max_size=40), st.randoms())
def test_gini_never_depends_on_the_order_of_the_rows(rows: list[tuple[int, int]], random: object) -> None:
    truth, predicted = np.array(rows, dtype=float).T
    random.shuffle(rows)  # type: ignore[attr-defined]
    assert normalised_gini(*np.array(rows, dtype=float).T) == pytest.approx(normalised_gini(truth, predicted), abs=1e-9)


def test_gini_by_its_definition_where_nothing_ties() -> None:
    truth, predicted = np.array([3.0, 1.0, 0.0, 6.0]), np.array([0.2, 0.9, 0.1, 0.5])

    def area(order: list[int]) -> float:
        share, total = 0.0, 0.0
        for place in order:
            share += truth[place] / truth.sum()
            total += share
        return total - (len(truth) + 1) / 2

    assert normalised_gini(truth, predicted) == pytest.approx(area([1, 3, 0, 2]) / area([3, 0, 1, 2]))


def test_limits() -> None:
    ones = np.ones(3)
    assert normalised_gini(ones, np.array([1.0, 2.0, 3.0])) == 0.0
    assert normalised_gini(np.zeros(3), ones) == 0.0
    assert smape(np.array([0.0, 1.0]), np.array([0.0, -1.0])) == 1.0
    # All rows of one class, all right: kappa itself is 0 / 0.
    assert get_metric("qwk").compute(np.zeros(3, dtype=int), np.zeros(3, dtype=int), 3) == 1.0
    # Distances count by rank among all classes, also of those that do not occur.
    truth, predicted = np.array([0, 0, 3, 3]), np.array([0, 3, 3, 3])
    assert get_metric("qwk").compute(truth, predicted, 4) == pytest.approx(0.5)


@pytest.mark.parametrize(("name", "hint"), [("acuracy", "'accuracy'"), ("auc inside caucasian", ""), ("map_at_21", "")])
def test_an_unknown_metric_is_an_error_and_never_guessed(name: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown metric(.|\n)*rmsle(.|\n)*{hint}"):
        get_metric(name)
