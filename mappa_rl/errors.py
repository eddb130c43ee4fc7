"""Named errors of the learning package; each says expected / got / fix."""

from __future__ import annotations

from envs_registry.errors import ConfigError, MappaError


class PolicyError(MappaError, RuntimeError):
    """A model, tokenizer or adapter cannot be loaded or used."""


class TrainingError(MappaError, RuntimeError):
    """Training cannot go on: too many failed verdicts, a non-finite loss, no trainable rows."""


class NonFiniteError(TrainingError):
    """A loss or gradient is NaN or infinite."""


class CheckpointError(MappaError, RuntimeError):
    """A run folder or checkpoint is missing, incomplete or corrupt."""


class CheckpointWarning(UserWarning):
    """A checkpoint is damaged, and the run goes on from an earlier one."""


class EvaluationError(MappaError, RuntimeError):
    """Episodes or results of an evaluation are damaged, of other settings or of other tasks."""


class ContaminationError(MappaError, ValueError):
    """Held-out tasks are among the training tasks."""


class ContaminationWarning(UserWarning):
    """Held-out tasks are among the training tasks, and the run goes on by its settings."""


__all__ = [
    "CheckpointError",
    "CheckpointWarning",
    "ConfigError",
    "ContaminationError",
    "ContaminationWarning",
    "EvaluationError",
    "MappaError",
    "NonFiniteError",
    "PolicyError",
    "TrainingError",
]
