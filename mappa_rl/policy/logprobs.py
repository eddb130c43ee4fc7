"""What a model says of responses, without ever holding batch x length x vocabulary."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from mappa_rl.policy.team import TokenOutput
from mappa_rl.rollout.row import Row

_CHUNK_NUMBERS = 2**24  # logits held at once: 64 MiB in float32


def right_pad(rows: Sequence[Row], pad_id: int, device: torch.device) -> Tensor:
    """Return ids `[rows, longest]` of prompt plus response, padded on the right."""
    full = [(*row.prompt_ids, *row.response_ids) for row in rows]
    longest = max(len(ids) for ids in full)
    return torch.tensor([[*ids, *[pad_id] * (longest - len(ids))] for ids in full], device=device)


def response_outputs(
    model: Any, rows: Sequence[Row], *, temperature: float, pad_id: int, value_head: nn.Module | None = None
) -> TokenOutput:
    """Return log-probabilities, and values, of each row's response tokens; 0 after its end.

    The decoder runs once; the vocabulary projection runs over response positions only, in chunks.

    Args:
        model: A transformers causal language model.
        rows: At least one, each with a non-empty prompt and response.
        temperature: The sampling temperature (log-probabilities are those of `logits / temperature`); 0 counts as 1.
        pad_id: Any valid id. Padding is on the right, where causal attention never looks, so no mask is needed.
        value_head: Maps states `[tokens, hidden]` to `[tokens, 1]`.
    """
    ids = right_pad(rows, pad_id, model.device)
    with recomputing_layers(model):
        hidden = model.get_decoder()(input_ids=ids, use_cache=False)[0]
    row_index = torch.tensor([i for i, row in enumerate(rows) for _ in row.response_ids], device=ids.device)
    column = torch.tensor([j for row in rows for j in range(len(row.response_ids))], device=ids.device)
    # The token at position p is predicted from the state at p - 1.
    source = column + torch.tensor([len(row.prompt_ids) - 1 for row in rows], device=ids.device)[row_index]
    states, targets = hidden[row_index, source], ids[row_index, source + 1]
    shape = len(rows), max(len(row.response_ids) for row in rows)

    def place(values: Tensor) -> Tensor:
        return torch.zeros(shape, device=ids.device).index_put((row_index, column), values)

    logprobs = token_logprobs(model, states, targets, temperature if temperature > 0 else 1.0)
    values = None if value_head is None else place(value_head(states.float()).squeeze(-1).float())
    return TokenOutput(place(logprobs), values)


def token_logprobs(model: Any, states: Tensor, targets: Tensor, temperature: float) -> Tensor:
    """Return log-probabilities `[tokens]` (float32) of targets, holding few rows of logits at once.

    Args:
        model: Gives the vocabulary projection.
        states: `[tokens, hidden]` of the decoder.
        targets: `[tokens]` ids.
        temperature: Divides the logits.
    """
    head = model.get_output_embeddings()

    def compute(states: Tensor, targets: Tensor) -> Tensor:
        return -functional.cross_entropy(final_logits(model, states) / temperature, targets, reduction="none")

    chunk: Callable[[Tensor, Tensor], Tensor] = compute
    if torch.is_grad_enabled():
        if any(p.requires_grad for p in head.parameters()):
            chunk = partial(checkpoint, compute, use_reentrant=False)
        elif states.requires_grad:
            chunk = partial(_with_slope, compute)
    size = max(1, _CHUNK_NUMBERS // model.config.get_text_config().vocab_size)
    return torch.cat([chunk(s, t) for s, t in zip(states.split(size), targets.split(size), strict=True)])


def final_logits(model: Any, states: Tensor) -> Tensor:
    """Return logits `[..., vocabulary]` in float32 as the model itself makes them from its decoder's states."""
    config = model.config.get_text_config()
    logits: Tensor = model.get_output_embeddings()(states).float()
    logits = logits * (getattr(config, "logit_scale", None) or 1.0) / (getattr(config, "logits_scaling", None) or 1.0)
    cap = getattr(config, "final_logit_softcapping", None)
    return cap * torch.tanh(logits / cap) if cap else logits


@contextlib.contextmanager
def recomputing_layers(model: Any) -> Iterator[None]:
    """Let layers with gradient checkpointing drop their activations; transformers does so in training mode only.

    Only the layers' own flag is set: their children stay in evaluation mode, so that no dropout parts training
    from sampling.
    """
    layers = [module for module in model.modules() if getattr(module, "gradient_checkpointing", False)]
    for layer in layers:
        layer.training = True
    try:
        yield
    finally:
        for layer in layers:
            layer.training = False


def _with_slope(compute: Callable[[Tensor, Tensor], Tensor], states: Tensor, targets: Tensor) -> Tensor:
    """Return `compute(states, targets)` with its gradient in the states, computed here and now.

    Each log-probability depends on its own state alone, so one backward pass gives all their slopes, and the
    backward pass of the loss needs neither the logits nor a second projection.
    """
    inner = states.detach().requires_grad_()
    logprobs = compute(inner, targets)
    (slope,) = torch.autograd.grad(logprobs.sum(), inner)
    return logprobs.detach() + (slope * (states - inner.detach())).sum(-1).float()
