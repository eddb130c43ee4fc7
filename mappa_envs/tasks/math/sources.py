"""Configs of maths task sources, and `build_source`, which turns one into a source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from envs_registry.errors import did_you_mean
from mappa_envs.errors import ConfigError
from mappa_envs.grading.policy import DEFAULT_POLICY, GradingPolicy
from mappa_envs.tasks.base import Split, TaskSource
from mappa_envs.tasks.math.finite import FiniteSource, Unparsable, split_source
from mappa_envs.tasks.math.hub import hub_source
from mappa_envs.tasks.math.jsonl import JsonlSource
from mappa_envs.tasks.math.procedural import ProceduralSource
from mappa_envs.tasks.math.reasoning_gym_source import ReasoningGymSource


class _Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ProceduralConfig(_Config):
    """Problems from the procedural families; see `ProceduralSource`."""

    source: Literal["procedural"] = "procedural"
    seed: int = Field(default=0, ge=0)
    families: tuple[str, ...] | None = None
    """Names in `FAMILIES`; None takes all."""
    levels: tuple[int, ...] = (1, 2, 3)
    """Difficulties, 1 to 5."""
    size: int | None = Field(default=None, ge=1)
    """Number of tasks in each split; None is endless."""


class JsonlConfig(_Config):
    """Problems from JSON Lines files; see `JsonlSource`."""

    source: Literal["jsonl"] = "jsonl"
    path: str
    """The training file, or the only file."""
    eval_path: str | None = None
    """The evaluation file. Without one, `path` is split by `eval_share`."""
    eval_share: float = Field(default=0.2, ge=0, le=1)
    """Share of `path` for evaluation, by a stable hash of the ids. 0: all is for training; 1: all is for evaluation;
    then a source of the other split is an error."""
    seed: int = Field(default=0, ge=0)
    """Seed of the split."""
    prompt: str = "prompt"
    answer: str = "answer"
    id: str = "id"
    kind: str | None = None
    policy: GradingPolicy = DEFAULT_POLICY
    unparsable: Unparsable = "error"

    @model_validator(mode="after")
    def _one_way_to_split(self) -> JsonlConfig:
        if self.eval_path is not None and {"eval_share", "seed"} & self.model_fields_set:
            raise ValueError("eval_share and seed split one file: leave them out where there is an eval_path")
        return self


class HubConfig(_Config):
    """A public problem set; see `hub_source`."""

    source: Literal["hub"] = "hub"
    name: str
    """A name in `HUB_SETS`."""
    path: str | None = None
    """A local copy instead of the hub."""
    revision: str | None = None
    eval_share: float = Field(default=0.2, ge=0, le=1)
    """As in `JsonlConfig`; 1 for a set that is for evaluation only."""
    seed: int = Field(default=0, ge=0)
    unparsable: Unparsable = "error"


class ReasoningGymConfig(_Config):
    """Problems of the reasoning-gym library; see `ReasoningGymSource`."""

    source: Literal["reasoning_gym"] = "reasoning_gym"
    seed: int = Field(default=0, ge=0)
    generators: tuple[str, ...] | None = None
    """Names in `GENERATORS`; None takes all."""
    size: int | None = Field(default=None, ge=1)


TasksConfig = Annotated[ProceduralConfig | JsonlConfig | HubConfig | ReasoningGymConfig, Field(discriminator="source")]
"""Where maths tasks come from; `source` says which kind."""

_ADAPTER: TypeAdapter[TasksConfig] = TypeAdapter(TasksConfig)
_SOURCES = ("procedural", "jsonl", "hub", "reasoning_gym")


def parse_tasks_config(fields: Mapping[str, Any]) -> TasksConfig:
    """Make a config from its fields; without `source` it is a procedural one.

    Raises:
        ConfigError: If a field is unknown, missing or wrong.
    """
    source = fields.get("source", "procedural")
    if source not in _SOURCES:
        raise ConfigError(
            "unknown task source",
            expected=f"one of {', '.join(_SOURCES)}",
            got=repr(source),
            fix=did_you_mean(source, _SOURCES, "pick from the list"),
        )
    try:
        return _ADAPTER.validate_python({**fields, "source": source})
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, item['loc'][1:]))}: {item['msg']}" for item in error.errors()]
        raise ConfigError(f"the config of the task source {source!r} is wrong", got="; ".join(problems)) from error


def build_source(config: TasksConfig | TaskSource | Mapping[str, Any] | None, split: Split) -> TaskSource:
    """Build the source of one split.

    Args:
        config: A config, the fields of one, or None for the default procedural source. A ready source is returned as
            it is: its maker has chosen the split.
        split: `train` or `eval`.

    Raises:
        ConfigError: If the config or the split is wrong, or an optional extra is missing.
        TaskError: If a file or set is malformed or cannot be loaded.
    """
    if split not in ("train", "eval"):
        raise ConfigError("unknown split", expected="'train' or 'eval'", got=repr(split))
    if config is None:
        config = ProceduralConfig()
    elif isinstance(config, Mapping):
        config = parse_tasks_config(config)
    match config:
        case ProceduralConfig():
            return ProceduralSource(split, config.seed, config.families, config.levels, size=config.size)
        case JsonlConfig():
            return _jsonl(config, split)
        case HubConfig():
            whole = hub_source(config.name, path=config.path, revision=config.revision, unparsable=config.unparsable)
            return _side(whole, config.eval_share, config.seed, split)
        case ReasoningGymConfig():
            return ReasoningGymSource(split, config.seed, config.generators, size=config.size)
        case TaskSource():
            return config
    raise ConfigError(
        "tasks is of the wrong type", expected="a config, its fields or a TaskSource", got=type(config).__name__
    )


def _jsonl(config: JsonlConfig, split: Split) -> TaskSource:
    def read(path: str) -> FiniteSource:
        return JsonlSource(
            Path(path),
            prompt=config.prompt,
            answer=config.answer,
            id=config.id,
            kind=config.kind,
            policy=config.policy,
            unparsable=config.unparsable,
        )

    if config.eval_path is not None:
        return read(config.path if split == "train" else config.eval_path)
    return _side(read(config.path), config.eval_share, config.seed, split)


def _side(whole: FiniteSource, eval_share: float, seed: int, split: Split) -> TaskSource:
    if eval_share in (0, 1):
        if (split == "eval") != (eval_share == 1):
            raise ConfigError(
                f"{whole.name!r} has no {split} split",
                expected="eval_share above 0 and below 1",
                got=f"eval_share={eval_share}",
            )
        return whole
    train, evaluation = split_source(whole, eval_share, seed)
    return train if split == "train" else evaluation
