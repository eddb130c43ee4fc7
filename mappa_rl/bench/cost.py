"""What episodes cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from mappa_rl.evaluation.records import EpisodeRecord


@dataclass(frozen=True, slots=True)
class EpisodeCost:
    """Means per episode that came to its end."""

    actions: float
    prompt_tokens: float
    """Tokens that the models read, over all turns; a prompt that is read again counts again."""
    response_tokens: float
    """Tokens that they wrote."""
    judge_calls: float
    """Requests to a paid or local judge model; rule judges make none."""
    judge_tokens: float
    """Tokens that judge models read and wrote."""
    judge_money: float
    """In the currency of the judge's price table."""
    seconds: float | None
    """Wall time of the evaluation by its episodes; None where they were all played before the last start."""

    @property
    def tokens(self) -> float:
        """Tokens that the team read and wrote."""
        return self.prompt_tokens + self.response_tokens

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)


def episode_cost(records: Sequence[EpisodeRecord], seconds: float | None) -> EpisodeCost:
    """Return the mean cost of played episodes; lost ones are left out.

    Args:
        records: Episodes, at least one of them finished.
        seconds: Wall seconds per episode, if known.
    """
    finished = [(r, r.transcript) for r in records if r.transcript is not None]
    verdicts = [[t.verdict(turn.index).cost for turn in t.turns] for _, t in finished]
    return EpisodeCost(
        actions=float(np.mean([len(t.turns) for _, t in finished])),
        prompt_tokens=float(np.mean([sum(r.prompt_tokens) for r, _ in finished])),
        response_tokens=float(np.mean([sum(r.response_tokens) for r, _ in finished])),
        judge_calls=float(np.mean([sum(c.calls for c in costs) for costs in verdicts])),
        judge_tokens=float(np.mean([sum(c.prompt_tokens + c.completion_tokens for c in costs) for costs in verdicts])),
        judge_money=float(np.mean([sum(c.money for c in costs) for costs in verdicts])),
        seconds=seconds,
    )


def mean_cost(costs: Sequence[EpisodeCost]) -> EpisodeCost:
    """Return the mean of the costs of several runs of equally many episodes."""
    timed = [cost.seconds for cost in costs if cost.seconds is not None]
    means = {f.name: float(np.mean([getattr(cost, f.name) for cost in costs])) for f in _COUNTS}
    return EpisodeCost(**means, seconds=float(np.mean(timed)) if timed else None)


_COUNTS = [field for field in fields(EpisodeCost) if field.name != "seconds"]
