"""A maths task: a statement with its accepted answers."""

from __future__ import annotations

from dataclasses import dataclass

from mappa_envs.tasks.base import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class MathTask(Task):
    """A problem whose outcome is decided by comparing a final answer."""

    answers: tuple[str, ...]
    """Accepted answers in LaTeX or plain notation; more than one where the source accepts several. Hidden."""
    expression: str | None = None
    """A Python expression (with `math` at hand) that gives the answer, where the source knows one. Hidden;
    the scripted policy and the warm-start demonstrations use it."""
    mistakes: tuple[str, ...] = ()
    """Python expressions of typical wrong approaches to this very problem. Hidden."""
