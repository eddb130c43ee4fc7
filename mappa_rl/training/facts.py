"""What a step's numbers and decisions need of its episodes: small enough for processes to exchange."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mappa_envs.transcript import MAX_SCORE
from mappa_rl.rollout.collector import Episode
from mappa_rl.rollout.row import Row

BINS = 10
"""Bins of a score histogram, each a score wide; the last one holds 10 too."""


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """One action."""

    agent: str
    turn: int
    """Its index in the episode."""
    score: float | None
    """The judge's, 0 to 10; None without a usable verdict."""
    failure: str | None
    """Why there is no reward to learn from; None where there is one, or where none was due."""
    truncated: bool
    trainable: bool
    tokens: int
    """Tokens of the action."""
    logprob: float
    """Log-probability of the whole action under the sampling distribution, in nats."""


@dataclass(frozen=True, slots=True)
class EpisodeFacts:
    """One episode."""

    position: int
    """Place in the step."""
    lost: str | None
    """Why the sandbox lost it; None for an episode that came to its end."""
    success: bool | None
    """None if the grader could not decide, or it was lost."""
    turns: tuple[TurnFacts, ...] = ()


def facts_of(position: int, episode: Episode, judged: Sequence[Row], rows: Sequence[Row]) -> EpisodeFacts:
    """Return the facts of an episode.

    Args:
        position: Its place in the step.
        episode: As it was played.
        judged: Its rows with the verdicts' rewards.
        rows: The same with the rewards to learn from; a row that failed only here has an undecided outcome.
    """
    transcript = episode.transcript
    if transcript is None:
        return EpisodeFacts(position, episode.failure, None)
    outcome = transcript.outcome
    turns = []
    for verdict_row, row in zip(judged, rows, strict=True):
        failure = None
        if verdict_row.status == "failed":
            failure = transcript.verdict(row.turn).reason
        elif row.status == "failed":
            failure = f"outcome undecided: {outcome.reason if outcome else 'none'}"
        turns.append(
            TurnFacts(
                agent=row.agent,
                turn=row.turn,
                score=MAX_SCORE * verdict_row.reward if verdict_row.status == "ok" else None,
                failure=failure,
                truncated=row.truncated,
                trainable=row.trainable,
                tokens=len(row.response_ids),
                logprob=float(np.sum(row.logprobs)),
            )
        )
    return EpisodeFacts(position, None, outcome.success if outcome else None, tuple(turns))


def rollout_metrics(step: int, episodes: Sequence[EpisodeFacts]) -> dict[str, Any]:
    """Return the numbers of one step's rollouts.

    Per agent: `score` (mean, 0 to 10), `scores` (how many in each bin of one), `failed` and `truncated` (shares),
    `tokens` (mean length) and `entropy`: nats per token at the sampling temperature, estimated by the mean of
    `-log p` over the tokens that are trained on.
    """
    ended = [episode for episode in episodes if episode.lost is None]
    record: dict[str, Any] = {
        "step": step,
        "episodes": len(episodes),
        "lost_episodes": len(episodes) - len(ended),
        "success": float(np.mean([bool(e.success) for e in ended])) if ended else 0.0,
        "undecided": sum(e.success is None for e in ended),
    }
    by_agent: dict[str, list[TurnFacts]] = {}
    for turn in (turn for episode in ended for turn in episode.turns):
        by_agent.setdefault(turn.agent, []).append(turn)
    for agent, turns in by_agent.items():
        record |= {f"{name}/{agent}": value for name, value in _agent_metrics(turns).items()}
    return record


def _agent_metrics(turns: Sequence[TurnFacts]) -> Mapping[str, Any]:
    made: dict[str, Any] = {}
    scores = [turn.score for turn in turns if turn.score is not None]
    if scores:
        made["score"] = float(np.mean(scores))
        made["scores"] = np.histogram(scores, bins=BINS, range=(0, MAX_SCORE))[0].tolist()
    made["failed"] = sum(turn.failure is not None for turn in turns) / len(turns)
    made["truncated"] = sum(turn.truncated for turn in turns) / len(turns)
    made["tokens"] = float(np.mean([turn.tokens for turn in turns]))
    trained = [turn for turn in turns if turn.trainable and turn.tokens]  # a script writes no tokens
    if trained:
        made["entropy"] = -sum(turn.logprob for turn in trained) / sum(turn.tokens for turn in trained)
    return made
