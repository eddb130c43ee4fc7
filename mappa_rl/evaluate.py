"""How good a team is: success on held-out tasks with a 95 % interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import numpy as np

from mappa_rl.errors import TrainingError
from mappa_rl.policy.base import Sampling
from mappa_rl.rollout.collector import Collector, Episode, EpisodeSpec, derive_seed

_RESAMPLES = 4000
_Z95 = 1.959964


@dataclass(frozen=True, slots=True)
class Interval:
    """A share with its 95 % interval, all from 0 to 1."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f} % (95 % interval {100 * self.low:.1f} to {100 * self.high:.1f})"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of playing held-out tasks."""

    success: Interval
    tasks: int
    samples: int
    """Episodes per task."""
    undecided: int
    """Episodes whose outcome the grader could not decide; they count as no success."""
    failed: int
    """Episodes that the sandbox lost; they count in no number."""
    scores: dict[str, float]
    """Mean judge score (0-10) per agent over usable verdicts."""
    by_kind: dict[str, float]
    """Success per task kind."""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build an evaluation from what `to_json` returned; keys that are not its own are left out."""
        own = {field.name: data[field.name] for field in fields(cls)}
        return cls(**{**own, "success": Interval(**own["success"])})


def success_interval(successes: Sequence[Sequence[bool]], *, seed: int = 0) -> Interval:
    """Return mean success with a 95 % interval by bootstrap over tasks.

    Samples of one task are not independent, so whole tasks are drawn (percentile bootstrap). Where every sample agrees
    a bootstrap has no width, and Wilson's interval over tasks is given instead (Wilson 1927).

    Args:
        successes: Per task, the outcome of each of its samples; at least one task with at least one sample.
        seed: Seed of the bootstrap.

    Raises:
        TrainingError: If there is nothing to evaluate.
    """
    shares = np.array([np.mean(task) for task in successes if len(task)])
    if not len(shares):
        raise TrainingError("nothing to evaluate", expected="at least one finished episode", got="none")
    mean = float(shares.mean())
    if mean in (0.0, 1.0):
        return _wilson(mean, len(shares))
    draws = np.random.default_rng(seed).integers(0, len(shares), size=(_RESAMPLES, len(shares)))
    low, high = np.quantile(shares[draws].mean(axis=1), [0.025, 0.975])
    return Interval(mean, float(low), float(high))


def _wilson(mean: float, n: int) -> Interval:
    centre = (mean + _Z95**2 / (2 * n)) / (1 + _Z95**2 / n)
    half = _Z95 / (1 + _Z95**2 / n) * float(np.sqrt(mean * (1 - mean) / n + _Z95**2 / (4 * n**2)))
    return Interval(mean, max(0.0, centre - half), min(1.0, centre + half))


def eval_specs(tasks: int, samples: int, size: int | None) -> list[EpisodeSpec]:
    """Return the episodes of an evaluation: tasks 0 to `tasks - 1` (all there are, if fewer), `samples` times each."""
    count = tasks if size is None else min(tasks, size)
    return [EpisodeSpec(task_index=i, group=i, seed=s) for i in range(count) for s in range(samples)]


def evaluate(
    collector: Collector, specs: Sequence[EpisodeSpec], sampling: Sampling, *, seed: int
) -> tuple[Evaluation, list[Episode]]:
    """Play the episodes and summarise them.

    Args:
        collector: Plays on the held-out split.
        specs: See `eval_specs`.
        sampling: How the policy samples.
        seed: The same specs, policy and seed give the same result.

    Raises:
        TrainingError: If no episode came to its end.
    """
    episodes = collector.collect(specs, sampling, seed=derive_seed(seed, 0xE7A1))
    return summarise(episodes), episodes


def summarise(episodes: Sequence[Episode]) -> Evaluation:
    """Summarise played episodes; see `Evaluation`.

    Raises:
        TrainingError: If no episode came to its end.
    """
    successes: dict[int, list[bool]] = {}
    kinds: dict[str, list[bool]] = {}
    scores: dict[str, list[float]] = {}
    undecided = 0
    for episode in episodes:
        transcript = episode.transcript
        if transcript is None or transcript.outcome is None:
            continue
        won = bool(transcript.outcome.success)
        undecided += transcript.outcome.success is None
        successes.setdefault(episode.spec.task_index, []).append(won)
        kinds.setdefault(transcript.task_kind, []).append(won)
        for turn in transcript.turns:
            score = transcript.verdict(turn.index).score
            if score is not None:
                scores.setdefault(turn.agent, []).append(score)
    per_task = list(successes.values())
    return Evaluation(
        success=success_interval(per_task),
        tasks=len(per_task),
        samples=max(len(task) for task in per_task),
        undecided=undecided,
        failed=sum(episode.transcript is None for episode in episodes),
        scores={agent: float(np.mean(values)) for agent, values in sorted(scores.items())},
        by_kind={kind: float(np.mean(values)) for kind, values in sorted(kinds.items())},
    )
