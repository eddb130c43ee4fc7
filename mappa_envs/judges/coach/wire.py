"""The request that an endpoint gets, and what its answer means."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from envs_registry.errors import ConfigError, MappaError
from mappa_envs.errors import BudgetError
from mappa_envs.judges.coach.endpoint import Answer
from mappa_envs.judges.coach.render import ReplyForm
from mappa_envs.judges.coach.settings import CoachSettings
from mappa_envs.transcript import Message

_LOG = logging.getLogger(__name__)

SCHEMA = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "score": {"type": "number"}},
    "required": ["reason", "score"],
    "additionalProperties": False,
}
"""What a structured reply looks like. The range is checked here: not every endpoint's schemas know ranges."""

_BUSY_OR_BROKEN = frozenset({408, 409, 425, 429})
_UNSUPPORTED = re.compile(
    r"unsupported|not supported|not permitted|unknown|unrecogni[sz]ed|invalid|extra", re.IGNORECASE
)
_MENTIONS = {
    "response_format": re.compile(r"response_format|json_schema|structured|grammar|guided", re.IGNORECASE),
    "max_tokens": re.compile(r"max_tokens", re.IGNORECASE),
    "temperature": re.compile(r"temperature", re.IGNORECASE),
}


@dataclass(frozen=True, slots=True)
class Reply:
    """A chat completion."""

    text: str
    cut: bool
    """Whether it ended at the token limit."""
    prompt_tokens: int | None
    """None: the endpoint did not say."""
    completion_tokens: int | None


@dataclass(frozen=True, slots=True)
class Retry:
    """It may work at the next try."""

    reason: str
    after: float | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """It will not work for this request."""

    reason: str


@dataclass(frozen=True, slots=True)
class Stop:
    """It will not work for any request."""

    error: MappaError


@dataclass(slots=True)
class Dialect:
    """What this endpoint turned out to take; learnt from its refusals until it has answered once.

    After that a refusal is about the request, so that no text of an agent can change how others are asked.
    """

    settings: CoachSettings
    left_out: set[str] = field(default_factory=set)
    answered: bool = False

    def __post_init__(self) -> None:
        if self.settings.structured == "never":
            self.left_out.add("response_format")
        if self.settings.temperature is None:
            self.left_out.add("temperature")

    @property
    def form(self) -> ReplyForm:
        """How replies are asked for now."""
        return "text" if "response_format" in self.left_out else "json"

    def body(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the request for a chat."""
        settings = self.settings
        limit = "max_completion_tokens" if "max_tokens" in self.left_out else "max_tokens"
        made: dict[str, Any] = {"model": settings.model, "messages": list(messages), limit: settings.max_tokens}
        if "temperature" not in self.left_out:
            made["temperature"] = settings.temperature
        if self.form == "json":
            made["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "score", "strict": True, "schema": SCHEMA},
            }
        return {**made, **settings.params}

    def adapt(self, body: dict[str, Any], answer: Answer) -> bool:
        """Leave out what a refusal names; returns whether to ask again."""
        if answer.status not in (400, 422):
            return False
        if body.keys() & self.left_out:
            return True  # sent before another request taught us
        if self.answered:
            return False
        named = _error_fields(answer.text).get("param")
        for name, mention in _MENTIONS.items():
            blamed = named == name or (_UNSUPPORTED.search(answer.text) and mention.search(answer.text))
            if name in body and blamed:
                self.left_out.add(name)
                _LOG.warning("%s refuses %s: asking without it", self.settings.base_url, name)
                return True
        return False


def read_answer(answer: Answer, settings: CoachSettings, *, answered: bool) -> Reply | Retry | Refused | Stop:
    """Say what an answer means.

    Args:
        answer: What came back.
        settings: For errors.
        answered: Whether the endpoint has ever given a completion: then a refusal is about this request.
    """
    if answer.status is None:
        return Retry(answer.text)
    if answer.status == 200:
        return _completion(answer.text)
    error = _error_fields(answer.text)
    told = f"HTTP {answer.status}: {error.get('message') or ' '.join(answer.text.split())}"[:300]
    if answer.status == 402 or "insufficient_quota" in (error.get("code"), error.get("type")):
        return Stop(
            BudgetError(
                f"the account at {settings.base_url} has no credit left",
                got=told,
                fix="top it up and resume: verdicts that were paid for come from the coach's cache",
            )
        )
    bad_key = answer.status == 401 or (answer.status == 400 and re.search(r"api[ _-]?key", told, re.IGNORECASE))
    if bad_key or (answer.status in (403, 404) and not answered):
        return Stop(
            ConfigError(
                f"{settings.base_url} refuses the coach",
                expected=f"the right URL, and a key in {settings.api_key_env} that may use {settings.model!r}",
                got=told,
                fix="correct base_url, model or the key",
            )
        )
    if answer.status in _BUSY_OR_BROKEN or answer.status >= 500:
        return Retry(told, answer.retry_after)
    return Refused(told)


def _completion(text: str) -> Reply | Retry | Refused:
    try:
        data = json.loads(text)
        choice = data["choices"][0]
        message = choice["message"]
        content, finish = message.get("content"), choice.get("finish_reason")
        refusal = message.get("refusal")
        usage = data.get("usage") or {}
        tokens = usage.get("prompt_tokens"), usage.get("completion_tokens")
    except (ValueError, RecursionError, KeyError, IndexError, TypeError, AttributeError):
        return Retry(f"not a chat completion: {' '.join(text[:120].split())!r}")
    if finish == "content_filter" or (isinstance(refusal, str) and refusal):
        return Refused("the model or its filter refused to judge this action")
    if not isinstance(content, str) or not content.strip():
        return Reply("", True, *_counts(tokens)) if finish == "length" else Retry("empty completion")
    return Reply(content, finish == "length", *_counts(tokens))


def _counts(tokens: Sequence[object]) -> list[int | None]:
    return [n if isinstance(n, int) and not isinstance(n, bool) and n >= 0 else None for n in tokens]


def _error_fields(text: str) -> dict[str, Any]:
    """Return `message`, `code`, ... of an error body, of OpenAI's shape or a similar one."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if isinstance(data, list) and data:  # Gemini
        data = data[0]
    error = data.get("error", data) if isinstance(data, dict) else {}
    return error if isinstance(error, dict) else {"message": str(error)}
