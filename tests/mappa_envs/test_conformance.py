"""Every built-in id keeps PettingZoo's, Gymnasium's and our own contracts, on every face."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import warnings
from typing import Any

import gymnasium
import pettingzoo
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

import envs_registry
import mappa_envs
from mappa_envs.errors import ActionError, EpisodeError
from mappa_envs.testing import (
    check_across_processes,
    check_determinism,
    check_faces_agree,
    scripted_policy,
    trace,
)

SPECS = mappa_envs.registered("Mappa")
IDS = [spec.id for spec in SPECS]
FACES: tuple[Any, ...] = ("aec", "parallel", "gym")

every_id = pytest.mark.parametrize("id", IDS)
every_face = pytest.mark.parametrize("face", FACES)

# Text in a Dict is neither an array nor a Box: PettingZoo's api_test warns, and no text can help it.
UNAVOIDABLE = ("Observation is not a NumPy array", "space for each agent probably should be")

CODE = (
    "```python\nprint(6 * 7)\n```",
    "```python\nraise ValueError('no')\n```",
    "No code, but \\boxed{42}.",
    "```python\nx = 1\n```\nThe answer is \\boxed{1}.",
)


def traces(id: str, face: Any, seeds: tuple[int, ...]) -> list[Any]:
    env = mappa_envs.make(id, face=face)
    played = [trace(env, seed=seed) for seed in seeds]
    env.close()
    return played


def test_there_is_something_to_check_and_it_has_every_face() -> None:
    assert "Mappa/MathChat-v0" in IDS
    assert all(spec.faces == FACES for spec in SPECS)


@every_id
class TestPettingZoo:
    def test_api(self, id: str) -> None:
        with warnings.catch_warnings():
            for text in UNAVOIDABLE:
                warnings.filterwarnings("ignore", message=f".*{text}")
            api_test(mappa_envs.make(id), num_cycles=10)

    def test_seed(self, id: str) -> None:
        seed_test(lambda: mappa_envs.make(id), num_cycles=10)

    def test_parallel_api(self, id: str) -> None:
        parallel_api_test(mappa_envs.make(id, face="parallel"), num_cycles=20)

    def test_parallel_seed(self, id: str) -> None:
        parallel_seed_test(lambda: mappa_envs.make(id, face="parallel"), num_cycles=10)

    def test_the_same_id_makes_the_same_episode_from_pettingzoos_registry(self, id: str) -> None:
        ours, theirs = mappa_envs.make(id), pettingzoo.make("aec", id)
        assert trace(ours, seed=1) == trace(theirs, seed=1)
        ours, theirs = mappa_envs.make(id, face="parallel"), pettingzoo.make("parallel", id)
        assert trace(ours, seed=1) == trace(theirs, seed=1)


@every_id
class TestGymnasium:
    def test_check_env(self, id: str, capsys: pytest.CaptureFixture[str]) -> None:
        check_env(gymnasium.make(id).unwrapped)

    def test_the_same_id_makes_the_same_episode_from_gymnasiums_registry(self, id: str) -> None:
        assert trace(gymnasium.make(id), seed=1) == trace(mappa_envs.make(id, face="gym"), seed=1)

    def test_a_vector_environment_gives_the_texts_of_its_parts(self, id: str) -> None:
        vector = gymnasium.make_vec(id, num_envs=2, vectorization_mode="sync")
        observations, _ = vector.reset(seed=[3, 4])
        single = gymnasium.make(id)
        expected = [single.reset(seed=seed)[0]["prompt"] for seed in (3, 4)]
        assert list(observations["prompt"]) == expected
        vector.close()


@every_id
class TestDeterminism:
    @every_face
    def test_seed_and_actions_fix_the_episode_to_its_end(self, id: str, face: Any) -> None:
        check_determinism(lambda: mappa_envs.make(id, face=face))

    def test_string_hashes_have_no_say(self, id: str) -> None:
        check_across_processes(id, seeds=(0, 1, 2), hash_seeds=("0", "1"))

    def test_the_three_faces_agree(self, id: str) -> None:
        check_faces_agree(id)

    def test_different_seeds_give_different_tasks(self, id: str) -> None:
        env = mappa_envs.make(id)
        tasks = set()
        for seed in range(10):
            env.reset(seed=seed)
            tasks.add(env.transcript.task_id)
        assert len(tasks) > 1

    def test_without_a_seed_the_tasks_go_on(self, id: str) -> None:
        env = mappa_envs.make(id)
        tasks = []
        for seed in (5, None, None, None, 5, None, None, None):
            env.reset(seed=seed)
            tasks.append(env.transcript.task_id)
        assert tasks[:4] == tasks[4:] and len(set(tasks)) > 1

    def test_agent_code_changes_none_of_it(self, id: str) -> None:
        policy = scripted_policy(1, CODE)
        env = mappa_envs.make(id)
        played = trace(env, seed=0, policy=policy)
        env.close()
        ran = {t["status"] for r in played for info in r["infos"].values() for t in info.get("tools", [])}
        assert ran & {"ok", "error"}
        check_determinism(lambda: mappa_envs.make(id), seeds=(0,), policy=policy)
        check_faces_agree(id, seeds=(0,), policy=policy)


@every_id
@every_face
class TestCopies:
    @pytest.mark.parametrize(
        "copier", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["deepcopy", "pickle"]
    )
    def test_a_copy_made_before_reset_plays_the_same_episode(self, id: str, face: Any, copier: Any) -> None:
        env = mappa_envs.make(id, face=face).unwrapped
        assert trace(copier(env), seed=2) == trace(env, seed=2)

    def test_a_spawned_worker_plays_the_same_episode(self, id: str, face: Any) -> None:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.apply(traces, (id, face, (2,))) == traces(id, face, (2,))


@every_id
class TestMisuse:
    def test_a_step_before_reset_or_after_the_end_is_named(self, id: str) -> None:
        env = mappa_envs.make(id)
        with pytest.raises(EpisodeError, match="reset"):
            env.step("x")
        trace(env, seed=0)
        with pytest.raises(EpisodeError, match="reset"):
            env.step("x")

    @pytest.mark.parametrize("action", [None, 1, b"x", ["x"], "\ud800"])
    def test_an_action_of_another_type_is_refused_and_the_episode_goes_on(self, id: str, action: Any) -> None:
        env = mappa_envs.make(id)
        env.reset(seed=0)
        with pytest.raises(ActionError):
            env.step(action)
        env.step("x")

    @every_face
    def test_a_misspelt_keyword_is_answered_with_the_right_one(self, id: str, face: Any) -> None:
        with pytest.raises(envs_registry.ConfigError, match="did you mean 'topology'"):
            mappa_envs.make(id, face=face, topolgy="chain")

    def test_no_clock_cost_or_id_is_in_infos(self, id: str) -> None:
        for record in trace(mappa_envs.make(id), seed=0):
            for info in record["infos"].values():
                assert set(info) <= {"messages", "verdict", "tools", "outcome"}
                assert "cost" not in info.get("verdict", {})
