from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mappa_envs.errors import ConfigError, TaskError
from mappa_envs.tasks.base import TaskSource
from mappa_envs.tasks.tabular.sources import EmbeddedConfig, build_tabular_source
from mappa_envs.tasks.tabular.tables import TABLES


def ids(config: Any, split: Any) -> list[str]:
    source = build_tabular_source(config, split)
    assert isinstance(source, TaskSource) and source.size is not None
    return [source.task(index).id for index in range(source.size)]


def test_tasks_of_the_splits_are_disjoint_complete_and_stratified() -> None:
    train, held_out = ids(None, "train"), ids(None, "eval")
    assert set(train).isdisjoint(held_out)
    assert {*train, *held_out} == {f"embedded/{name}" for name in TABLES}
    kinds = {f"embedded/{name}": table.kind for name, table in TABLES.items()}
    for kind in ("classification", "regression"):
        share = sum(kinds[id_] == kind for id_ in held_out) / sum(value == kind for value in kinds.values())
        assert share == pytest.approx(0.25, abs=0.03)


def test_the_seed_chooses_the_split_and_nothing_else_does() -> None:
    assert ids(None, "eval") == ids(EmbeddedConfig(), "eval") == ids({}, "eval") == ids({"seed": 0}, "eval")
    assert set(ids({"seed": 1}, "eval")) != set(ids({"seed": 0}, "eval"))


def test_names_kinds_and_shares_choose_tasks() -> None:
    few = {"names": ["wine", "iris", "concrete"]}
    assert len(ids(few, "train")) == 2 and len(ids(few, "eval")) == 1
    assert ids({**few, "eval_share": 0}, "train") == ["embedded/wine", "embedded/iris", "embedded/concrete"]
    assert ids({**few, "eval_share": 1, "kinds": ["regression"]}, "eval") == ["embedded/concrete"]
    source = build_tabular_source(few, "train")
    assert build_tabular_source(source, "eval") is source
    with pytest.raises(TaskError, match="no such task"):
        source.task(2)


@pytest.mark.parametrize(
    ("config", "split", "error", "message"),
    [
        ({"names": ["irs"]}, "train", ConfigError, r"did you mean 'iris'"),
        ({"source": "embeded"}, "train", ConfigError, r"did you mean 'embedded'"),
        ({"nmaes": ["iris"]}, "train", ConfigError, r"nmaes"),
        ({"eval_share": 2}, "train", ConfigError, r"eval_share"),
        ({"eval_share": 0}, "eval", ConfigError, r"no eval split"),
        ({"names": ["iris"]}, "eval", TaskError, r"eval side is empty"),
        ({"names": ["iris"], "kinds": ["regression"]}, "train", TaskError, r"train side is empty"),
        ({"source": "folder", "path": "/no/such"}, "train", TaskError, r"no such folder"),
        (7, "train", ConfigError, r"wrong type"),
        (None, "test", ConfigError, r"unknown split"),
    ],
)
def test_mistakes_are_named(config: Any, split: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build_tabular_source(config, split)


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="no task in"):
        build_tabular_source({"source": "folder", "path": str(tmp_path)}, "train")
