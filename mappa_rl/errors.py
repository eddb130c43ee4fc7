"""Named errors of the learning package; each says expected / got / fix."""

from __future__ import annotations

from envs_registry.errors import ConfigError, MappaError


class PolicyError(MappaError, RuntimeError):
    """A model, tokenizer or adapter cannot be loaded or used."""


class TrainingError(MappaError, RuntimeError):
    """Training cannot go on: too many failed verdicts, a non-finite loss, no trainable rows."""


class CheckpointError(MappaError, RuntimeError):
    """A run folder or checkpoint is missing, incomplete or corrupt."""


__all__ = ["CheckpointError", "ConfigError", "MappaError", "PolicyError", "TrainingError"]
