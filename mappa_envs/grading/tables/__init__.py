"""Grading of predictions on tables: `grade_submission`, the metrics, and the fair averages."""

from mappa_envs.grading.tables.fair import FairMetrics, fair_metrics
from mappa_envs.grading.tables.faults import FATAL_CODES, NOTE_CODES, Fault
from mappa_envs.grading.tables.grade import MAX_SUBMISSION_BYTES, TableGrade, grade_submission, invalid_grade
from mappa_envs.grading.tables.metrics import METRICS, Metric, get_metric

__all__ = [
    "FATAL_CODES",
    "MAX_SUBMISSION_BYTES",
    "METRICS",
    "NOTE_CODES",
    "FairMetrics",
    "Fault",
    "Metric",
    "TableGrade",
    "fair_metrics",
    "get_metric",
    "grade_submission",
    "invalid_grade",
]
