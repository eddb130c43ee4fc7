"""Settings of the coach."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from envs_registry.errors import ConfigError, did_you_mean

PRICES = Path(__file__).parent / "prices.yaml"
_OWN_FIELDS = frozenset({"model", "messages", "temperature", "max_tokens", "max_completion_tokens", "response_format"})


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


class Price(_Settings):
    """What a model's tokens cost, in one currency of your choice."""

    prompt: float = Field(ge=0)
    """Per million prompt tokens."""
    completion: float = Field(ge=0)
    """Per million completion tokens, thinking included."""


class Limits(_Settings):
    """Longest texts in a request, in characters; longer ones keep head and tail."""

    task: int = Field(default=20_000, ge=1)
    """The task's statement."""
    action: int = Field(default=20_000, ge=1)
    """The action to score."""
    tool: int = Field(default=6_000, ge=1)
    """One tool result of the action."""
    seen: int = Field(default=12_000, ge=1)
    """One message of what the agent saw."""
    earlier: int = Field(default=4_000, ge=1)
    """The action, and each tool result, of one earlier turn."""
    facts: int = Field(default=6_000, ge=1)
    """What was found out about the files, and what that took the hidden answers to find out."""
    files: int = Field(default=100, ge=1)
    """Files that are listed."""


class CoachSettings(_Settings):
    """How a coach is asked."""

    model: str = Field(min_length=1)
    """Name of the model, as the endpoint knows it."""
    base_url: str = Field(default="https://api.openai.com/v1", pattern=r"^https?://[^\s/]+")
    """An OpenAI-compatible endpoint, up to and without `/chat/completions`."""
    api_key_env: str | None = "OPENAI_API_KEY"
    """Name of the environment variable that holds the key; null: the endpoint takes no key."""
    prompt: str = "v1"
    """A built-in version of the prompt, or a folder; see `mappa_envs.judges.coach.prompt`."""
    structured: Literal["auto", "never"] = "auto"
    """`auto`: ask for a JSON object by schema, and go back to text where the endpoint refuses that."""
    temperature: float | None = Field(default=0.0, ge=0)
    """null: the endpoint's default. Left out where the endpoint refuses it."""
    max_tokens: int = Field(default=2048, ge=16)
    """Longest reply, thinking included; a reply that is cut off is no score."""
    params: dict[str, Any] = {}
    """Further fields of the request, e.g. `{"reasoning_effort": "low"}`."""
    limits: Limits = Limits()
    """Longest texts in a request."""
    concurrency: int = Field(default=32, ge=1)
    """Requests that are under way at once, in one process."""
    deadline: float = Field(default=120.0, gt=0)
    """Seconds for one verdict from the start of its first try, all tries and waits included."""
    timeout: float = Field(default=60.0, gt=0)
    """Seconds for one try."""
    tries: int = Field(default=6, ge=1)
    """Most tries of one request where the endpoint is busy, broken or out of reach."""
    corrections: int = Field(default=1, ge=0)
    """How often a coach whose reply could not be used is asked for a usable one."""
    folder: Path | None = None
    """Where the cache and the ledger of what was spent are kept; several processes may share it. null: neither."""
    cache: bool = True
    """Whether replies are kept in `folder` and used again for equal requests."""
    record: Path | None = None
    """A JSONL file to which every exchange with the endpoint is appended, failed ones too; keys are not in it."""
    replay: Path | None = None
    """Such a file: the endpoint is not asked at all, its answers come from the file."""
    budget: float | None = Field(default=None, gt=0)
    """Most money to spend, in the currency of the price, counted over all runs that share `folder`."""
    price: Price | None = None
    """null: the entry of the model in `prices.yaml`; a model without one is counted in calls and tokens only."""

    @property
    def known_price(self) -> Price | None:
        """The price to count with: the one given, or the price table's."""
        return self.price or _price_table().get(re.sub(r"-20\d\d-?\d\d-?\d\d$", "", self.model))

    def key(self) -> str | None:
        """Return the endpoint's key from the environment; None where it takes none.

        Raises:
            ConfigError: If the variable is not set.
        """
        if self.api_key_env is None:
            return None
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            raise ConfigError(
                f"the coach has no key for {self.base_url}",
                expected=f"the key in the environment variable {self.api_key_env}",
                got="a variable that is not set",
                fix=f"export {self.api_key_env}=..., or set api_key_env: null for an endpoint without keys",
            )
        return key


def coach_settings(fields: Mapping[str, Any]) -> CoachSettings:
    """Check and return settings.

    Raises:
        ConfigError: If a setting is unknown, missing, wrong, or contradicts another.
    """
    known = CoachSettings.model_fields
    for name in fields:
        if name not in known:
            raise ConfigError(
                f"the coach has no setting {name!r}",
                expected=", ".join(known),
                got=f"{name}={fields[name]!r}",
                fix=did_you_mean(name, known, "leave it out"),
            )
    try:
        settings = CoachSettings.model_validate(dict(fields))
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
        raise ConfigError("the settings of the coach are wrong", got="; ".join(problems)) from None
    _check(settings)
    return settings


def _check(settings: CoachSettings) -> None:
    if own := sorted(_OWN_FIELDS & set(settings.params)):
        raise ConfigError(
            f"coach: params holds {own[0]!r}", expected="fields without a setting of their own", fix="use the setting"
        )
    if settings.budget is not None and settings.folder is None:
        raise ConfigError("coach: a budget needs a folder", fix="set folder: what was spent is written down there")
    if settings.budget is not None and settings.known_price is None:
        raise ConfigError(
            "coach: a budget needs a price",
            expected="the price per million tokens",
            got=f"no price for {settings.model!r}",
            fix="set price: {prompt: ..., completion: ...}",
        )
    if settings.record is not None and settings.replay is not None:
        raise ConfigError("coach: record and replay exclude each other", fix="leave one of them out")
    if settings.replay is not None and not settings.replay.is_file():
        raise ConfigError("coach: no such recording", got=str(settings.replay), fix="check replay")


@cache
def _price_table() -> dict[str, Price]:
    table = yaml.safe_load(PRICES.read_text(encoding="utf-8"))
    return {model: Price(prompt=prompt, completion=completion) for model, (prompt, completion) in table.items()}
