"""`LocalCoach`: a transformers model in this process scores every action."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from envs_registry.errors import ConfigError
from mappa_envs.judges.base import Judge, JudgeRequest
from mappa_envs.judges.coach import load_prompt, parse_score, render_request
from mappa_envs.judges.coach.cache import ReplyCache, content_key
from mappa_envs.transcript import Cost, Verdict
from mappa_rl.config.settings import validate
from mappa_rl.judges.digits import OPENING, ScoreDistribution
from mappa_rl.judges.engine import Engine, shared_engine
from mappa_rl.judges.settings import LocalCoachConfig
from mappa_rl.policy.chat import ChatFormat

_REPLY_WITH_DIGITS = f"""Reply with one line that holds nothing but the score, a whole number from 0 to 10:
{OPENING} number"""
_LONGEST_REASON = 2000


class LocalCoach(Judge):
    """Scores actions with a causal language model, greedily: the same request gets the same score.

    All coaches of a process with equal settings share one model. The prompt is the coach's
    (`mappa_envs.judges.coach`); agent text stands in fences in it.

    Args:
        config: Model and mode.

    Raises:
        ConfigError: If the prompt is malformed.
        PolicyError: If the model cannot be loaded, or its tokenizer does not suit the mode.
    """

    def __init__(self, config: LocalCoachConfig) -> None:
        self.config = config
        prompt = load_prompt(config.prompt)
        self._prompt = replace(prompt, reply_text=_REPLY_WITH_DIGITS) if config.mode == "digits" else prompt
        self.id = f"local_coach-1/{_public_name(config.model)}/{config.mode}/{prompt.version}"
        self._cache = ReplyCache(config.folder) if config.folder is not None else None
        self._engine()

    async def score(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Return one verdict per request, in order.

        Raises:
            ConfigError: If the chat template opens a think block where the score should stand.
            PolicyError: If the chat template refuses the chat.
        """
        return list(await asyncio.gather(*(self._verdict(request) for request in requests)))

    async def _verdict(self, request: JudgeRequest) -> Verdict:
        engine = self._engine()
        chat = ChatFormat(engine.room, template_kwargs=self.config.template_kwargs)
        prompt = chat.encode(engine.base.tokenizer, render_request(request, self._prompt))
        if prompt.thinking and self.config.mode == "digits":
            raise ConfigError(
                "LocalCoach: the chat template opens a think block where the score should stand",
                expected="a prompt that the reply follows at once",
                fix='set template_kwargs: {"enable_thinking": false}, or mode: generate',
            )
        key = content_key({"engine": engine.digest, "mode": self.config.mode, "prompt": prompt.ids})
        kept = self._cache.get(key) if self._cache is not None else None
        if kept is None:
            made, cost = await engine.reply(prompt.ids)
            kept = self._cache.put(key, made) if self._cache is not None else made
        else:
            cost = Cost()
        verdict = self._read(kept, cost, thinking=prompt.thinking)
        note = f" (prompt cut by {prompt.cut} tokens)" if prompt.cut else ""
        return replace(verdict, reason=verdict.reason + note)

    def _read(self, reply: str, cost: Cost, *, thinking: bool) -> Verdict:
        if self.config.mode == "digits":
            found = ScoreDistribution(tuple(json.loads(reply)))
            if not found.mass > self.config.min_mass:
                return Verdict.failed(f"the model gives scores a probability of {found.mass:.2f}", self.id, cost)
            reason = f"expected score, likeliest {found.likeliest}, standard deviation {found.spread:.2f}"
            return Verdict.ok(round(found.mean, 6), reason, self.id, cost)
        reading = parse_score(reply, thinking=thinking)
        reason = reading.reason[:_LONGEST_REASON]
        if reading.score is None:
            return Verdict.failed(reason, self.id, cost)
        return Verdict.ok(reading.score, reason, self.id, cost)

    def _engine(self) -> Engine:
        # Looked up, not kept: a judge is copied and pickled with its environment, a model is not.
        return shared_engine(self.config)


def local_coach(**settings: Any) -> LocalCoach:
    """Return a local coach from the fields of `LocalCoachConfig`.

    Raises:
        ConfigError: If a setting is unknown or wrong.
        PolicyError: If the model cannot be loaded.
    """
    return LocalCoach(validate(LocalCoachConfig, settings, what="the judge 'local_coach'"))


def _public_name(model: str) -> str:
    return Path(model).name if Path(model).expanduser().exists() else model
