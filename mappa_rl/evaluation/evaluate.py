"""How good a team is on held-out tasks: success, pass@k, majority vote, and which agent went wrong first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from fractions import Fraction
from typing import Any, Self

import numpy as np

from mappa_envs.transcript import MAX_SCORE, Transcript
from mappa_rl.errors import EvaluationError
from mappa_rl.evaluation.episode_log import EpisodeLog
from mappa_rl.evaluation.records import EpisodeRecord
from mappa_rl.evaluation.stats import (
    Interval,
    PairedComparison,
    mean_interval,
    paired_comparison,
    pass_at_k,
    success_interval,
)
from mappa_rl.evaluation.votes import majority_vote
from mappa_rl.policy.base import Sampling
from mappa_rl.rollout.collector import Collector, EpisodeSpec, derive_seed

_EVALUATION = 0xE7A1

NO_AGENT, UNCLEAR = "no agent", "unclear"
"""Keys of `Evaluation.faults` for failed episodes in which every action got full score, and for those whose verdicts
do not tell."""

OnProgress = Callable[[int, int], None]
"""Called with the episodes that are done and those that there are."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """How the team did on one task."""

    index: int
    kind: str
    samples: int
    """Episodes that came to their end."""
    successes: int
    undecided: int
    """Episodes that the grader could not decide; they count as no success."""
    majority: bool | None
    """Whether the majority vote is right; None where episodes have no final answer to vote with."""


@dataclass(frozen=True, slots=True)
class AgentResult:
    """How one agent did in the episodes that came to their end."""

    turns: int
    score: float | None
    """Mean judge score (0-10) over usable verdicts; None where there is none."""
    failed: float
    """Share of its turns for which the judge failed to give a score."""
    truncated: float
    """Share of its actions that were cut off at the token limit."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of playing held-out tasks."""

    success: Interval
    """Mean over tasks of the share of successful samples: avg@k for k samples per task."""
    tasks: int
    samples: int
    """Episodes per task."""
    undecided: int
    """Episodes whose outcome the grader could not decide; they count as no success."""
    failed: int
    """Episodes that the sandbox lost; they count in no number."""
    pass_at: dict[int, Interval]
    """pass@k by k (1, 2, 4, ... and all samples), each over the tasks that have at least k finished samples."""
    majority: Interval | None
    """Success of the majority vote over all samples of a task; None where episodes have no final answers."""
    agents: dict[str, AgentResult]
    """In the order in which they first act."""
    faults: dict[str, int]
    """For each agent, in how many failed episodes it was the first to get less than full score; see `first_fault`."""
    by_kind: dict[str, float]
    """Success per task kind."""
    by_task: dict[str, TaskResult] = field(repr=False)
    """By task id, in the order of the evaluation."""

    @property
    def scores(self) -> dict[str, float]:
        """Mean judge score (0-10) per agent over usable verdicts."""
        return {name: agent.score for name, agent in self.agents.items() if agent.score is not None}

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data; `from_json` is its inverse."""
        data = asdict(self)
        return {**data, "pass_at": {str(k): value for k, value in data["pass_at"].items()}}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build an evaluation from what `to_json` returned; keys that are not its own are left out.

        Raises:
            EvaluationError: If a key is missing or has the wrong form.
        """
        try:
            own = {item.name: data[item.name] for item in fields(cls)}
            own["success"] = Interval(**own["success"])
            own["pass_at"] = {int(k): Interval(**value) for k, value in own["pass_at"].items()}
            own["majority"] = Interval(**own["majority"]) if own["majority"] is not None else None
            own["agents"] = {name: AgentResult(**value) for name, value in own["agents"].items()}
            own["by_task"] = {task: TaskResult(**value) for task, value in own["by_task"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EvaluationError(
                "not the result of an evaluation", expected="the JSON that Evaluation.to_json writes", got=repr(error)
            ) from error
        return cls(**own)


def eval_specs(tasks: int, samples: int, size: int | None) -> list[EpisodeSpec]:
    """Return the episodes of an evaluation: tasks 0 to `tasks - 1` (all there are, if fewer), `samples` times each."""
    count = tasks if size is None else min(tasks, size)
    return [EpisodeSpec(task_index=i, group=i, seed=s) for i in range(count) for s in range(samples)]


def evaluate(
    collector: Collector,
    specs: Sequence[EpisodeSpec],
    sampling: Sampling,
    *,
    seed: int,
    log: EpisodeLog | None = None,
    on_progress: OnProgress | None = None,
) -> tuple[Evaluation, list[EpisodeRecord]]:
    """Play the episodes and summarise them.

    Episodes are played in chunks of the collector's concurrency, each with a seed of its own, so that the result does
    not depend on how many of them a log already holds.

    Args:
        collector: Plays on the held-out split.
        specs: See `eval_specs`.
        sampling: How the policy samples.
        seed: The same specs, policy, concurrency and seed give the same result.
        log: Holds episodes that are done, and gets each chunk as it finishes.
        on_progress: Hears of each chunk.

    Raises:
        TrainingError: If no episode came to its end.
        EvaluationError: If the log is of chunks of another size.
    """
    chunk = collector.concurrency
    if log is not None and log.chunk != chunk:
        raise EvaluationError("the log has other chunks", expected=f"chunks of {chunk}", got=f"chunks of {log.chunk}")
    records = list(log.records) if log is not None else []
    for start in range(len(records), len(specs), chunk):
        made = play_chunk(collector, specs[start : start + chunk], sampling, seed=seed, start=start)
        if log is not None:
            log.append(made)
        records += made
        if on_progress is not None:
            on_progress(len(records), len(specs))
    return summarise(records), records


def play_chunk(
    collector: Collector, specs: Sequence[EpisodeSpec], sampling: Sampling, *, seed: int, start: int
) -> list[EpisodeRecord]:
    """Play some episodes of an evaluation.

    Args:
        collector: Plays on the held-out split.
        specs: The episodes, at most the collector's concurrency.
        sampling: How the policy samples.
        seed: The evaluation's.
        start: Place of the first one in the evaluation.
    """
    episodes = collector.collect(specs, sampling, seed=derive_seed(seed, _EVALUATION, start))
    return [EpisodeRecord.of(episode) for episode in episodes]


def summarise(records: Sequence[EpisodeRecord]) -> Evaluation:
    """Summarise played episodes; see `Evaluation`.

    Raises:
        TrainingError: If no episode came to its end.
    """
    tasks: dict[int, list[Transcript]] = {}
    for record in sorted(records, key=lambda r: (r.task_index, r.sample)):
        if record.transcript is not None and record.transcript.outcome is not None:
            tasks.setdefault(record.task_index, []).append(record.transcript)
    by_task = {episodes[0].task_id: _task_result(index, episodes) for index, episodes in tasks.items()}
    results = list(by_task.values())
    shares = [task.successes / task.samples for task in results]
    success = mean_interval(shares)
    samples = max(task.samples for task in results)
    votes = [task.majority for task in results if task.majority is not None]
    return Evaluation(
        success=success,
        tasks=len(results),
        samples=samples,
        undecided=sum(task.undecided for task in results),
        failed=sum(record.transcript is None for record in records),
        pass_at={
            k: mean_interval([pass_at_k(t.samples, t.successes, k) for t in results if t.samples >= k])
            for k in _draw_sizes(samples)
        },
        majority=mean_interval([float(vote) for vote in votes]) if votes else None,
        agents=_agent_results(records),
        faults=_faults([episode for episodes in tasks.values() for episode in episodes]),
        by_kind={
            kind: float(np.mean([share for share, t in zip(shares, results, strict=True) if t.kind == kind]))
            for kind in sorted({task.kind for task in results})
        },
        by_task=by_task,
    )


def first_fault(transcript: Transcript) -> str:
    """Return the agent that went wrong first in a failed episode, by the facts of its verdicts.

    It is the agent of the first turn with less than full score. An agent whose code failed is named even if it
    repaired it later.

    Returns:
        `NO_AGENT` if every action got full score; `UNCLEAR` if an earlier turn has no usable score, or if all turns
        share one verdict on the whole episode, which says nothing about who.
    """
    verdicts = [transcript.verdict(turn.index) for turn in transcript.turns]
    finals = transcript.final_verdicts
    if finals is not None and len(finals) > 1 and len({v.score for v in finals}) == 1:
        return UNCLEAR
    for turn, verdict in zip(transcript.turns, verdicts, strict=True):
        if verdict.score is None:
            return UNCLEAR
        if verdict.score < MAX_SCORE:
            return turn.agent
    return NO_AGENT


def compare(policy: Evaluation, baseline: Evaluation) -> PairedComparison:
    """Compare two evaluations on the same tasks, task by task; see `paired_comparison`.

    A task of which one side lost every episode is left out.

    Raises:
        TrainingError: If they have no task in common.
    """
    shared = [task for task in policy.by_task if task in baseline.by_task]
    return paired_comparison([(_share(policy.by_task[task]), _share(baseline.by_task[task])) for task in shared])


def _share(task: TaskResult) -> Fraction:
    return Fraction(task.successes, task.samples)


def _draw_sizes(samples: int) -> list[int]:
    """Return 1, 2, 4, ... up to `samples`, and `samples`."""
    return sorted({2**i for i in range(samples.bit_length()) if 2**i <= samples} | {samples})


def _task_result(index: int, episodes: Sequence[Transcript]) -> TaskResult:
    outcomes = [episode.outcome for episode in episodes if episode.outcome is not None]
    majority = None
    if any("answer" in outcome.details for outcome in outcomes):
        winner = majority_vote([outcome.details.get("answer") for outcome in outcomes])
        majority = winner is not None and bool(outcomes[winner].success)
    return TaskResult(
        index=index,
        kind=episodes[0].task_kind,
        samples=len(outcomes),
        successes=sum(bool(outcome.success) for outcome in outcomes),
        undecided=sum(outcome.success is None for outcome in outcomes),
        majority=majority,
    )


def _agent_results(records: Sequence[EpisodeRecord]) -> dict[str, AgentResult]:
    scores: dict[str, list[float]] = {}
    failed: Counter[str] = Counter()
    cut: Counter[str] = Counter()
    turns: Counter[str] = Counter()
    for record in records:
        transcript = record.transcript
        if transcript is None or transcript.outcome is None:
            continue
        for turn, truncated in zip(transcript.turns, record.truncated, strict=True):
            verdict = transcript.verdict(turn.index)
            turns[turn.agent] += 1
            failed[turn.agent] += verdict.status == "failed"
            cut[turn.agent] += truncated
            if verdict.score is not None:
                scores.setdefault(turn.agent, []).append(verdict.score)
    return {
        agent: AgentResult(
            turns=count,
            score=float(np.mean(scores[agent])) if agent in scores else None,
            failed=failed[agent] / count,
            truncated=cut[agent] / count,
        )
        for agent, count in turns.items()
    }


def _faults(episodes: Sequence[Transcript]) -> dict[str, int]:
    """Count `first_fault` over the failed episodes, for every agent that acted in any episode."""
    agents = dict.fromkeys(turn.agent for episode in episodes for turn in episode.turns)
    lost = [episode for episode in episodes if episode.outcome is not None and episode.outcome.success is False]
    counts = Counter(first_fault(episode) for episode in lost)
    return {key: counts[key] for key in (*agents, NO_AGENT, UNCLEAR) if key in agents or counts[key]}


__all__ = [
    "AgentResult",
    "Evaluation",
    "Interval",
    "TaskResult",
    "compare",
    "eval_specs",
    "evaluate",
    "first_fault",
    "success_interval",
    "summarise",
]
