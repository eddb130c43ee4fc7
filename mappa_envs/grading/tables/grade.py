"""`grade_submission`: from the bytes that a team handed in to a grade, whatever the bytes are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mappa_envs.grading.tables.faults import Fault
from mappa_envs.tasks.tabular.base import TabularTask

MAX_SUBMISSION_BYTES = 32 << 20
"""Larger submissions get the fault `too_large` unread."""


@dataclass(frozen=True, slots=True)
class TableGrade:
    """What a submission is worth."""

    valid: bool
    """Whether it was scored; false if any fault is fatal."""
    faults: tuple[Fault, ...]
    metric: str
    """Name of the task's metric."""
    value: float | None
    """Raw value of the task's metric; None if invalid."""
    normalised: float | None
    """0 = trivial predictor, 1 = reference model; below 0 or above 1 where it is worse or better. None if invalid."""
    score: float
    """`normalised` clipped to 0..1; 0 if invalid."""
    rows: int
    """Data rows read from the submission."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Further raw values that these predictions allow, by metric name; empty if invalid. Classification: `accuracy`
    and `f1` (of the positive class; macro with more than two). Regression: `rmse`, `mae`, `r2` and `rmse_range`
    (RMSE as a percentage of the range of the true values)."""

    @property
    def reason(self) -> str:
        """One line that says why it has this score."""
        fatal = [fault.message for fault in self.faults if fault.fatal]
        if fatal:
            return "invalid submission: " + "; ".join(fatal)
        return f"{self.metric} {self.value:.6g}, normalised {self.normalised:.3f}"


def invalid_grade(task: TabularTask, *faults: Fault, rows: int = 0) -> TableGrade:
    """Return the grade of a submission that cannot be scored."""
    return TableGrade(False, faults, task.metric, None, None, 0.0, rows)


def grade_submission(data: bytes | None, task: TabularTask) -> TableGrade:
    """Grade a submission against the hidden answers, joining by id.

    Never raises because of `data`, evaluates nothing in it and reads at most `MAX_SUBMISSION_BYTES`.

    Args:
        data: The bytes of `submission.csv`; None if there is none.
        task: The task with its answers.

    Raises:
        TaskError: If the task's own data cannot be read.
    """
    if data is None:
        return invalid_grade(task, Fault("missing_file", "there is no submission.csv"))
    raise NotImplementedError
