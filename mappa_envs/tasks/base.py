"""What a task and a source of tasks are, for every domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

Split = Literal["train", "eval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One problem. Subclasses add the hidden answer; nothing but `prompt` is ever shown to an agent."""

    id: str
    """Unique within its source; the same in every process."""
    prompt: str
    """The statement that agents see."""
    kind: str
    """Family or task type: statistics may be kept per kind."""
    level: int | None = None
    """Difficulty, 1 (easiest) to 5, where the source grades it."""
    source: str
    """Name of the source, for records and licences."""


@runtime_checkable
class TaskSource(Protocol):
    """An ordered, reproducible supply of tasks: task `i` is the same in every process.

    A finite source has `len(source) == size`; an endless one has `size` None.
    """

    name: str
    size: int | None

    def task(self, index: int) -> Task:
        """Return task `index` (0-based).

        Raises:
            TaskError: If a finite source has no such index.
        """
        ...
