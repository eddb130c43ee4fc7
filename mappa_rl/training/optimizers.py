"""From settings to an optimiser."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.optim import Optimizer

from mappa_rl.config import TrainConfig
from mappa_rl.errors import ConfigError


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
        kind: type[Optimizer] = torch.optim.AdamW
    else:
        try:
            from bitsandbytes.optim.adamw import AdamW8bit as kind  # type: ignore[no-redef,unused-ignore]
        except ImportError as error:
            raise ConfigError(
                "optim.name=adamw_8bit needs bitsandbytes",
                expected="the package bitsandbytes",
                got=str(error),
                fix='pip install "mappa-gym[8bit]", or set optim.name=adamw',
            ) from error
    made: Optimizer = kind(  # type: ignore[call-arg]
        parameters, lr=config.learning_rate, betas=optim.betas, weight_decay=optim.weight_decay
    )
    return made
