from __future__ import annotations

import pytest
from submission_cases import handed_in, table_task

from mappa_envs.grading.tables import FairMetrics, fair_metrics, grade_submission


def test_failed_runs_count_and_never_pay() -> None:
    labels = table_task("accuracy", ["a", "b", "a", "b"], ("a", "b"))
    numbers = table_task("mae", [0.0, 10.0])
    good = grade_submission(handed_in(labels, [(0, "a"), (1, "b"), (2, "a"), (3, "b")]), labels)
    half = grade_submission(handed_in(numbers, [(0, 2.0), (1, 8.0)]), numbers)
    bad_labels, bad_numbers = grade_submission(None, labels), grade_submission(b"?", numbers)
    report = fair_metrics(
        [
            ("classification", good.metrics),
            ("classification", bad_labels.metrics),
            ("regression", half.metrics),
            ("regression", bad_numbers.metrics),
        ]
    )
    # accuracy (1 + 0.5) / 2, F1 (1 + 0) / 2, RMSE 20 % of the range and 50 % for the failed run.
    assert report["all"] == FairMetrics(4, 2, 0.75, 0.5, pytest.approx(35.0))
    assert report["classification"] == FairMetrics(2, 1, 0.75, 0.5, None)
    assert report["regression"] == FairMetrics(2, 1, None, None, pytest.approx(35.0))
    assert fair_metrics([])["all"] == FairMetrics(0, 0, None, None, None)
