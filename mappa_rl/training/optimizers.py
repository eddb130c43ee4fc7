"""From settings to an optimiser."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn
from torch.optim import Optimizer

from envs_registry.extras import import_extra
from mappa_rl.config import TrainConfig


def make_optimizer(parameters: Sequence[nn.Parameter], config: TrainConfig) -> Optimizer:
    """Return the optimiser of one learner.

    Args:
        parameters: What it moves.
        config: The run; says which one, and its settings.

    Raises:
        ConfigError: If the one that it names is not installed.
    """
    optim = config.optim
    if optim.name == "adamw":
        kind: Callable[..., Optimizer] = torch.optim.AdamW
    else:
        kind = import_extra("bitsandbytes", "8bit", "optim.name=adamw_8bit").optim.AdamW8bit
    made: Optimizer = kind(parameters, lr=config.learning_rate, betas=optim.betas, weight_decay=optim.weight_decay)
    return made
