"""From rows to optimiser steps: the batch of a training step, and one learner's update on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from mappa_rl.algorithms import Algorithm, Reduce, TokenBatch, one_process
from mappa_rl.config import OptimConfig
from mappa_rl.errors import NonFiniteError
from mappa_rl.policy.team import Team
from mappa_rl.rollout.row import Row, micro_batches

SumGradients = Callable[[Sequence[nn.Parameter]], None]
"""Adds up the gradients of all training processes, in place."""


def make_batch(
    team: Team,
    algorithm: Algorithm,
    rows: Sequence[Row],
    *,
    temperature: float,
    micro_tokens: int,
    reduce: Reduce = one_process,
) -> TokenBatch:
    """Return the batch of the rows that learners wrote, with what the algorithm needs of the models.

    Args:
        team: Whose rows they are.
        algorithm: Says what it needs.
        rows: All rows of whole episodes; those of agents that never learn are left out.
        temperature: The sampling temperature.
        micro_tokens: Padded tokens per forward pass.
        reduce: Sums over the training processes.
    """
    mine = [row for row in rows if team.learner_of(row.agent) is not None]
    batch = TokenBatch.from_rows(mine, device=team.device, reduce=reduce)
    if algorithm.needs_reference:
        batch = batch.with_reference(team.reference_logprobs(mine, temperature=temperature, micro_tokens=micro_tokens))
    if algorithm.needs_values:
        batch = batch.with_values(team.values(mine, micro_tokens=micro_tokens))
    return batch


def update_learner(
    team: Team,
    optimizer: torch.optim.Optimizer,
    algorithm: Algorithm,
    batch: TokenBatch,
    advantages: Tensor,
    parts: Sequence[Sequence[int]],
    *,
    learner: str,
    optim: OptimConfig,
    temperature: float,
    sum_gradients: SumGradients | None = None,
) -> dict[str, float]:
    """Take one learner's optimiser steps and return their mean metrics.

    The loss of an optimiser step is a mean over all of its tokens, however it is cut into micro-batches and spread
    over processes.

    Args:
        team: Who learns.
        optimizer: Of the learner's parameters.
        algorithm: Gives the loss.
        batch: All rows of the training step, of all learners.
        advantages: `[rows, tokens]`.
        parts: For each optimiser step, the indexes of its trainable rows; equally many parts on every process.
        learner: Its name.
        optim: Learning settings.
        temperature: The sampling temperature.
        sum_gradients: Over the training processes; None where there is one.

    Raises:
        NonFiniteError: If a loss or gradient is not finite; the weights are left as they were before that step.
    """
    totals: dict[str, float] = {}
    norms, steps = 0.0, 0
    parameters = team.parameters(learner)
    for part in parts:
        total_tokens = batch.select(part).total_tokens()
        if not total_tokens:
            continue
        loss = 0.0
        for group in micro_batches(batch.rows, part, optim.micro_tokens):
            piece = batch.select(group)
            output = team.forward(learner, piece.rows, temperature=temperature)
            losses = [algorithm.loss(output.logprobs, piece, batch.take(advantages, group), total_tokens=total_tokens)]
            if output.values is not None:
                losses.append(algorithm.value_loss(output.values, piece, total_tokens=total_tokens))
            summed = torch.stack([one.loss for one in losses]).sum()
            summed.backward()
            loss += float(summed.detach())
            for one in losses:
                for name, value in one.metrics.items():
                    totals[name] = totals.get(name, 0.0) + value / total_tokens
        if sum_gradients is not None:
            sum_gradients(parameters)
        norm = float(nn.utils.clip_grad_norm_(parameters, optim.clip_norm))
        (loss,) = batch.reduce({"loss": (loss,)})["loss"]  # so that all processes stop, or none
        if not (math.isfinite(norm) and math.isfinite(loss)):
            raise NonFiniteError(
                f"the loss or the gradient of {learner!r} is not finite",
                expected="finite numbers",
                got=f"loss {loss}, gradient norm {norm}",
                fix="lower optim.lr or use policy.dtype=float32",
            )
        optimizer.step()
        # Gradients that stay until the next step would cost each learner their memory.
        optimizer.zero_grad(set_to_none=True)
        norms += norm
        steps += 1
    totals.pop("tokens", None)
    if not steps:
        return {}
    sums = batch.reduce({name: (value,) for name, value in totals.items()})
    return {**{str(name): value / steps for name, (value,) in sums.items()}, "grad_norm": norms / steps}
