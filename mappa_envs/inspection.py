"""Environments whose agents work on files: what is laid out for them, and what is found out about their work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mappa_envs.tasks.base import Task
from mappa_envs.transcript import Outcome

GRADED = "graded"
"""The key of an inspector's facts that holds all that it took the hidden answers to find out."""


class Evidence(Protocol):
    """The workspace of an episode, for whoever looks into the agents' work."""

    async def read(self, name: str, max_bytes: int) -> bytes | None:
        """Return a file's content; None if it is missing, larger, or nothing that the host will read."""
        ...

    async def run_apart(
        self, code: str, files: Mapping[str, bytes], result: str, *, max_bytes: int, timeout: float
    ) -> bytes | None:
        """Run code in a fresh kernel and a fresh workspace, where no agent can reach it.

        Args:
            code: Python. What agents made is run only where it loads it.
            files: All that the workspace holds.
            result: Name of the file that the code writes.
            max_bytes: Largest result that is accepted.
            timeout: Seconds.

        Returns:
            The result; None if there is none. Where the code loads anything that agents made, it is theirs to forge.
        """
        ...


class Inspector(Protocol):
    """Looks into the work of one episode."""

    async def facts(self) -> Mapping[str, Any]:
        """Return plain JSON about the workspace as it is now; what took the hidden answers is under `GRADED`."""
        ...

    async def outcome(self) -> Outcome:
        """Decide from ground truth how the team did; asked once, at the end."""
        ...


@dataclass(frozen=True, slots=True)
class FileWork:
    """What a domain of files adds to the engine."""

    lay_out: Callable[[Task], Mapping[str, bytes]]
    """Returns the files that a task puts into the workspace."""
    inspector: Callable[[Task, Evidence], Inspector]
    """Makes the inspector of an episode."""


def without_graded(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what can be known without the hidden answers."""
    return {key: value for key, value in facts.items() if key != GRADED}
