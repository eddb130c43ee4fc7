"""Configs of table task sources, and `build_tabular_source`, which turns one into a source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from mappa_envs.tasks.base import Split, TaskSource
from mappa_envs.tasks.tabular.base import TableKind


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
    """One task folder, or a folder of task folders."""
    eval_share: float = Field(default=0.25, ge=0, le=1)
    """As in `EmbeddedConfig`."""
    seed: int = Field(default=0, ge=0)


TabularConfig = Annotated[EmbeddedConfig | FolderConfig, Field(discriminator="source")]
"""Where table tasks come from; `source` says which kind."""


def build_tabular_source(config: TabularConfig | TaskSource | Mapping[str, Any] | None, split: Split) -> TaskSource:
    """Build the source of one split.

    Args:
        config: A config, the fields of one, or None for all embedded tables. A ready source is returned as it is.
        split: `train` or `eval`.

    Raises:
        ConfigError: If the config or the split is wrong, or an optional extra is missing.
        TaskError: If a folder is malformed.
    """
    raise NotImplementedError
