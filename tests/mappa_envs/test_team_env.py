from __future__ import annotations

import copy
import json
import pickle
import sys
from pathlib import Path

import pytest
from pettingzoo.test import api_test, seed_test

sys.path.insert(0, str(Path(__file__).parent))
from teams import EndJudge, LengthJudge, make_env

from envs_registry.errors import ConfigError
from mappa_envs import background
from mappa_envs.errors import ActionError, EpisodeError, TaskError
from mappa_envs.topologies import CHAIN
from mappa_envs.topology import Act, Chain, Layer, Role, Topology, View

RUNS = "```python\nprint(6 * 7)\n```"
BREAKS = "```python\nundefined\n```"

DEBATE = Topology(
    name="debate",
    roles=(Role("debater", "Argue.", duty="answer"), Role("chair", "Decide.", duty="answer", sees=(View("debater"),))),
    flow=Chain((Layer((Act("debater"), Act("debater", seat=1))), Act("chair"))),
    answer_role="chair",
)


def test_a_reward_is_known_when_step_returns() -> None:
    env = make_env()
    env.reset(seed=0)
    for action in ("x" * 50, RUNS, "done"):
        agent = env.agent_selection
        env.step(action)
        assert env.rewards == {a: (len(action) / 100 if a == agent else 0.0) for a in env.agents}
        assert env.infos[agent]["verdict"]["reward"] == len(action) / 100
    assert env.terminations == dict.fromkeys(env.possible_agents, True)
    assert env.infos["solver_0"]["outcome"]["success"] is True


def test_each_role_sees_what_its_views_let_through() -> None:
    env = make_env()
    env.reset(seed=0)
    env.step("SECRET PLAN")
    assert "SECRET PLAN" in env.observe("coder_0")["prompt"]
    env.step(BREAKS)
    assert env.agent_selection == "coder_0"
    own = env.messages("coder_0")
    assert [m["role"] for m in own] == ["system", "user", "assistant", "user"]
    assert own[2]["content"] == BREAKS
    assert "NameError" in own[3]["content"]
    env.step(RUNS)
    seen = env.observe("verifier_0")["prompt"]
    assert "Output:\n42" in seen
    assert "SECRET PLAN" not in seen
    assert "NameError" not in seen
    env.close()


def test_kernels_keep_variables_between_an_agents_turns() -> None:
    env = make_env()
    env.reset(seed=0)
    env.step("plan")
    env.step("```python\nx = 41\nundefined\n```")
    env.step("```python\nprint(x + 1)\n```")
    assert env.transcript.turns[-1].tools[0].output.strip() == "42"
    assert env.transcript.sandbox_level is not None
    env.close()


def test_a_coder_without_code_is_told_so_and_gets_its_second_turn() -> None:
    env = make_env()
    env.reset(seed=0)
    env.step("plan")
    env.step("no code at all")
    assert env.agent_selection == "coder_0"
    assert env.transcript.turns[-1].tools[0].status == "missing"
    assert "nothing was run" in env.messages("coder_0")[-1]["content"]


def test_agents_of_one_layer_do_not_see_each_other() -> None:
    env = make_env(DEBATE)
    env.reset(seed=0)
    assert env.layer == ("debater_0", "debater_1")
    env.step("first argument")
    assert env.agent_selection == "debater_1"
    assert "first argument" not in env.observe("debater_1")["prompt"]
    env.step("second argument")
    chair = env.observe("chair_0")["prompt"]
    assert "Debater debater_0 wrote:\nfirst argument" in chair
    assert "Debater debater_1 wrote:\nsecond argument" in chair


def test_a_layer_can_act_at_once() -> None:
    env = make_env(DEBATE)
    env.reset(seed=0)
    background.run(env.layer_async({"debater_1": "b" * 20, "debater_0": "a" * 10}))
    assert env.layer == ("chair_0",)
    assert [t.agent for t in env.transcript.turns] == ["debater_0", "debater_1"]
    assert (env.rewards["debater_0"], env.rewards["debater_1"]) == (0.1, 0.2)


def test_a_failed_verdict_is_flagged_and_pays_nothing() -> None:
    env = make_env()
    env.reset(seed=0)
    env.step("please fail")
    assert env.rewards["solver_0"] == 0.0
    assert env.infos["solver_0"]["verdict"]["status"] == "failed"


def test_a_judge_of_episodes_pays_everybody_at_the_end() -> None:
    env = make_env(DEBATE, EndJudge())
    env.reset(seed=0)
    env.step("a")
    assert env.infos["debater_0"]["verdict"]["status"] == "skipped"
    env.step("b")
    env.step("done")
    assert env.rewards == dict.fromkeys(env.possible_agents, 0.3)
    assert [env.transcript.verdict(i).score for i in range(3)] == [3.0] * 3


@pytest.mark.parametrize(
    ("setting", "told"), [("all", ["solver_0", "coder_0", "verifier_0"]), ("answer", ["verifier_0"]), ("none", [])]
)
def test_ground_truth_reaches_the_judge_as_configured(setting: str, told: list[str]) -> None:
    judge = LengthJudge()
    env = make_env(judge=judge, ground_truth=setting)
    env.reset(seed=0)
    for action in ("plan", RUNS, "done"):
        env.step(action)
    assert [r.agent for r in judge.requests if r.truth is not None] == told


def test_the_same_seed_draws_the_same_task_and_an_option_chooses_one() -> None:
    env = make_env()
    drawn = []
    for seed in (5, 5, 6, 7, 8, 9):
        env.reset(seed=seed)
        drawn.append(env.task.id)
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) > 1
    env.reset(options={"task_index": 2})
    assert env.task.id == "sum-2"


@pytest.mark.parametrize("action", [3, None, b"bytes", ["list"]])
def test_an_action_that_is_not_a_string_is_refused_and_nothing_is_lost(action: object) -> None:
    env = make_env()
    env.reset(seed=0)
    with pytest.raises(ActionError, match="is not a string"):
        env.step(action)  # type: ignore[arg-type]
    env.step("goes on")
    assert len(env.transcript.turns) == 1


def test_unencodable_and_endless_actions_are_refused() -> None:
    env = make_env()
    env.reset(seed=0)
    with pytest.raises(ActionError, match="not valid Unicode"):
        env.step("\ud800")
    with pytest.raises(ActionError, match="too long"):
        env.step("x" * 200_001)


def test_an_action_for_the_wrong_agent_is_refused() -> None:
    env = make_env()
    env.reset(seed=0)
    with pytest.raises(ActionError, match="'verifier_0' cannot act now"):
        background.run(env.layer_async({"verifier_0": "me first"}))
    assert env.agent_selection == "solver_0"


def test_calls_at_the_wrong_time_are_named() -> None:
    env = make_env(DEBATE)
    with pytest.raises(EpisodeError, match=r"before reset"):
        env.step("x")
    with pytest.raises(EpisodeError, match="no episode yet"):
        _ = env.transcript
    env.reset(seed=0)
    for action in ("a", "b", "c"):
        env.step(action)
    with pytest.raises(EpisodeError, match="has terminated"):
        env.step("more")
    for _ in env.possible_agents:
        env.step(None)
    with pytest.raises(EpisodeError, match="after the end"):
        env.step("more")
    with pytest.raises(EpisodeError, match="after the end"):
        env.step(None)


@pytest.mark.parametrize(
    ("seed", "options", "error"),
    [
        (-1, None, "bad seed"),
        ("7", None, "bad seed"),
        (0, {"task_index": -1}, "bad task_index"),
        (0, {"task_index": "2"}, "bad task_index"),
        (0, {"task_idx": 1}, "use 'task_index'"),
    ],
)
def test_bad_seeds_and_options_are_named(seed: object, options: object, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        make_env().reset(seed=seed, options=options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kwargs", "error"),
    [
        ({"render_mode": "rgb_array"}, "render_mode"),
        ({"ground_truth": "some"}, "ground_truth"),
        ({"judge": "strict"}, "judge is of the wrong type"),
    ],
)
def test_bad_arguments_are_named(kwargs: dict[str, object], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        make_env(**kwargs)  # type: ignore[arg-type]


def test_infos_are_fresh_plain_and_without_costs() -> None:
    env = make_env()
    env.reset(seed=0)
    kept = env.infos
    before = json.dumps(kept, sort_keys=True)
    env.step("plan")
    assert json.dumps(kept, sort_keys=True) == before
    assert "cost" not in json.dumps(env.infos)


def test_rendering_shows_each_turn_with_its_score(capsys: pytest.CaptureFixture[str]) -> None:
    env = make_env(DEBATE, render_mode="human")
    env.reset(seed=0)
    for action in ("a" * 30, "b", "done"):
        env.step(action)
    printed = capsys.readouterr().out
    assert printed.count("What is") == 1
    assert printed.count("a" * 30) == 1
    assert "debater_0  score 3.0/10" in printed
    assert "outcome: success, said done" in printed
    quiet = make_env(DEBATE)
    quiet.reset(seed=0)
    with pytest.raises(ConfigError, match="needs a render mode"):
        quiet.render()
    text = make_env(DEBATE, render_mode="ansi")
    text.reset(seed=0)
    assert "What is" in str(text.render())


def test_an_environment_copies_and_pickles_with_its_episode() -> None:
    env = make_env(DEBATE)
    env.reset(seed=3)
    env.step("a")
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        twin.step("b")
        assert len(twin.transcript.turns) == 2
    assert len(env.transcript.turns) == 1


def test_an_environment_with_running_kernels_is_not_copied() -> None:
    env = make_env()
    env.reset(seed=0)
    env.step("plan")
    env.step(BREAKS)
    with pytest.raises(EpisodeError, match="kernels run"):
        copy.deepcopy(env)
    env.close()
    copy.deepcopy(env)


def test_a_task_index_out_of_range_is_the_sources_error() -> None:
    from mappa_envs.tasks.math.procedural import ProceduralSource

    env = make_env()
    env.tasks = ProceduralSource("train", size=3)
    with pytest.raises(TaskError, match="no such task"):
        env.reset(options={"task_index": 3})


@pytest.mark.filterwarnings("ignore:Observation is not a NumPy array")
@pytest.mark.filterwarnings("ignore:Observation space for each agent probably should be")
@pytest.mark.filterwarnings("ignore:Action space for each agent probably should be")
@pytest.mark.parametrize("topology", [CHAIN, DEBATE], ids=lambda t: t.name)
def test_pettingzoo_accepts_it(topology: Topology) -> None:
    api_test(make_env(topology), num_cycles=20)
    seed_test(lambda: make_env(topology), num_cycles=10)
