"""Baselines from the other samples of the same task: per-row statistics within a group.

All functions take `[rows]` tensors and give float64 `[rows]` tensors on the CPU. Only rows of `include`
enter.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mappa_rl.algorithms.advantages import number_keys, totals
from mappa_rl.algorithms.errors import GroupSizeError
from mappa_rl.algorithms.reduction import Reduce, one_process
from mappa_rl.rollout.row import Row


@dataclass(frozen=True)
class Moments:
    """What each row is compared with."""

    count: Tensor
    """Samples of the row's key."""
    mean: Tensor
    std: Tensor
    """Sample standard deviation (ddof 1, as GRPO implementations take it); 0 for a single sample."""


def check_groups(rows: Sequence[Row], reduce: Reduce, *, algorithm: str) -> None:
    """Refuse a batch in which no task was played twice: every advantage would be 0, for ever.

    Args:
        rows: All rows, the excluded ones too: a group that shrank because a judge failed is no user error.
        reduce: Sums over processes.
        algorithm: Name for the error.

    Raises:
        GroupSizeError: If every group has one episode.
    """
    episodes: dict[Hashable, set[int]] = {}
    for row in rows:
        episodes.setdefault(row.group, set()).add(row.episode)
    sums = reduce({group: (float(len(members)),) for group, members in episodes.items()})
    if sums and max(count for (count,) in sums.values()) < 2:
        raise GroupSizeError(
            f"{algorithm} compares several samples of the same task, and each task was played once",
            expected="at least 2 episodes per group",
            got=f"1 episode in each of {len(sums)} groups",
            fix="play each task at least twice (samples_per_task), or use reinforce_pp, which needs no group",
        )


def moments(values: Tensor, include: Tensor, keys: Sequence[Hashable], reduce: Reduce = one_process) -> Moments:
    """Return, for each row, count, mean and standard deviation of the included rows that share its key."""
    names, index = number_keys(keys)
    flat = _clean(values, include)
    weight = include.cpu().double()
    count, total = totals(names, [weight, flat], index, reduce)
    mean = (total / count.clamp(min=1))[index]
    (squares,) = totals(names, [(flat - mean).square() * weight], index, reduce)
    std = (squares / (count - 1).clamp(min=1)).sqrt()[index]
    return Moments(count[index], mean, std)


def episode_means(values: Tensor, include: Tensor, rows: Sequence[Row], keys: Sequence[Hashable]) -> Tensor:
    """Return, on the first row of each episode and key, the mean of its included rows; NaN elsewhere.

    An episode is played by one process, so this needs no reduction.
    """
    names, index = number_keys([(row.episode, key) for row, key in zip(rows, keys, strict=True)])
    weight = include.cpu().double()
    count, total = totals(names, [weight, _clean(values, include)], index, one_process)
    result = torch.full((len(rows),), torch.nan, dtype=torch.float64)
    places = index.tolist()
    for name in range(len(names)):
        first = places.index(name)
        result[first] = total[name] / count[name]  # NaN if none is included
    return result


def others_mean(
    values: Tensor,
    include: Tensor,
    rows: Sequence[Row],
    keys: Sequence[Hashable],
    reduce: Reduce = one_process,
) -> tuple[Tensor, Tensor]:
    """Return, per row, the mean of its key's included rows in other episodes, and if there are any.

    A later action of the same episode depends on the row's action, so it would bias the baseline.
    """
    names, index = number_keys(keys)
    own_names, own_index = number_keys([(row.episode, key) for row, key in zip(rows, keys, strict=True)])
    flat, weight = _clean(values, include), include.cpu().double()
    count, total = totals(names, [weight, flat], index, reduce)[:, index]
    own_count, own_total = totals(own_names, [weight, flat], own_index, one_process)[:, own_index]
    others = count - own_count
    some = (others > 0) & include.cpu()
    return torch.where(some, (total - own_total) / others.clamp(min=1), 0.0), some


def _clean(values: Tensor, include: Tensor) -> Tensor:
    """Float32 values (so that equal ones sum exactly) as float64, 0 where not included."""
    return torch.where(include.cpu(), values.detach().cpu().float().double(), 0.0)
