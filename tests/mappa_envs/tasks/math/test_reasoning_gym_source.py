from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np
import pytest

from mappa_envs.errors import ConfigError, TaskError
from mappa_envs.grading.answers import parse_gold
from mappa_envs.tasks.base import TaskSource
from mappa_envs.tasks.math.procedural import split_of
from mappa_envs.tasks.math.reasoning_gym_source import GENERATORS, ReasoningGymSource


@pytest.fixture(scope="module", autouse=True)
def library() -> Any:
    return pytest.importorskip("reasoning_gym")


def test_every_generator_gives_numbers_that_can_be_graded() -> None:
    source = ReasoningGymSource("train", 3)
    assert isinstance(source, TaskSource)
    tasks = [source.task(i) for i in range(4 * len(GENERATORS))]
    assert [task.kind for task in tasks[: len(GENERATORS)]] == list(GENERATORS)
    assert all(parse_gold(answer) for task in tasks for answer in task.answers)
    assert len({task.prompt for task in tasks}) > 0.9 * len(tasks)
    assert tasks[7].source == "reasoning_gym" and tasks[7].id == "reasoning_gym-train-3-7"


def test_tasks_do_not_depend_on_the_order_of_calls_or_touch_global_generators() -> None:
    random.seed(5)
    np.random.seed(5)
    before = (random.getstate(), np.random.get_state()[1].tolist())  # type: ignore[index, union-attr]
    one, other = ReasoningGymSource("eval", 1), ReasoningGymSource("eval", 1)
    assert [one.task(i) for i in range(20)] == [other.task(i) for i in reversed(range(20))][::-1]
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # type: ignore[index, union-attr]


def test_splits_share_no_statement() -> None:
    train, evaluation = (ReasoningGymSource(split, 0, ["gcd", "lcm"]) for split in ("train", "eval"))
    seen = {train.task(i).prompt for i in range(150)}
    held = {evaluation.task(i).prompt for i in range(50)}
    assert not seen & held
    assert {split_of(prompt) for prompt in held} == {"eval"}


def test_a_finite_source_ends() -> None:
    source = ReasoningGymSource("train", 0, ["gcd"], size=2)
    assert len(source) == source.size == 2
    for index in (2, -1, True):
        with pytest.raises(TaskError, match="no such task"):
            source.task(index)
    with pytest.raises(TypeError, match="endless"):
        len(ReasoningGymSource("train", 0, ["gcd"]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": "dev"}, "unknown split"),
        ({"seed": -1}, "bad seed"),
        ({"size": 0}, "bad size"),
        ({"generators": ["gdc"]}, "did you mean 'gcd'"),
        ({"generators": ["sudoku"]}, "not one with numbers"),
        ({"generators": "gcd"}, "non-empty list"),
        ({"generators": ["gcd", "gcd"]}, "distinct names"),
    ],
)
def test_bad_arguments_are_named_errors(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ReasoningGymSource(**arguments)


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises(ConfigError, match=r'pip install "mappa-gym\[reasoning-gym\]"'):
        ReasoningGymSource()
