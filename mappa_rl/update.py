"""One agent's optimiser steps on one batch of rows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from mappa_rl.algorithms import Algorithm, TokenBatch
from mappa_rl.config import OptimConfig
from mappa_rl.errors import TrainingError
from mappa_rl.policy.lora_team import LoraTeam
from mappa_rl.rollout.row import micro_batches


def update_agent(
    team: LoraTeam,
    optimizer: torch.optim.Optimizer,
    algorithm: Algorithm,
    batch: TokenBatch,
    advantages: Tensor,
    order: Sequence[int],
    *,
    agent: str,
    optim: OptimConfig,
    temperature: float,
) -> dict[str, float]:
    """Take the optimiser steps of one agent and return their mean metrics.

    The loss of an optimiser step is a mean over all of its tokens, however it is cut into micro-batches.

    Args:
        team: Whose adapter learns.
        optimizer: Of that adapter's parameters.
        algorithm: Gives the loss.
        batch: All rows of the step, of all agents.
        advantages: [rows, tokens].
        order: Indexes of the agent's trainable rows, shuffled; cut into `optim.minibatches` optimiser steps.
        agent: PettingZoo agent id.
        optim: Learning settings.
        temperature: The sampling temperature.

    Raises:
        TrainingError: If a loss or gradient is not finite; the adapter is left as it was before that step.
    """
    totals: dict[str, float] = {}
    parameters = team.parameters(agent)
    parts = [list(order[i :: optim.minibatches]) for i in range(min(optim.minibatches, len(order)))]
    for part in parts:
        total_tokens = batch.select(part).total_tokens()
        optimizer.zero_grad(set_to_none=True)
        for group in micro_batches(batch.rows, part, optim.micro_tokens):
            piece = batch.select(group)
            logprobs = team.logprobs(agent, piece.rows, temperature=temperature)
            output = algorithm.loss(logprobs, piece, batch.take(advantages, group), total_tokens=total_tokens)
            output.loss.backward()
            for name, value in output.metrics.items():
                totals[name] = totals.get(name, 0.0) + value / total_tokens / len(parts)
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, optim.clip_norm))
        if not torch.isfinite(torch.tensor(norm)):
            raise TrainingError(
                f"the gradient of {agent!r} is not finite",
                got=f"norm {norm}",
                fix="lower optim.lr or use policy.dtype=float32",
            )
        optimizer.step()
        totals.pop("tokens", None)
        totals["grad_norm"] = totals.get("grad_norm", 0.0) + norm / len(parts)
    return totals
