"""Batched sampling from a causal language model that keeps exact token ids and log-probabilities."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from mappa_rl.policy.base import Sampling
from mappa_rl.policy.sharding import Turn, no_turns


@dataclass(slots=True)
class Generated:
    """Tokens of one sequence, in order."""

    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    ended: bool = False
    """The end-of-turn id was sampled (it is the last of `ids`)."""


def left_pad(prompts: Sequence[Sequence[int]], pad_id: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return prompt ids [batch, longest] padded on the left, and the attention mask of the same shape."""
    longest = max(len(p) for p in prompts)
    ids = torch.full((len(prompts), longest), pad_id, dtype=torch.long)
    mask = torch.zeros((len(prompts), longest), dtype=torch.long)
    for row, prompt in enumerate(prompts):
        ids[row, longest - len(prompt) :] = torch.tensor(prompt, dtype=torch.long)
        mask[row, longest - len(prompt) :] = 1
    return ids.to(device), mask.to(device)


def choose(logits: Tensor, sampling: Sampling, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw one token per row.

    Args:
        logits: [batch, vocabulary], any float type.
        sampling: Temperature 0 takes the most likely token.
        generator: On the device of `logits`.

    Returns:
        Token ids [batch], and their log-probabilities [batch] under the softmax of `logits / temperature` over the
        whole vocabulary (top-p cuts what can be drawn, not what is recorded); for temperature 0 under temperature 1.
    """
    logits = logits.float()
    if sampling.temperature == 0:
        logprobs = logits.log_softmax(-1)
        tokens = logits.argmax(-1)
    else:
        logprobs = (logits / sampling.temperature).log_softmax(-1)
        probs = logprobs.exp()
        if sampling.top_p < 1:
            ordered, order = probs.sort(-1, descending=True)
            beyond = ordered.cumsum(-1) - ordered >= sampling.top_p
            probs = torch.zeros_like(probs).scatter(-1, order, ordered.masked_fill(beyond, 0.0))
        tokens = torch.multinomial(probs, 1, generator=generator).squeeze(-1)
    return tokens, logprobs.gather(-1, tokens[:, None]).squeeze(-1)


@torch.no_grad()  # not inference_mode: what is gathered in it could not be used for training, see `sharding`
def generate(
    model: Any,
    prompts: Sequence[Sequence[int]],
    sampling: Sampling,
    *,
    end_ids: frozenset[int],
    pad_id: int,
    generator: torch.Generator,
    turn: Turn = no_turns,
) -> list[Generated]:
    """Sample one continuation per prompt with a key-value cache; finished sequences leave the batch.

    A prompt that is there several times is read once.

    Args:
        model: A transformers causal language model in eval mode.
        prompts: Token ids, at least one each.
        sampling: Temperature, top-p, length limit.
        end_ids: Ids that end a turn.
        pad_id: Any valid id; padded positions are masked.
        generator: On the model's device.
        turn: Called before every pass through the model.
    """
    distinct = list(dict.fromkeys(map(tuple, prompts)))
    place = {prompt: i for i, prompt in enumerate(distinct)}
    of = torch.tensor([place[tuple(prompt)] for prompt in prompts], device=model.device)
    cache = DynamicCache(config=model.config)
    cache_argument = _cache_argument(model)

    def forward(ids: Tensor, mask: Tensor, positions: Tensor) -> Tensor:
        turn()
        output = model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            use_cache=True,
            logits_to_keep=1,
            **{cache_argument: cache},
        )
        logits: Tensor = output.logits[:, -1]
        return logits

    ids, mask = left_pad(distinct, pad_id, model.device)
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    logits = forward(ids, mask, positions)
    if len(distinct) < len(prompts):  # samples of one prompt share its pass
        cache.batch_select_indices(of)
        logits, mask, positions = logits[of], mask[of], positions[of]
    results = [Generated() for _ in prompts]
    live = torch.arange(len(prompts), device=model.device)
    for left in reversed(range(sampling.max_new_tokens)):
        tokens, logprobs = choose(logits, sampling, generator)
        going = torch.ones(len(live), dtype=torch.bool)
        for row, (index, token, logprob) in enumerate(
            zip(live.tolist(), tokens.tolist(), logprobs.tolist(), strict=True)
        ):
            result = results[index]
            result.ids.append(token)
            result.logprobs.append(logprob)
            result.ended = token in end_ids
            going[row] = not result.ended
        if not left or not going.any():
            break
        keep = going.to(model.device)
        if not going.all():
            cache.batch_select_indices(keep.nonzero().squeeze(-1))
        live, ids = live[keep], tokens[keep][:, None]
        mask = torch.cat([mask[keep], mask.new_ones((len(live), 1))], dim=-1)
        positions = positions[keep][:, -1:] + 1
        logits = forward(ids, mask, positions)
    return results


def _cache_argument(model: Any) -> str:
    # transformers renamed the argument within its version 5.
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
