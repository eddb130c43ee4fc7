"""What an action's reward is made of: its verdict, its episode's outcome, or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mappa_rl.rollout.collector import Episode
from mappa_rl.rollout.row import Row


def mix_outcome(rows: Sequence[Row], episodes: Sequence[Episode], weight: float) -> list[Row]:
    """Return the rows with `(1 - weight) * verdict + weight * outcome` as their reward.

    A row whose verdict failed stays failed, and one whose episode's outcome is undecided becomes failed: half a
    reward would be a made-up one.

    Args:
        rows: As `rows_of(episodes)` gives them: `reward` is the verdict's.
        episodes: The episodes that `Row.episode` counts.
        weight: Share of the outcome's score (0 to 1) in the reward.
    """
    mixed = []
    for row in rows:
        transcript = episodes[row.episode].transcript
        outcome = transcript.outcome if transcript else None
        if row.status != "ok":
            mixed.append(row)
        elif outcome is None or outcome.success is None:
            mixed.append(replace(row, status="failed", reward=0.0))
        else:
            mixed.append(replace(row, reward=(1 - weight) * row.reward + weight * outcome.score))
    return mixed
