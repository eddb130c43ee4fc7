"""Log-probabilities of responses, without ever holding batch x length x vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from mappa_rl.rollout.row import Row

_CHUNK_TOKENS = 1024


def right_pad(rows: Sequence[Row], pad_id: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return ids [rows, longest] of prompt plus response, padded on the right, and the attention mask."""
    full = [(*row.prompt_ids, *row.response_ids) for row in rows]
    longest = max(len(ids) for ids in full)
    ids = torch.full((len(rows), longest), pad_id, dtype=torch.long)
    mask = torch.zeros((len(rows), longest), dtype=torch.long)
    for i, one in enumerate(full):
        ids[i, : len(one)] = torch.tensor(one, dtype=torch.long)
        mask[i, : len(one)] = 1
    return ids.to(device), mask.to(device)


def response_logprobs(model: Any, rows: Sequence[Row], *, temperature: float, pad_id: int) -> Tensor:
    """Return log-probabilities [rows, longest response] of each row's response; 0 after its end.

    The decoder runs once; the vocabulary projection runs over response positions only, in chunks that are computed
    again in the backward pass.

    Args:
        model: A transformers causal language model.
        rows: At least one, each with a non-empty prompt and response.
        temperature: The sampling temperature (log-probabilities are those of `logits / temperature`); 0 counts as 1.
        pad_id: Any valid id; padded positions are masked.
    """
    ids, mask = right_pad(rows, pad_id, model.device)
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    hidden = model.get_decoder()(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False)[0]
    longest = max(len(row.response_ids) for row in rows)
    row_index = [i for i, row in enumerate(rows) for _ in row.response_ids]
    column = [j for row in rows for j in range(len(row.response_ids))]
    # The token at position p is predicted from the state at p - 1.
    source = [len(row.prompt_ids) - 1 + j for row in rows for j in range(len(row.response_ids))]
    at = torch.tensor(row_index, device=ids.device), torch.tensor(source, device=ids.device)
    states, targets = hidden[at], ids[at[0], at[1] + 1]
    scale = temperature if temperature > 0 else 1.0
    parts = [
        _chunk_logprobs(model, states[i : i + _CHUNK_TOKENS], targets[i : i + _CHUNK_TOKENS], scale)
        for i in range(0, len(targets), _CHUNK_TOKENS)
    ]
    result = torch.zeros((len(rows), longest), device=ids.device, dtype=torch.float32)
    where = at[0], torch.tensor(column, device=ids.device)
    return result.index_put(where, torch.cat(parts))


def _chunk_logprobs(model: Any, states: Tensor, targets: Tensor, temperature: float) -> Tensor:
    def compute(states: Tensor) -> Tensor:
        logits = model.get_output_embeddings()(states).float()
        cap = getattr(model.config, "final_logit_softcapping", None)
        if cap:
            logits = cap * torch.tanh(logits / cap)
        scaled = logits / temperature
        return scaled.gather(-1, targets[:, None]).squeeze(-1) - scaled.logsumexp(-1)

    if torch.is_grad_enabled() and states.requires_grad:
        chunk: Tensor = checkpoint(compute, states, use_reentrant=False)
        return chunk
    return compute(states)
