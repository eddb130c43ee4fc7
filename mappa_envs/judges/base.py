"""What a judge is: async, batched, and honest about failure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from mappa_envs.errors import JudgeError
from mappa_envs.tasks.base import Task
from mappa_envs.transcript import FileRecord, Message, Outcome, ToolResult, Transcript, Turn, Verdict


@dataclass(frozen=True, slots=True)
class Hindsight:
    """What is known of a turn only after the episode."""

    outcome: Outcome
    later: tuple[Turn, ...]
    """The turns of later layers, oldest first, each with the verdict that hindsight gave it."""


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
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the environment's inspector found out about those files; without what took the hidden answer where that is
    not shown."""
    choices: Mapping[str, str] = field(default_factory=dict)
    """The duties of the roles that a hub may pick from, by name; empty for other roles."""
    hindsight: Hindsight | None = None
    """What came after, where the turn is judged when the episode is over; else None."""


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

    async def score_episode(self, transcript: Transcript, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Give one verdict per turn of a finished episode; only asked of judges whose `scope` is `episode`.

        Args:
            transcript: The episode with its outcome.
            requests: What a judge of turns would have been asked, one per turn.
        """
        raise NotImplementedError(f"{type(self).__name__} scores turns, not episodes")

    def commit(self) -> None:
        """Take what was scored since the last call into account from now on; trainers call it after each step.

        Between two calls a judge's verdicts depend on the requests alone, whatever the order in which they come.
        """
        return

    def state(self) -> dict[str, Any]:
        """Return what was committed, as plain JSON, for a checkpoint; empty for judges that remember nothing."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to what `state` returned; what was not committed is forgotten."""
        return


def checked(judge: Judge, verdicts: list[Verdict], wanted: int) -> list[Verdict]:
    """Return what a judge gave, if it gave one verdict per turn.

    Raises:
        JudgeError: If it gave more or fewer.
    """
    if len(verdicts) != wanted:
        raise JudgeError(
            f"judge {judge.id!r} broke its contract",
            expected=f"{wanted} verdicts",
            got=f"{len(verdicts)}",
            fix="return one verdict per turn, Verdict.failed where there is no score",
        )
    return verdicts
