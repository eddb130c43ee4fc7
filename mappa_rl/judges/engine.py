"""The model behind local coaches: loaded once per process, asked in batches."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch

from mappa_envs.transcript import Cost
from mappa_rl.judges.digits import ScoreTokens, score_distributions
from mappa_rl.judges.settings import LocalCoachConfig
from mappa_rl.policy.base import Sampling
from mappa_rl.policy.chat import response_text
from mappa_rl.policy.loading import Base, load_base
from mappa_rl.policy.sampler import generate

_Reply = tuple[str, Cost]


class Engine:
    """Answers prompts with a model.

    Args:
        config: Model, mode and limits.

    Raises:
        PolicyError: If the model cannot be loaded, or its tokenizer does not suit the mode.
    """

    def __init__(self, config: LocalCoachConfig) -> None:
        self.base = _base(config.model, config.gguf_file, config.dtype, config.device, config.attention)
        self._config = config
        self._tokens = ScoreTokens.of(self.base.tokenizer) if config.mode == "digits" else None
        reply = len(self._tokens.suffix) if self._tokens is not None else config.max_new_tokens
        context = getattr(self.base.model.config, "max_position_embeddings", None) or config.max_prompt_tokens + reply
        self.room: int = min(config.max_prompt_tokens, context - reply)
        """Longest prompt, in tokens."""
        self.digest = weights_digest(self.base.model)
        """Tells models apart in a cache."""
        self._waiting: list[tuple[Sequence[int], asyncio.Future[_Reply]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def reply(self, prompt: Sequence[int]) -> _Reply:
        """Return the reply to one prompt, and its cost; what is asked while the model is busy makes the next batch.

        In `digits` mode the reply is the JSON list of the probabilities of the scores 0 to 10.
        """
        future: asyncio.Future[_Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append((prompt, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.get_running_loop().create_task(self._work())
        return await future

    async def _work(self) -> None:
        while self._waiting:
            size = self._config.batch_size
            batch, self._waiting = self._waiting[:size], self._waiting[size:]
            try:
                replies = await asyncio.to_thread(self._run, [prompt for prompt, _ in batch])
            except Exception as error:
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), reply in zip(batch, replies, strict=True):
                if not future.done():
                    future.set_result(reply)

    def _run(self, prompts: list[Sequence[int]]) -> list[_Reply]:
        return self._texts(prompts) if self._tokens is None else self._digits(prompts, self._tokens)

    def _digits(self, prompts: list[Sequence[int]], tokens: ScoreTokens) -> list[_Reply]:
        found = score_distributions(self.base.model, tokens, prompts, pad_id=self.base.pad_id)
        return [
            (json.dumps(one.weights), Cost(calls=1, prompt_tokens=len(prompt)))
            for prompt, one in zip(prompts, found, strict=True)
        ]

    def _texts(self, prompts: list[Sequence[int]]) -> list[_Reply]:
        made = generate(
            self.base.model,
            prompts,
            Sampling(temperature=0, max_new_tokens=self._config.max_new_tokens),
            end_ids=self.base.end_ids,
            pad_id=self.base.pad_id,
            generator=torch.Generator(self.base.model.device),
        )
        return [
            (self._text(one.ids, one.ended), Cost(1, len(prompt), len(one.ids)))
            for prompt, one in zip(prompts, made, strict=True)
        ]

    def _text(self, ids: list[int], ended: bool) -> str:
        # A reply that was cut off may end in half a number.
        return response_text(self.base.tokenizer, ids[:-1]) if ended else ""


@lru_cache(maxsize=2)
def _base(model: str, gguf_file: str | None, dtype: str, device: str, attention: str | None) -> Base:
    return load_base(model, gguf_file=gguf_file, dtype=dtype, device=device, attention=attention)


@lru_cache(maxsize=8)
def _engine(config: str) -> Engine:
    return Engine(LocalCoachConfig.model_validate_json(config))


_loading = threading.Lock()


def shared_engine(config: LocalCoachConfig) -> Engine:
    """Return the engine of a config: all environments of a process that are made from equal configs share one."""
    with _loading:
        return _engine(config.model_dump_json())


@torch.no_grad()
def weights_digest(model: Any) -> str:
    """Return a hash of some values of every weight: two models that differ by training or type have different ones."""
    total = hashlib.sha256()
    for name, weight in model.named_parameters():
        ends = torch.cat([weight.flatten()[:16], weight.flatten()[-16:]])
        total.update(f"{name} {tuple(weight.shape)} {weight.dtype}".encode() + ends.float().cpu().numpy().tobytes())
    return total.hexdigest()
