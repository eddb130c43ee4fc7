"""Averages over runs in which failing never pays: the fair metrics of the MAPPA paper (DSBench results)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

FAILED_ACCURACY = 0.5
FAILED_F1 = 0.0
FAILED_RMSE_RANGE = 50.0
"""What a run counts whose submission is invalid or missing; the last in % of the range of the true values."""


@dataclass(frozen=True, slots=True)
class FairMetrics:
    """Means over runs, failed ones included."""

    runs: int
    failed: int
    accuracy: float | None
    """Mean accuracy of the classification runs, 0 to 1; None if there are none, as below."""
    f1: float | None
    """Mean F1 of the classification runs, 0 to 1."""
    rmse_range: float | None
    """Mean RMSE of the regression runs in % of the range of the true values; lower is better."""


def fair_metrics(runs: Iterable[tuple[str, Mapping[str, float]]]) -> dict[str, FairMetrics]:
    """Return the fair metrics of all runs (key `all`) and of each kind of task.

    Args:
        runs: Kind of the task, and `TableGrade.metrics`, which is empty where the run failed.
    """
    listed = list(runs)
    groups = {"all": listed, **{kind: [run for run in listed if run[0] == kind] for kind, _ in listed}}
    return {name: _mean(group) for name, group in groups.items()}


def _mean(runs: list[tuple[str, Mapping[str, float]]]) -> FairMetrics:
    def mean(kind: str, metric: str, failed: float) -> float | None:
        values = [metrics.get(metric, failed) for found, metrics in runs if found == kind]
        return sum(values) / len(values) if values else None

    return FairMetrics(
        runs=len(runs),
        failed=sum(not metrics for _, metrics in runs),
        accuracy=mean("classification", "accuracy", FAILED_ACCURACY),
        f1=mean("classification", "f1", FAILED_F1),
        rmse_range=mean("regression", "rmse_range", FAILED_RMSE_RANGE),
    )
