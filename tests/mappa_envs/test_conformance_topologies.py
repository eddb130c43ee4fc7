"""Every environment keeps its contracts with every topology that has a name, those of the examples included."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from typing import Any

import pytest
from pettingzoo.test import api_test

import mappa_envs
from mappa_envs.testing import check_determinism, check_faces_agree, scripted_policy, trace
from mappa_envs.topologies import topology_names
from mappa_envs.wrappers import RoleEnv

EXAMPLES = Path(__file__).parents[2] / "examples"
UNAVOIDABLE = ("Observation is not a NumPy array", "space for each agent probably should be")


def load_examples() -> list[str]:
    """Import the examples that register a topology, and return all names that are then known."""
    for path in sorted(EXAMPLES.glob("*.py")):
        if "register_topology(" in path.read_text(encoding="utf-8"):
            spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
            assert spec is not None and spec.loader is not None
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
    return topology_names()


NAMES = load_examples()
IDS = [spec.id for spec in mappa_envs.registered("Mappa")]
JUDGES = ("rules", "outcome")

PLAIN = ("", "I do not know.", "Compute: 2 + 3", "Next: coder", "Next: the analyst", "\\boxed{7} [ACCEPTED] [DONE]")
CODE = (
    "```python\nprint(6 * 7)\n```",
    "```python\nraise ValueError('no')\n```",
    "Next: modeler\nNext: coder",
    "The answer is \\boxed{42}. [ACCEPTED] [DONE]",
)

every_id = pytest.mark.parametrize("id", IDS)
every_topology = pytest.mark.parametrize("topology", NAMES)
every_judge = pytest.mark.parametrize("judge", JUDGES)


def test_an_example_brings_its_topology() -> None:
    assert "two_drafts" in NAMES and {"solo", "chain", "debate", "mixture", "prover_verifier", "star"} < set(NAMES)


@every_id
@every_topology
@every_judge
def test_the_faces_agree(id: str, topology: str, judge: str) -> None:
    check_faces_agree(id, seeds=(0,), policy=scripted_policy(0, PLAIN), topology=topology, judge=judge)


@every_id
@every_topology
def test_pettingzoo_accepts_it(id: str, topology: str) -> None:
    with warnings.catch_warnings():
        for text in UNAVOIDABLE:
            warnings.filterwarnings("ignore", message=f".*{text}")
        api_test(mappa_envs.make(id, topology=topology), num_cycles=10)


@every_id
@every_topology
def test_a_layer_acts_in_one_step_of_the_parallel_face_and_every_duty_is_known(id: str, topology: str) -> None:
    env: Any = mappa_envs.make(id, face="parallel", topology=topology)
    env.reset(seed=1)
    while env.agents:
        layer, before = env.layer, len(env.transcript.turns)
        env.step(dict.fromkeys(layer, "I do not know."))
        turns = env.transcript.turns[before:]
        assert tuple(turn.agent for turn in turns) == layer
        assert all(turn.verdict.status == "ok" for turn in turns)
    assert env.transcript.outcome is not None
    env.close()


@every_id
@every_topology
def test_each_end_of_the_team_can_be_played_alone(id: str, topology: str) -> None:
    team: Any = mappa_envs.make(id, topology=topology)
    for agent in {team.possible_agents[0], team.possible_agents[-1]}:
        env = RoleEnv(team, agent, lambda agent, messages: "Next: nobody")
        records = trace(env, seed=2)
        assert records[-1]["terminated"] and records[-1]["info"]["outcome"]["success"] is False
        assert any(turn.agent == agent for turn in env.transcript.turns)
        env.close()


def with_code(id: str, topology: str, judge: str) -> None:
    policy = scripted_policy(1, CODE)
    check_faces_agree(id, seeds=(0,), policy=policy, topology=topology, judge=judge)
    check_determinism(lambda: mappa_envs.make(id, topology=topology, judge=judge), seeds=(0,), policy=policy)


def test_agent_code_changes_none_of_it_where_agents_act_side_by_side() -> None:
    with_code("Mappa/MathChat-v0", "mixture", "rules")


@pytest.mark.slow
@every_id
@every_topology
@every_judge
def test_agent_code_changes_none_of_it(id: str, topology: str, judge: str) -> None:
    with_code(id, topology, judge)
