from __future__ import annotations

from collections.abc import Sequence

import pytest
from gymnasium.utils.env_checker import check_env
from small_team import team
from teams import EndJudge, make_env

from mappa_envs.errors import ActionError, ConfigError, EpisodeError
from mappa_envs.testing import check_determinism, trace
from mappa_envs.topology import Act, Pick, Role, Topology, View
from mappa_envs.transcript import Message
from mappa_envs.wrappers import RoleEnv


def others(agent: str, messages: Sequence[Message]) -> str:
    """Tells who speaks and how long a chat it saw."""
    return f"{agent} saw {len(messages)}"


def test_the_others_act_before_and_after_the_role() -> None:
    env = RoleEnv(team(), "speaker_0", others)
    observation, info = env.reset(seed=1)
    assert observation["role"] == "speaker" and "thinker_1 saw 2" in observation["prompt"]
    assert info["agent"] == "speaker_0" and info["messages"][0] == {"role": "system", "content": "Speak."}
    observation, reward, terminated, truncated, info = env.step("go on")
    assert (reward, terminated, truncated) == (0.5, False, False) and info["verdict"]["score"] == 5
    assert "thinker_0 saw 4" in observation["prompt"], "the thinkers acted again"
    _, reward, terminated, _, info = env.step("DONE")
    assert (reward, terminated) == (0.4, True)
    assert info["agent"] is None and info["outcome"]["success"] is True
    assert [turn.agent for turn in env.transcript.turns] == ["thinker_0", "thinker_1", "speaker_0"] * 2


def test_a_role_of_a_layer_and_its_colleagues_do_not_see_each_others_turns_of_it() -> None:
    seen: list[str] = []

    def peeking(agent: str, messages: Sequence[Message]) -> str:
        seen.append("\n".join(message["content"] for message in messages))
        return "DONE" if agent == "speaker_0" else agent

    env = RoleEnv(team(), "thinker_1", peeking)
    env.reset(seed=1)
    assert not seen, "nobody acts before the first layer"
    _, reward, terminated, _, _ = env.step("secret")
    assert terminated and reward == 0.6
    assert "secret" not in seen[0], "the other thinker's chat"
    assert "secret" in seen[1], "the speaker's chat"


def test_a_role_that_acts_once_gets_its_reward_and_the_outcome_at_once() -> None:
    env = RoleEnv(make_env(), "solver_0", lambda agent, messages: "done")
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step("a plan")
    assert terminated and reward == pytest.approx(0.06) and info["outcome"]["success"] is True


def test_a_judge_of_whole_episodes_gives_the_reward_at_the_end() -> None:
    env = RoleEnv(make_env(judge=EndJudge()), "verifier_0", lambda agent, messages: "text")
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step("done")
    assert terminated and info["verdict"]["status"] == "ok"
    assert reward == len(env.transcript.turns) / 10


def test_gymnasium_accepts_it_and_it_is_deterministic() -> None:
    check_env(RoleEnv(team(), "thinker_1", others), skip_render_check=True)
    check_determinism(lambda: RoleEnv(team(), "thinker_1", others))
    assert trace(RoleEnv(team(), "speaker_0", others), seed=0)


def test_mistakes_are_named_and_leave_the_episode_as_it_was() -> None:
    with pytest.raises(ConfigError, match="did you mean 'speaker_0'"):
        RoleEnv(team(), "speaker", others)
    with pytest.raises(ConfigError, match="shows a TeamEnv"):
        RoleEnv(RoleEnv(team(), "speaker_0", others), "speaker_0", others)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="others is no policy"):
        RoleEnv(team(), "speaker_0", "text")  # type: ignore[arg-type]
    env = RoleEnv(team(), "speaker_0", others)
    with pytest.raises(EpisodeError, match="reset"):
        env.step("x")
    env.reset(seed=1)
    with pytest.raises(ActionError):
        env.step(3)  # type: ignore[arg-type]
    assert env.step("DONE")[2]


def test_a_role_that_never_gets_a_turn_is_named() -> None:
    sees = (View("all"),)
    roles = tuple(Role(name, "x", duty="answer", sees=sees) for name in ("hub", "left", "right"))
    star = Topology("star", roles, Pick("hub", (Act("left"), Act("right")), last="right", rounds=1), "right")
    env = RoleEnv(make_env(star), "left_0", lambda agent, messages: "right")
    with pytest.raises(EpisodeError, match="ended without a turn of 'left_0'"):
        env.reset(seed=0)
