"""Named errors of the environments; each says expected / got / fix."""

from __future__ import annotations

from envs_registry.errors import ConfigError, MappaError


class ActionError(MappaError, ValueError):
    """An action that the environment cannot take: wrong type, wrong agent, too long."""


class EpisodeError(MappaError, RuntimeError):
    """A call at the wrong time: before `reset`, or after the episode has ended."""


class TaskError(MappaError, ValueError):
    """A task, task file or task source is malformed; names file and line where there is one."""


class SandboxError(MappaError, RuntimeError):
    """The sandbox itself failed; never raised for a fault in the agent's code."""


class JudgeError(MappaError, RuntimeError):
    """A judge is misused, or too large a share of its verdicts failed."""


class BudgetError(JudgeError):
    """The money for a judge is used up: stop, keep what there is, resume with more."""


__all__ = [
    "ActionError",
    "BudgetError",
    "ConfigError",
    "EpisodeError",
    "JudgeError",
    "MappaError",
    "SandboxError",
    "TaskError",
]
