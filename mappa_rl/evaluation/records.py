"""The record of a played episode: all that an evaluation needs to know of it, as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from mappa_envs.transcript import Transcript
from mappa_rl.errors import EvaluationError
from mappa_rl.rollout.collector import Episode

_KEYS = {"task_index", "sample", "truncated", "prompt_tokens", "response_tokens", "failure", "transcript"}


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """One episode of an evaluation."""

    task_index: int
    sample: int
    """Number of the sample of this task, from 0."""
    transcript: Transcript | None
    """None when the sandbox failed."""
    truncated: tuple[bool, ...] = ()
    """Per turn, whether the action was cut off at the token limit."""
    prompt_tokens: tuple[int, ...] = ()
    """Per turn, the tokens that the model read; 0 for policies without tokens."""
    response_tokens: tuple[int, ...] = ()
    """Per turn, the tokens that it wrote."""
    failure: str | None = None
    """Why the episode was lost."""

    @classmethod
    def of(cls, episode: Episode) -> Self:
        """Return the record of an episode that was just played."""
        samples = episode.samples if episode.transcript else []
        return cls(
            task_index=episode.spec.task_index,
            sample=episode.spec.seed,
            transcript=episode.transcript,
            truncated=tuple(sample.truncated for sample in samples),
            prompt_tokens=tuple(len(sample.prompt_ids) for sample in samples),
            response_tokens=tuple(len(sample.response_ids) for sample in samples),
            failure=episode.failure,
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data; `from_json` is its inverse."""
        return {
            "task_index": self.task_index,
            "sample": self.sample,
            "truncated": list(self.truncated),
            "prompt_tokens": list(self.prompt_tokens),
            "response_tokens": list(self.response_tokens),
            "failure": self.failure,
            "transcript": self.transcript.to_json() if self.transcript else None,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build a record from what `to_json` returned.

        Raises:
            EvaluationError: If it is not such data.
            ConfigError: If the transcript in it is not one.
        """
        if not isinstance(data, Mapping) or set(data) != _KEYS:
            raise EvaluationError(
                "not the record of an episode", expected=", ".join(sorted(_KEYS)), got=repr(data)[:80]
            )
        transcript = data["transcript"]
        return cls(
            task_index=data["task_index"],
            sample=data["sample"],
            transcript=None if transcript is None else Transcript.from_json(transcript),
            truncated=tuple(data["truncated"]),
            prompt_tokens=tuple(data["prompt_tokens"]),
            response_tokens=tuple(data["response_tokens"]),
            failure=data["failure"],
        )
