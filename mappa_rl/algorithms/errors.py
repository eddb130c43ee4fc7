"""Named errors of the learning maths."""

from __future__ import annotations

from envs_registry.errors import MappaError


class AlgorithmError(MappaError, ValueError):
    """A batch or a call does not fit the algorithm."""


class GroupSizeError(AlgorithmError):
    """A group baseline has nothing to compare with: every task was played only once."""
