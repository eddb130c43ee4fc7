"""The record of an episode: turns, tool results, verdicts, outcome. Everything else reads it.

All classes are frozen and made of plain data, so that a transcript can be compared, pickled and written as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self, TypedDict

from envs_registry.errors import ConfigError

MIN_SCORE, MAX_SCORE = 0.0, 10.0


class Message(TypedDict):
    """One chat message, in the form that every chat template and endpoint takes."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave back for one piece of a turn."""

    tool: str
    """Name of the tool, e.g. `python`."""
    input: str
    """What was run."""
    status: Literal["ok", "error", "timeout", "timeout_killed", "died", "missing"]
    """`error`: the code raised; `timeout`: interrupted, state kept; `timeout_killed`, `died`: the kernel is
    gone; `missing`: the turn had nothing to run."""
    output: str
    """Text shown to the agent (capped; the cut is marked inside)."""
    truncated: bool = False
    """Whether output was dropped to keep the cap."""


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One file of the episode's workspace."""

    name: str
    """Path relative to the workspace, with `/`."""
    size: int
    """In bytes."""
    writer: str
    """Agent id that last wrote it, or `task` for what the task laid out."""
    turn: int | None
    """Index of the turn that last wrote it; None for the task's own files."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one verdict cost."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    money: float = 0.0
    """In the currency of the judge's price table."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's word on one turn. Build it with `Verdict.ok`, `Verdict.failed` or `Verdict.skipped`."""

    status: Literal["ok", "failed", "skipped"]
    """`failed`: the judge gave no usable score, the turn must not be trained on; `skipped`: not asked yet."""
    score: float | None
    """0 to 10, or None unless `ok`."""
    reward: float
    """`score / 10` when `ok`, else 0.0."""
    reason: str
    judge: str
    """Id of the judge."""
    cost: Cost = field(default=Cost(), compare=False)

    def __post_init__(self) -> None:
        if (self.status == "ok") != (self.score is not None):
            raise ConfigError("Verdict: a score belongs to status ok and to no other", got=repr(self))
        if self.score is not None and not MIN_SCORE <= self.score <= MAX_SCORE:
            raise ConfigError("Verdict: score out of range", expected="0 to 10", got=repr(self.score))

    @classmethod
    def ok(cls, score: float, reason: str, judge: str, cost: Cost | None = None) -> Self:
        """Give a usable score between 0 and 10; the reward is a tenth of it.

        Raises:
            ConfigError: If the score is out of range or not a number; it is never clamped.
        """
        return cls("ok", float(score), float(score) / MAX_SCORE, reason, judge, cost or Cost())

    @classmethod
    def failed(cls, reason: str, judge: str, cost: Cost | None = None) -> Self:
        """Say that no usable score could be had; the turn leaves the training batch and its statistics."""
        return cls("failed", None, 0.0, reason, judge, cost or Cost())

    @classmethod
    def skipped(cls, reason: str, judge: str) -> Self:
        """Say that this turn is not scored by itself."""
        return cls("skipped", None, 0.0, reason, judge)

    def public(self) -> dict[str, Any]:
        """Return the plain dict that `infos[agent]["verdict"]` carries: no cost, no clock."""
        return {k: v for k, v in asdict(self).items() if k != "cost"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the team did on the task, from ground truth."""

    success: bool | None
    """None when the grader could not decide; never silently one of the other two."""
    score: float
    """0 (worst) to 1 (best); 0.0 when undecided."""
    reason: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Turn:
    """One action with what its agent saw, what its tools gave and what the judge said."""

    index: int
    """0-based place in the episode."""
    layer: int
    """0-based index of the layer it was taken in; turns of one layer did not see each other."""
    agent: str
    role: str
    messages: tuple[Message, ...]
    """The exact chat that the agent saw."""
    action: str
    tools: tuple[ToolResult, ...]
    verdict: Verdict
    files: tuple[FileRecord, ...] = ()
    """The workspace after the turn, by name; empty in environments without shared files."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the environment's inspector found out about those files, as plain JSON."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """The ordered turns of one episode."""

    env_id: str
    topology: str
    task_id: str
    task_kind: str
    seed: int | None
    sandbox_level: int | None
    """Isolation level that agent code ran at (3 full .. 0 none); None when no code ran."""
    turns: tuple[Turn, ...] = ()
    outcome: Outcome | None = None
    """None until the episode has ended."""
    final_verdicts: tuple[Verdict, ...] | None = None
    """One per turn, from a judge that scores whole episodes; None when each turn was scored as it was taken."""

    def verdict(self, index: int) -> Verdict:
        """Return the verdict to learn from for turn `index`: the final one where there is one."""
        return (self.final_verdicts or tuple(t.verdict for t in self.turns))[index]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data; `from_json` is its inverse."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build a transcript from what `to_json` returned.

        Args:
            data: The decoded JSON object.

        Raises:
            ConfigError: If a field is missing or unknown.
        """
        try:
            plain = dict(data)
            plain["turns"] = tuple(_turn(t) for t in plain["turns"])
            plain["outcome"] = Outcome(**plain["outcome"]) if plain["outcome"] else None
            finals = plain["final_verdicts"]
            plain["final_verdicts"] = tuple(_verdict(v) for v in finals) if finals is not None else None
            return cls(**plain)
        except (KeyError, TypeError) as error:
            raise ConfigError(
                "not a transcript", expected="the JSON that Transcript.to_json writes", got=str(error)
            ) from error


def _verdict(data: Mapping[str, Any]) -> Verdict:
    return Verdict(**{**data, "cost": Cost(**data["cost"])})


def _turn(data: Mapping[str, Any]) -> Turn:
    fields = dict(data)
    fields["messages"] = tuple(fields["messages"])
    fields["tools"] = tuple(ToolResult(**t) for t in fields["tools"])
    fields["verdict"] = _verdict(fields["verdict"])
    fields["files"] = tuple(FileRecord(**f) for f in fields.get("files", ()))
    return Turn(**fields)
