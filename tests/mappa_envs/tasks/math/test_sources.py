from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from mappa_envs.errors import ConfigError, TaskError
from mappa_envs.tasks.base import TaskSource
from mappa_envs.tasks.math.procedural import ProceduralSource
from mappa_envs.tasks.math.sources import (
    HubConfig,
    JsonlConfig,
    ProceduralConfig,
    ReasoningGymConfig,
    TasksConfig,
    build_source,
    parse_tasks_config,
)


def write(path: Path, count: int, word: str = "sum") -> str:
    rows = ({"prompt": f"The {word} {n} + 1?", "answer": n + 1, "id": f"{word}{n}"} for n in range(count))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def prompts(source: TaskSource, count: int | None = None) -> set[str]:
    return {source.task(i).prompt for i in range(count or source.size or 0)}


def test_no_config_is_the_procedural_source() -> None:
    source = build_source(None, "eval")
    assert isinstance(source, ProceduralSource) and source.split == "eval" and source.size is None
    assert source.task(5) == ProceduralSource("eval").task(5)


def test_fields_without_a_source_are_a_procedural_config() -> None:
    source = build_source({"families": ["gcd"], "levels": [2], "seed": 4, "size": 7}, "train")
    assert isinstance(source, ProceduralSource)
    assert (source.families, source.levels, source.seed, source.size) == (("gcd",), (2,), 4, 7)


def test_a_ready_source_is_returned_as_it_is() -> None:
    source = ProceduralSource("train")
    assert build_source(source, "eval") is source


def test_one_file_is_split_by_share(tmp_path: Path) -> None:
    config = JsonlConfig(path=write(tmp_path / "a.jsonl", 100), eval_share=0.3)
    train, evaluation = build_source(config, "train"), build_source(config, "eval")
    assert not prompts(train) & prompts(evaluation)
    assert len(prompts(train) | prompts(evaluation)) == 100


def test_two_files_are_the_two_splits(tmp_path: Path) -> None:
    config = {
        "source": "jsonl",
        "path": write(tmp_path / "a.jsonl", 3),
        "eval_path": write(tmp_path / "b.jsonl", 2, "total"),
    }
    assert build_source(config, "train").size == 3 and build_source(config, "eval").size == 2
    assert build_source(config, "eval").name == "b"


def test_a_file_can_be_for_one_split_only(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", 4)
    assert build_source(JsonlConfig(path=path, eval_share=1), "eval").size == 4
    assert build_source(JsonlConfig(path=path, eval_share=0), "train").size == 4
    for share, split in ((1, "train"), (0, "eval")):
        with pytest.raises(ConfigError, match=f"has no {split} split"):
            build_source(JsonlConfig(path=path, eval_share=share), split)  # type: ignore[arg-type]


def test_a_local_copy_of_a_hub_set_is_built(tmp_path: Path) -> None:
    (tmp_path / "test.jsonl").write_text('{"id": 1, "question": "What is 1 + 1?", "answer": 2.0}\n')
    config = HubConfig(name="amc_2023", path=str(tmp_path), eval_share=1)
    task = build_source(config, "eval").task(0)
    assert task.id == "1" and task.source == "amc_2023"


def test_the_reasoning_gym_source_is_built() -> None:
    pytest.importorskip("reasoning_gym")
    source = build_source({"source": "reasoning_gym", "generators": ["lcm"], "size": 3}, "eval")
    assert source.name == "reasoning_gym" and source.size == 3 and source.task(0).kind == "lcm"


def test_configs_survive_json_and_nest_in_other_configs() -> None:
    class Run(BaseModel):
        tasks: TasksConfig

    for config in (
        ProceduralConfig(families=("gcd",), levels=(1, 5)),
        JsonlConfig(path="a.jsonl", kind="topic"),
        HubConfig(name="aime_2025"),
        ReasoningGymConfig(seed=3),
    ):
        run = Run(tasks=config)
        assert Run.model_validate_json(run.model_dump_json()).tasks == config
        assert parse_tasks_config(config.model_dump()) == config


def test_configs_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        ProceduralConfig().seed = 2


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"source": "procedurl"}, "did you mean 'procedural'"),
        ({"source": 5}, "unknown task source"),
        ({"levles": [1]}, "levles: Extra inputs"),
        ({"seed": -1}, "seed: "),
        ({"source": "jsonl"}, "path: Field required"),
        ({"source": "jsonl", "path": "a", "eval_share": 2}, "eval_share: "),
        ({"source": "jsonl", "path": "a", "eval_path": "b", "eval_share": 0.5}, "leave them out"),
        ({"source": "jsonl", "path": "a", "policy": {"unit": "match"}}, "policy.unit: Extra inputs"),
        ({"source": "hub"}, "name: Field required"),
        ({"source": "hub", "name": "aime_25"}, "did you mean 'aime_2025'"),
        ({"families": ["gdc"]}, "did you mean 'gcd'"),
        ({"levels": [9]}, "bad levels"),
    ],
)
def test_wrong_configs_are_named_errors(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_source(fields, "train")


def test_wrong_types_splits_and_files_are_named_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="wrong type"):
        build_source(5, "train")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="unknown split"):
        build_source(None, "test")  # type: ignore[arg-type]
    with pytest.raises(TaskError, match="cannot read"):
        build_source({"source": "jsonl", "path": str(tmp_path / "gone.jsonl")}, "train")
