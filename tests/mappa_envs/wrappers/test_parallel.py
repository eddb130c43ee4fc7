from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test
from small_team import THINKERS, team

from mappa_envs.errors import ActionError, ConfigError, EpisodeError
from mappa_envs.judges.outcome import OutcomeJudge
from mappa_envs.testing import check_determinism
from mappa_envs.wrappers import TeamParallelEnv

BOTH = {"thinker_0": "a", "thinker_1": "bb"}
ALL = {*THINKERS, "speaker_0"}


def started() -> TeamParallelEnv:
    env = TeamParallelEnv(team())
    env.reset(seed=3)
    return env


def test_pettingzoos_parallel_api_and_seed_tests_pass() -> None:
    parallel_api_test(TeamParallelEnv(team()), num_cycles=50)
    parallel_seed_test(lambda: TeamParallelEnv(team()))


def test_the_episode_is_deterministic_to_its_end() -> None:
    check_determinism(lambda: TeamParallelEnv(team()))


def test_a_step_takes_one_layer_and_rewards_it_at_once() -> None:
    env = started()
    assert env.layer == THINKERS
    observations, rewards, terminations, truncations, infos = env.step(BOTH)
    assert rewards == {"thinker_0": 0.1, "thinker_1": 0.2, "speaker_0": 0.0}
    assert infos["thinker_1"]["verdict"]["score"] == 2.0
    assert not any(terminations.values()) and not any(truncations.values())
    assert env.layer == ("speaker_0",)
    assert "bb" in observations["speaker_0"]["prompt"]
    assert "bb" in infos["speaker_0"]["messages"][-1]["content"]


def test_agents_of_a_layer_do_not_see_each_other_in_it() -> None:
    env = started()
    env.step({"thinker_0": "secret of zero", "thinker_1": "secret of one"})
    observations, *_ = env.step({"speaker_0": "hello"})
    assert "secret of one" not in observations["thinker_0"]["prompt"]
    assert "hello" in observations["thinker_0"]["prompt"]


def test_messages_are_given_to_those_who_act_next_only() -> None:
    env = TeamParallelEnv(team())
    _, infos = env.reset(seed=0)
    assert {a for a, info in infos.items() if info["messages"]} == set(THINKERS)
    *_, infos = env.step(BOTH)
    assert {a for a, info in infos.items() if info["messages"]} == {"speaker_0"}


def test_every_step_gives_five_dicts_with_every_agent_and_five_empty_ones_after_the_end() -> None:
    env = started()
    while env.agents:
        results = env.step(dict.fromkeys(env.agents, "x"))
        assert len(results) == 5 and all(set(r) == ALL for r in results)
    assert all(results[2].values())
    assert env.step({}) == ({}, {}, {}, {}, {})
    with pytest.raises(EpisodeError, match="reset"):
        env.step({"speaker_0": "more"})


def test_what_was_kept_of_a_step_is_not_changed_by_later_steps_or_by_the_caller() -> None:
    env = started()
    results = env.step(BOTH)
    kept = copy.deepcopy(results)
    env.step({"speaker_0": "hello"})
    assert results == kept
    *_, infos = env.step({"thinker_0": "c", "thinker_1": "d"})
    infos["speaker_0"]["messages"].clear()
    assert env.aec_env.infos["speaker_0"]["messages"]


def test_actions_of_others_are_ignored() -> None:
    one, other = started(), started()
    assert one.step(BOTH) == other.step({**BOTH, "speaker_0": "ignored"})


def test_an_ended_environment_can_be_reset() -> None:
    env = started()
    env.step(BOTH)
    env.step({"speaker_0": "DONE"})
    assert env.agents == [] and env.layer == ()
    observations, _ = env.reset(seed=1)
    assert set(observations) == ALL and set(env.agents) == ALL


def test_an_episode_judge_rewards_everybody_at_the_end() -> None:
    env = TeamParallelEnv(team(OutcomeJudge()))
    env.reset(seed=0)
    assert set(env.step(BOTH)[1].values()) == {0.0}
    assert env.step({"speaker_0": "DONE"})[1] == dict.fromkeys(ALL, 1.0)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ({"thinker_0": "a"}, r"no action for 'thinker_1'"),
        ({}, "no action for 'thinker_0' and 'thinker_1'"),
        ({**BOTH, "thinker_2": "c"}, r"no agent 'thinker_2'(.|\n)*did you mean"),
        ({**BOTH, "thinker_1": 7}, "is not a string"),
        ({**BOTH, "thinker_1": None}, "is not a string"),
        ({**BOTH, "thinker_1": "\ud800"}, "not valid Unicode"),
        ("text", "a dict with a string for"),
        (None, "a dict with a string for"),
    ],
)
def test_a_bad_action_is_refused_and_changes_nothing(actions: Any, message: str) -> None:
    env = started()
    with pytest.raises(ActionError, match=message):
        env.step(actions)
    assert env.layer == THINKERS and env.transcript.turns == ()
    env.step(BOTH)


def test_a_step_before_reset_is_refused() -> None:
    env = TeamParallelEnv(team())
    for actions in ({}, BOTH):
        with pytest.raises(EpisodeError, match="reset"):
            env.step(actions)


def test_only_a_team_can_be_shown() -> None:
    with pytest.raises(ConfigError, match="a TeamEnv"):
        TeamParallelEnv("team")  # type: ignore[arg-type]


def test_rendering_and_closing_are_the_teams() -> None:
    env = TeamParallelEnv(team(render_mode="ansi"))
    env.reset(seed=0)
    env.step(BOTH)
    assert "bb" in (env.render() or "")
    env.close()
    env.close()


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_a_copy_plays_the_same_episode(copier: Any) -> None:
    env = TeamParallelEnv(team())
    twin = copier(env)
    assert env.reset(seed=5) == twin.reset(seed=5)
    assert env.step(BOTH) == copier(twin).step(BOTH)
