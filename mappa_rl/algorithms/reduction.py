"""Sums over all training processes.

Statistics are exchanged as sums per key, so processes need not hold the same agents or groups, and a sum over
processes does not depend on how rows are spread over them (up to float64 rounding).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import torch.distributed as dist

Key = Hashable
Sums = Mapping[Key, tuple[float, ...]]
Reduce = Callable[[Sums], Sums]
"""Takes the sums of this process, returns the sums over all processes. Called equally often on each."""


def one_process(sums: Sums) -> Sums:
    """Return the sums of the only process."""
    return sums


def over_processes(group: Any = None) -> Reduce:
    """Return the reduction over a torch process group.

    Args:
        group: A `torch.distributed` process group; None is the default one, which must be initialised.
    """

    def reduce(sums: Sums) -> Sums:
        gathered: list[Sums | None] = [None] * dist.get_world_size(group)
        dist.all_gather_object(gathered, dict(sums), group=group)
        total: dict[Key, tuple[float, ...]] = {}
        for one in gathered:  # in rank order: every process gets the same bits
            for key, values in (one or {}).items():
                before = total.get(key, (0.0,) * len(values))
                total[key] = tuple(a + b for a, b in zip(before, values, strict=True))
        return total

    return reduce
