"""What a run came to, and what its evaluations say about going on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mappa_rl.evaluation.evaluate import Evaluation
from mappa_rl.evaluation.stats import PairedComparison


@dataclass(frozen=True, slots=True)
class TrainResult:
    """What a run came to."""

    run_dir: Path
    before: Evaluation | None
    after: Evaluation | None
    """The last evaluation after a training step."""
    comparison: PairedComparison | None
    """After against before, on the same tasks and seeds."""
    steps: int
    """Training steps that were taken."""
    best_step: int | None
    """Step of the best evaluation (0: before training). The held-out tasks chose it, so its success on them flatters
    it; `after` was not chosen."""
    stopped: str | None
    """Why the run ended before its last step; None if it did not."""
    seconds: float
    """Wall time since the run was started or resumed."""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "before": self.before.to_json() if self.before else None,
            "after": self.after.to_json() if self.after else None,
            "after_against_before": self.comparison.to_json() if self.comparison else None,
            "steps": self.steps,
            "best_step": self.best_step,
            "stopped": self.stopped,
            "seconds": round(self.seconds, 1),
        }


def best_step(evaluations: Mapping[int, Evaluation]) -> int | None:
    """Return the step whose evaluation has the highest success, the first of equals; None without evaluations."""
    return max(sorted(evaluations), key=lambda step: evaluations[step].success.mean, default=None)


def evaluations_since_best(evaluations: Mapping[int, Evaluation]) -> int:
    """Return how many evaluations came after the best one."""
    best = best_step(evaluations)
    return 0 if best is None else sum(step > best for step in evaluations)
