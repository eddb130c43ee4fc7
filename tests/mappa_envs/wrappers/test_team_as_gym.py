from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env
from small_team import team

from mappa_envs.errors import ActionError, ConfigError, EpisodeError
from mappa_envs.judges.outcome import OutcomeJudge
from mappa_envs.testing import check_determinism
from mappa_envs.wrappers import TeamAsGym


def started(**kwargs: Any) -> TeamAsGym:
    env = TeamAsGym(team(**kwargs))
    env.reset(seed=3)
    return env


def test_gymnasiums_checker_passes_with_every_render_mode(capsys: pytest.CaptureFixture[str]) -> None:
    spec = gymnasium.envs.registration.EnvSpec(
        "Toy/ThinkSpeak-v0", entry_point=lambda render_mode=None: TeamAsGym(team(render_mode=render_mode))
    )
    check_env(gymnasium.make(spec).unwrapped)


def test_the_episode_is_deterministic_to_its_end() -> None:
    check_determinism(lambda: TeamAsGym(team()))


def test_the_team_plays_its_roles_in_turn() -> None:
    env = TeamAsGym(team())
    observation, info = env.reset(seed=3)
    assert info["agent"] == "thinker_0" and observation["role"] == "thinker"
    assert info["messages"][0] == {"role": "system", "content": "Think."}
    order, ended = [], False
    while not ended:
        observation, reward, ended, truncated, info = env.step("hello")
        order.append((info["acted"], info["agent"]))
        assert observation in env.observation_space
        assert reward == 0.5 == info["verdict"]["reward"] and truncated is False
    assert order == [
        ("thinker_0", "thinker_1"),
        ("thinker_1", "speaker_0"),
        ("speaker_0", "thinker_0"),
        ("thinker_0", "thinker_1"),
        ("thinker_1", "speaker_0"),
        ("speaker_0", None),
    ]
    assert info["outcome"]["success"] is False and info["messages"] == []


def test_a_role_of_the_same_layer_does_not_see_the_action_before_it() -> None:
    env = started()
    observation, *_ = env.step("secret")
    assert "secret" not in observation["prompt"]
    observation, *_ = env.step("other")
    assert "secret" in observation["prompt"] and "other" in observation["prompt"]


def test_the_info_of_a_step_belongs_to_the_agent_that_acted() -> None:
    env = started()
    *_, info = env.step("")
    assert info["verdict"]["status"] == "failed" and info["acted"] == "thinker_0"
    *_, info = env.step("x")
    assert info["verdict"]["status"] == "ok" and info["acted"] == "thinker_1"


def test_an_episode_judge_gives_all_final_verdicts_at_the_end() -> None:
    env = started(judge=OutcomeJudge())
    assert "final_verdicts" not in env.step("a")[4]
    env.step("b")
    _, reward, ended, _, info = env.step("DONE")
    assert ended and reward == 1.0
    assert [v["score"] for v in info["final_verdicts"]] == [10.0, 10.0, 10.0]


def test_infos_are_copies() -> None:
    env = started()
    *_, info = env.step("a")
    kept = copy.deepcopy(info)
    env.step("b")
    assert info == kept
    info["messages"].clear()
    assert env.aec_env.messages("thinker_1")


def test_stepping_without_a_running_episode_is_refused() -> None:
    env = TeamAsGym(team())
    with pytest.raises(EpisodeError, match="reset"):
        env.step("a")
    env.reset(seed=0)
    for action in ("a", "b", "DONE"):
        env.step(action)
    with pytest.raises(EpisodeError, match="reset"):
        env.step("c")
    env.reset()
    env.step("c")


@pytest.mark.parametrize("action", [None, 3, b"a", ["a"], "\ud800", "x" * 200_001])
def test_a_bad_action_is_refused_and_changes_nothing(action: Any) -> None:
    env = started()
    with pytest.raises(ActionError):
        env.step(action)
    assert env.transcript.turns == ()


@pytest.mark.parametrize("seed", [-1, "1", 1.5, True])
def test_a_bad_seed_is_refused_by_name(seed: Any) -> None:
    with pytest.raises(ConfigError, match="seed"):
        TeamAsGym(team()).reset(seed=seed)


def test_only_a_team_can_be_shown() -> None:
    with pytest.raises(ConfigError, match="a TeamEnv"):
        TeamAsGym(None)  # type: ignore[arg-type]


def test_seeding_its_action_space_does_not_seed_the_agents() -> None:
    env = TeamAsGym(team())
    assert env.action_space is not env.aec_env.action_space("thinker_0")
    assert env.action_space == env.aec_env.action_space("thinker_0")


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_a_copy_plays_the_same_episode(copier: Any) -> None:
    env = TeamAsGym(team())
    twin = copier(env)
    assert env.reset(seed=5) == twin.reset(seed=5)
    assert env.step("a") == copier(twin).step("a")
