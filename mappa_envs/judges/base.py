"""What a judge is: async, batched, and honest about failure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from mappa_envs.tasks.base import Task
from mappa_envs.transcript import FileRecord, Message, ToolResult, Transcript, Turn, Verdict


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """All that a judge may look at for one turn."""

    task_prompt: str
    task_kind: str
    agent: str
    role: str
    duty: str
    """What the role is there for: `solve`, `compute`, `answer`, ...; rule judges choose their criteria by it."""
    messages: tuple[Message, ...]
    """What the agent saw."""
    action: str
    tools: tuple[ToolResult, ...]
    earlier: tuple[Turn, ...]
    """The turns before this one that a later layer can see; never the other turns of its own layer."""
    truth: Task | None
    """The task with its hidden answer when the environment's config allows this judge to see it, else None."""
    files: tuple[FileRecord, ...] = ()
    """The workspace after the action: names, sizes, and who wrote what when."""


class Judge(ABC):
    """Anything that gives verdicts."""

    id: str
    """Shown in every verdict; names the judge and its version."""
    scope: ClassVar[Literal["turn", "episode"]] = "turn"
    """`turn`: `score` is asked after each action; `episode`: `score_episode` is asked once, at the end."""

    @abstractmethod
    async def score(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Give one verdict per request, in order.

        A request that cannot be scored gets `Verdict.failed`; this method does not raise for it and never makes
        up a number.
        """

    async def score_episode(self, transcript: Transcript) -> list[Verdict]:
        """Give one verdict per turn of a finished episode; only asked of judges whose `scope` is `episode`."""
        raise NotImplementedError(f"{type(self).__name__} scores turns, not episodes")
