from __future__ import annotations

from typing import Any

import pytest
from small_team import LengthJudge, team

from envs_registry import ConfigError, make, register
from mappa_envs.errors import ActionError
from mappa_envs.testing import check_faces_agree, trace
from mappa_envs.wrappers import TeamAsGym, TeamParallelEnv, gym_face, parallel_face

ID = "SmallTeam/ThinkSpeak-v0"
parallel = parallel_face(team)
gym = gym_face(team)
register(ID, team, parallel_entry_point=parallel, gym_entry_point=gym)


def test_the_faces_of_a_team_with_a_layer_agree() -> None:
    check_faces_agree(ID, seeds=range(5))


def test_the_faces_record_the_same_transcript() -> None:
    records = []
    for face in ("aec", "parallel", "gym"):
        env: Any = make(ID, face=face).unwrapped  # type: ignore[call-overload]
        trace(env, seed=6)
        records.append(env.transcript.to_json())
    assert records[0] == records[1] == records[2]
    assert len(records[0]["turns"]) in (3, 6) and records[0]["outcome"] is not None


@pytest.mark.parametrize(("face", "kind"), [(parallel, TeamParallelEnv), (gym, TeamAsGym)])
def test_a_face_takes_the_keywords_of_its_team(face: Any, kind: type) -> None:
    judge = LengthJudge()
    env = face(judge=judge)
    assert type(env) is kind and env.aec_env.judge is judge


@pytest.mark.parametrize("face", ["aec", "parallel", "gym"])
def test_a_misspelt_keyword_is_found_on_every_face(face: Any) -> None:
    with pytest.raises(ConfigError, match="did you mean 'render_mode'"):
        make(ID, face=face, render_mod="ansi")


def test_agents_of_a_layer_can_act_in_any_order_in_one_parallel_step_only() -> None:
    env = make(ID, face="parallel")
    env.reset(seed=0)
    env.step({"thinker_1": "bb", "thinker_0": "a"})
    assert [t.agent for t in env.transcript.turns] == ["thinker_0", "thinker_1"]
    with pytest.raises(ActionError):
        env.step({"thinker_0": "again"})
