"""The training row: one action of one agent, in the exact tokens that were sampled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Row:
    """One action. Text is never tokenised again: these are the ids that the model read and wrote."""

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    """Sampled ids, the end-of-turn token included where it was sampled. At least one."""
    logprobs: tuple[float, ...]
    """Log-probability of each response id under the sampling distribution (temperature included)."""
    reward: float
    """Final reward of the action, 0 to 1 for judge scores (score / 10)."""
    agent: str
    """PettingZoo agent id, e.g. `solver_0`."""
    role: str
    status: Literal["ok", "failed", "skipped"]
    """Status of the verdict; only `ok` rows are trained on and enter statistics."""
    truncated: bool
    """The response hit the token limit before its end-of-turn token; such rows are not trained on either."""
    episode: int
    """Index of the episode within its batch."""
    group: int
    """Episodes of one group were played on the same task (group baselines compare within it)."""
    turn: int
    """Index of the turn within its episode."""
    kind: str
    """Task kind, for statistics per task type."""
    outcome: float
    """Score of the episode's outcome, 0 to 1."""

    @property
    def trainable(self) -> bool:
        """Whether the row enters the loss and the statistics."""
        return self.status == "ok" and not self.truncated


def micro_batches(rows: Sequence[Row], order: Sequence[int], micro_tokens: int) -> Iterator[list[int]]:
    """Group row indexes, similar lengths together, so that each group padded holds at most `micro_tokens` tokens.

    Args:
        rows: All rows of the batch.
        order: Indexes to group.
        micro_tokens: Limit on rows times longest sequence; a single longer row is a group of its own.
    """

    def length(i: int) -> int:
        return len(rows[i].prompt_ids) + len(rows[i].response_ids)

    group: list[int] = []
    for index in sorted(order, key=lambda i: (length(i), i)):
        if group and (len(group) + 1) * length(index) > micro_tokens:
            yield group
            group = []
        group.append(index)
    if group:
        yield group
