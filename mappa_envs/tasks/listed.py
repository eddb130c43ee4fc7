"""A source over a sequence of tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from mappa_envs.errors import TaskError
from mappa_envs.tasks.base import Task

T = TypeVar("T", bound=Task)


class ListedSource(Generic[T]):
    """A source over a sequence of tasks.

    Args:
        name: Name of the source.
        tasks: At least one task, with distinct ids.

    Raises:
        TaskError: If there is no task, or an id occurs twice.
    """

    def __init__(self, name: str, tasks: Iterable[T]) -> None:
        self.name = name
        self.tasks = tuple(tasks)
        self.size: int | None = len(self.tasks)
        if not self.tasks:
            raise TaskError(f"task source {name!r} is empty", expected="at least one task")
        if len({task.id for task in self.tasks}) < len(self.tasks):
            raise TaskError(f"task source {name!r} uses an id twice", expected="distinct ids")

    def __len__(self) -> int:
        return len(self.tasks)

    def task(self, index: int) -> T:
        """Return task `index` (0-based).

        Raises:
            TaskError: If there is no such index.
        """
        if isinstance(index, bool) or not hasattr(index, "__index__") or not 0 <= index < len(self.tasks):
            raise TaskError(
                f"task source {self.name!r} has no such task",
                expected=f"an integer from 0 to {len(self.tasks) - 1}",
                got=repr(index),
            )
        return self.tasks[index]
