"""The metrics of table tasks: what a prediction looks like, which direction is better, and the value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

from mappa_envs.errors import ConfigError

Takes = Literal["labels", "scores", "probabilities", "numbers", "ranking"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    name: str
    title: str
    takes: Takes
    """What the prediction columns hold: a label; a number that is higher the likelier the positive class; one
    probability (of the positive class) or one per class; a number; labels, best first, separated by spaces."""
    greater_is_better: bool
    best: float
    worst: float
    """The other bound; infinite where there is none."""
    compute: Callable[..., float]


METRICS: MappingProxyType[str, Metric] = MappingProxyType({})


def get_metric(name: str) -> Metric:
    """Find a metric by name.

    Raises:
        ConfigError: If there is none of that name.
    """
    raise ConfigError("unknown metric", got=repr(name), expected=str(np.array(list(METRICS))))
