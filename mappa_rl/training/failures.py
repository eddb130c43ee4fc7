"""When training must not go on: too many failures, numbers that are none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mappa_rl.algorithms import TokenBatch
from mappa_rl.errors import MappaError, TrainingError
from mappa_rl.training.facts import EpisodeFacts


def check_failures(episodes: Sequence[EpisodeFacts], limit: float) -> None:
    """Stop when too many verdicts or episodes failed: numbers from the rest would mislead.

    Raises:
        TrainingError: If the share of failed verdicts or lost episodes is over `limit` (0 to 1).
    """
    lost = [episode.lost for episode in episodes if episode.lost is not None]
    turns = [turn for episode in episodes for turn in episode.turns]
    failed = [turn.failure for turn in turns if turn.failure is not None]
    for what, bad, total in (("episodes", lost, len(episodes)), ("verdicts", failed, len(turns))):
        if total and len(bad) / total > limit:
            raise TrainingError(
                f"{len(bad)} of {total} {what} failed",
                expected=f"at most {limit:.0%} (rollout.max_failed_share)",
                got=f"{len(bad) / total:.0%}; for example: {bad[0]}",
                fix="mend the judge or the sandbox, then resume",
            )


def save_batch(path: Path, batch: TokenBatch, advantages: Tensor | None, about: dict[str, Any]) -> None:
    """Write a batch that broke the learning, for `torch.load`.

    Args:
        path: A `.pt` file.
        batch: Its rows are written as dicts.
        advantages: `[rows, tokens]`, or None if they are what broke.
        about: Plain data that goes along, e.g. the step.
    """
    data = {
        **about,
        "rows": [asdict(row) for row in batch.rows],
        "old_logprobs": batch.old_logprobs.cpu(),
        "ref_logprobs": None if batch.ref_logprobs is None else batch.ref_logprobs.cpu(),
        "advantages": None if advantages is None else advantages.cpu(),
    }
    torch.save(data, path)


def with_batch(error: MappaError, path: Path) -> TrainingError:
    """Return an error that also says where the batch is."""
    return TrainingError(
        f"{error.what}; the batch is saved in {path}",
        expected=error.expected,
        got=error.got,
        fix=error.fix or "look at the batch: torch.load(path, weights_only=True)",
    )
