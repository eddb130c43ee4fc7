"""Configs of table task sources, and `build_tabular_source`, which turns one into a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from envs_registry.errors import did_you_mean
from mappa_envs.errors import ConfigError, TaskError
from mappa_envs.tasks.base import Split, TaskSource
from mappa_envs.tasks.listed import ListedSource
from mappa_envs.tasks.math.statements import stable_share
from mappa_envs.tasks.tabular.base import TableKind, TabularTask
from mappa_envs.tasks.tabular.embedded import embedded_task
from mappa_envs.tasks.tabular.folder import task_folders
from mappa_envs.tasks.tabular.folder_task import folder_task
from mappa_envs.tasks.tabular.tables import TABLES


class _Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class EmbeddedConfig(_Config):
    """Real tables out of installed packages."""

    source: Literal["embedded"] = "embedded"
    names: tuple[str, ...] | None = None
    """Names in `TABLES`; None takes all."""
    kinds: tuple[TableKind, ...] | None = None
    """None takes both."""
    eval_share: float = Field(default=0.25, ge=0, le=1)
    """Share of the tasks of each kind for evaluation. 0: all are for training; 1: all are for evaluation."""
    seed: int = Field(default=0, ge=0)
    """Seed of the split of the tasks."""


class FolderConfig(_Config):
    """Task folders: `train.csv`, `test.csv`, `sample_submission.csv`, a description, hidden answers, `task.yaml`."""

    source: Literal["folder"] = "folder"
    path: str
    """One task folder, or a folder of task folders; see `mappa_envs.tasks.tabular.folder`."""
    eval_share: float = Field(default=0.25, ge=0, le=1)
    """As in `EmbeddedConfig`."""
    seed: int = Field(default=0, ge=0)


TabularConfig = Annotated[EmbeddedConfig | FolderConfig, Field(discriminator="source")]
"""Where table tasks come from; `source` says which kind."""

_ADAPTER: TypeAdapter[TabularConfig] = TypeAdapter(TabularConfig)
_SOURCES = ("embedded", "folder")


def parse_tabular_config(fields: Mapping[str, Any]) -> TabularConfig:
    """Make a config from its fields; without `source` it is an embedded one.

    Raises:
        ConfigError: If a field is unknown, missing or wrong.
    """
    source = fields.get("source", "embedded")
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


def build_tabular_source(config: TabularConfig | TaskSource | Mapping[str, Any] | None, split: Split) -> TaskSource:
    """Build the source of one split.

    Args:
        config: A config, the fields of one, or None for all embedded tables. A ready source is returned as it is: its
            maker has chosen the split.
        split: `train` or `eval`.

    Raises:
        ConfigError: If the config or the split is wrong, or an optional extra is missing.
        TaskError: If a folder is malformed.
    """
    if split not in ("train", "eval"):
        raise ConfigError("unknown split", expected="'train' or 'eval'", got=repr(split))
    if config is None:
        config = EmbeddedConfig()
    elif isinstance(config, Mapping):
        config = parse_tabular_config(config)
    match config:
        case EmbeddedConfig():
            tasks = [embedded_task(name) for name in _chosen(config)]
        case FolderConfig():
            tasks = [folder_task(folder) for folder in task_folders(Path(config.path))]
        case TaskSource():
            return config
        case _:
            raise ConfigError(
                "tasks is of the wrong type", expected="a config, its fields or a TaskSource", got=type(config).__name__
            )
    return ListedSource(f"{config.source}-{split}", _side(tasks, config.eval_share, config.seed, split))


def _chosen(config: EmbeddedConfig) -> list[str]:
    for name in config.names or ():
        if name not in TABLES:
            raise ConfigError(
                f"unknown table {name!r}",
                expected=f"one of {', '.join(TABLES)}",
                fix=did_you_mean(name, TABLES),
            )
    chosen = dict.fromkeys(TABLES if config.names is None else config.names)
    return [name for name in chosen if config.kinds is None or TABLES[name].kind in config.kinds]


def _side(tasks: Sequence[TabularTask], eval_share: float, seed: int, split: Split) -> list[TabularTask]:
    """Return one side of the tasks: of each kind, the share with the lowest hashes is for evaluation."""
    if eval_share in (0, 1):
        if (split == "eval") != (eval_share == 1):
            raise ConfigError(
                f"the tasks have no {split} split",
                expected="eval_share above 0 and below 1",
                got=f"eval_share={eval_share}",
            )
        return list(tasks)
    held_out: set[str] = set()
    for kind in get_args(TableKind):
        ranked = sorted((t.id for t in tasks if t.kind == kind), key=lambda id_: stable_share(id_, f"split {seed}"))
        # With two tasks or more each side has one.
        count = min(max(1, round(eval_share * len(ranked))), max(0, len(ranked) - 1))
        held_out.update(ranked[:count])
    side = [task for task in tasks if (task.id in held_out) == (split == "eval")]
    if not side:
        raise TaskError(
            f"the {split} side is empty",
            expected="two tasks of one kind or more",
            got=f"{len(tasks)} tasks, eval_share={eval_share}",
            fix="add tasks, or set eval_share to 0 (all for training) or 1 (all for evaluation)",
        )
    return side
