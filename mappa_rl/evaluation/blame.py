"""Blame matrix: what each role's score loses when one role of a scripted team commits a fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mappa_envs.tasks.base import TaskSource
from mappa_envs.tasks.tabular.base import TabularTask
from mappa_envs.team_env import TeamEnv
from mappa_envs.transcript import Transcript
from mappa_rl.errors import EvaluationError
from mappa_rl.policy.base import Sampling
from mappa_rl.policy.data_sabotage import SABOTAGES, sabotaged
from mappa_rl.rollout.collector import Collector, EpisodeSpec

TOLERANCE = 1.0
"""Points that an innocent role may lose."""

Scores = Mapping[str, float]
"""Mean score of a role's turns, by role."""


@dataclass(frozen=True, slots=True)
class Case:
    """One fault on one task."""

    fault: str
    culprit: str
    task: str
    clean: Scores
    """Of the honest team."""
    scores: Scores

    @property
    def right(self) -> bool:
        """Whether the culprit has the lowest score, and nobody else lost more than `TOLERANCE`."""
        innocent = [role for role in self.scores if role != self.culprit]
        lowest = all(self.scores[self.culprit] < self.scores[role] for role in innocent)
        return lowest and all(self.scores[role] >= self.clean[role] - TOLERANCE for role in innocent)


def blame_cases(
    make_env: Callable[[], TeamEnv],
    tasks: TaskSource,
    indices: Sequence[int],
    *,
    faults: Sequence[str] = tuple(SABOTAGES),
    quick: bool = True,
    concurrency: int = 2,
) -> Iterator[Case]:
    """Play the honest team and every fault on every task, and yield the cases as they come.

    Args:
        make_env: Makes an environment on `tasks`, with the judge to examine.
        tasks: Where the tasks come from.
        indices: Which tasks.
        faults: Keys of `SABOTAGES`.
        quick: Have the team try one kind of model only.
        concurrency: Episodes at the same time.

    Raises:
        EvaluationError: If an episode was lost, or a turn has no score.
    """
    given = [task for task in map(tasks.task, indices) if isinstance(task, TabularTask)]
    specs = [EpisodeSpec(task_index=index, group=group) for group, index in enumerate(indices)]

    def play(fault: str | None) -> list[Scores]:
        collector = Collector(make_env, sabotaged(given, fault, quick=quick), concurrency=concurrency)
        episodes = collector.collect(specs, Sampling(), seed=0)
        collector.close()
        if any(episode.transcript is None for episode in episodes):
            raise EvaluationError("an episode was lost", got="; ".join(filter(None, (e.failure for e in episodes))))
        return [role_scores(episode.transcript) for episode in episodes if episode.transcript is not None]

    clean = play(None)
    for fault in faults:
        for task, honest, scores in zip(given, clean, play(fault), strict=True):
            yield Case(fault, SABOTAGES[fault].role, task.id, honest, scores)


def role_scores(transcript: Transcript) -> Scores:
    """Return the mean score of each role's turns.

    Raises:
        EvaluationError: If a turn has no score.
    """
    by_role: dict[str, list[float]] = {}
    for turn in transcript.turns:
        score = transcript.verdict(turn.index).score
        if score is None:
            raise EvaluationError(f"turn {turn.index} has no score", got=transcript.verdict(turn.index).reason)
        by_role.setdefault(turn.role, []).append(score)
    return {role: float(np.mean(scores)) for role, scores in by_role.items()}


def blame_table(cases: Sequence[Case]) -> str:
    """Return the cases as a Markdown table: each role's score, and its difference to the honest team's."""
    roles = list(cases[0].scores)
    lines = [f"| fault | culprit | task | {' | '.join(roles)} | right |", "|---" * (len(roles) + 4) + "|"]
    right = sum(case.right for case in cases)
    summary = f"In {right} of {len(cases)} cases the culprit has the lowest score and nobody else is hit."
    return "\n".join([*lines, *map(blame_row, cases), "", summary])


def blame_row(case: Case) -> str:
    """Return one line of the table."""
    cells = [f"{score:.1f} ({score - case.clean[role]:+.1f})" for role, score in case.scores.items()]
    return f"| {case.fault} | {case.culprit} | {case.task} | {' | '.join(cells)} | {'yes' if case.right else 'NO'} |"
