"""Vectorised environments give the texts of their parts, or refuse."""

from __future__ import annotations

from functools import partial

import gymnasium
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from small_team import team

import mappa_envs  # noqa: F401
from mappa_envs.errors import ConfigError
from mappa_envs.wrappers import TeamAsGym


def make() -> TeamAsGym:
    return TeamAsGym(team())


def texts(kind: type, **kwargs: bool) -> list[list[str]]:
    vector = kind([make, make], **kwargs)
    observations, _ = vector.reset(seed=[3, 4])
    seen = [list(observations["prompt"])]
    for action in ("one", "two", "three"):
        observations, rewards, *_ = vector.step((action, action + "!"))
        seen.append(list(observations["prompt"]))
        assert rewards.tolist() == [len(action) / 10, len(action + "!") / 10]
    vector.close()
    return seen


def test_processes_without_shared_memory_give_the_texts_of_one_process() -> None:
    alone = texts(SyncVectorEnv)
    assert texts(AsyncVectorEnv, shared_memory=False) == alone
    assert len({text for step in alone for text in step}) > 4, "the texts change"


@pytest.mark.parametrize(
    "make_vector",
    [
        partial(AsyncVectorEnv, [make, make]),
        partial(gymnasium.make_vec, "Mappa/MathChat-v0", num_envs=2, vectorization_mode="async"),
    ],
)
def test_text_in_shared_memory_is_refused_with_the_reason(make_vector: partial[object]) -> None:
    with pytest.raises(ConfigError, match=r"(?s)would never change.*shared_memory=False"):
        make_vector()
