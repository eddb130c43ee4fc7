from __future__ import annotations

from typing import Any

import pytest
from pettingzoo.test import parallel_seed_test
from planted_envs import STEPS, Talk, TalkGym, TalkParallel, TalkTurns

import envs_registry
from mappa_envs.errors import ConfigError
from mappa_envs.spaces import AnyText
from mappa_envs.testing import (
    CheckError,
    check_across_processes,
    check_determinism,
    check_faces_agree,
    scripted_policy,
    trace,
)


@pytest.mark.parametrize("kind", [Talk, TalkParallel, TalkTurns, TalkGym])
def test_a_sound_environment_passes(kind: type) -> None:
    check_determinism(kind)


def test_randomness_from_the_second_step_passes_the_stock_test_and_fails_ours() -> None:
    def make() -> Any:
        return TalkParallel("random_from_second_step")

    parallel_seed_test(make)
    with pytest.raises(CheckError, match="'rewards' of step 2"):
        check_determinism(make)


@pytest.mark.parametrize(
    ("kind", "fault", "field"),
    [
        (Talk, "random_from_second_step", "rewards"),
        (TalkGym, "random_from_second_step", "reward"),
        (Talk, "remembers_episodes", "observation"),
    ],
)
def test_a_planted_fault_is_found_and_its_field_named(kind: Any, fault: str, field: str) -> None:
    with pytest.raises(CheckError, match=f"'{field}' of step"):
        check_determinism(lambda: kind(fault))


def test_a_random_length_is_found() -> None:
    with pytest.raises(CheckError, match="differ"):
        check_determinism(lambda: Talk("random_length"), seeds=range(20))


def test_a_reward_that_depends_on_string_hashes_is_found_between_processes_only() -> None:
    check_determinism(lambda: Talk("string_hash"))
    with pytest.raises(CheckError, match="PYTHONHASHSEED 0 and 1"):
        check_across_processes("planted_envs:Planted/string_hash-v0", seeds=(0,))
    check_across_processes("planted_envs:Planted/none-v0", seeds=(0,))


def test_a_process_that_fails_is_reported_with_its_error() -> None:
    with pytest.raises(CheckError, match="EntryPointError"):
        check_across_processes("planted_envs:Planted/crash-v0", seeds=(0,))


def test_a_face_that_differs_is_found() -> None:
    check_faces_agree("Planted/none-v0")
    with pytest.raises(CheckError, match="faces aec and gym"):
        check_faces_agree("Planted/gym_differs-v0")


def test_a_trace_reaches_the_end_and_shows_dead_steps() -> None:
    records = trace(Talk(), seed=4)
    assert [r.get("action") is None for r in records] == [True, *[False] * STEPS, True, True]
    assert records[1]["observation"] == {"prompt": "seed 4 turn 0"}
    assert records[-1]["agents"] == []


def test_the_scripted_policy_is_a_function_of_its_arguments() -> None:
    one, other = scripted_policy(3), scripted_policy(3)
    space = AnyText(100)
    acts = [one("talker_0", turn, space) for turn in range(30)]
    assert acts == [other("talker_0", turn, space) for turn in range(30)]
    assert len(set(acts)) > 2


def test_only_environments_are_played() -> None:
    with pytest.raises(ConfigError, match="AECEnv, ParallelEnv or"):
        trace("Planted/none-v0", seed=0)


def test_the_planted_ids_are_registered_here_too() -> None:
    assert len(envs_registry.registered("Planted")) == 4
