from __future__ import annotations

import pickle

import pytest

from envs_registry.errors import ConfigError
from mappa_envs.topologies import CHAIN, get_topology
from mappa_envs.topology import Act, Chain, Flow, Layer, Loop, Role, Says, Topology, View, chain
from mappa_envs.transcript import ToolResult, Turn, Verdict

ROLES = tuple(Role(name, "Do your part.", duty="answer", sees=(View("all"),)) for name in ("asker", "left", "right", "closer"))


def topology(flow: Flow, *roles: str, answer_role: str | None = None) -> Topology:
    chosen = tuple(role for role in ROLES if role.name in roles)
    return Topology("test", chosen, flow, answer_role or roles[-1])


def turn(agent: str, index: int, layer: int, action: str = "text", status: str | None = None) -> Turn:
    tools = () if status is None else (ToolResult("python", "1", status, "1"),)  # type: ignore[arg-type]
    role = agent.rsplit("_", 1)[0]
    return Turn(index, layer, agent, role, (), action, tools, Verdict.skipped("test", "none"))


def play(of: Topology, **actions: str) -> list[tuple[str, ...]]:
    """Play to the end with fixed actions per agent and return the layers."""
    turns: list[Turn] = []
    layers: list[tuple[str, ...]] = []
    while layer := of.next_layer(turns):
        layers.append(layer)
        turns += [turn(a, len(turns) + i, len(layers), actions.get(a, "text")) for i, a in enumerate(layer)]
        assert len(layers) < 50
    return layers


def test_a_chain_acts_in_order_and_ends() -> None:
    assert play(topology(chain("asker", "left", "closer"), "asker", "left", "closer")) == [
        ("asker_0",),
        ("left_0",),
        ("closer_0",),
    ]


def test_a_role_acts_again_until_its_code_ran() -> None:
    solver = turn("solver_0", 0, 0)
    assert CHAIN.next_layer([]) == ("solver_0",)
    assert CHAIN.next_layer([solver]) == ("coder_0",)
    for first, following in (
        ("error", "coder_0"),
        ("missing", "coder_0"),
        ("timeout", "coder_0"),
        ("ok", "verifier_0"),
    ):
        assert CHAIN.next_layer([solver, turn("coder_0", 1, 1, status=first)]) == (following,), first
    twice = [solver, turn("coder_0", 1, 1, status="error"), turn("coder_0", 2, 2, status="error")]
    assert CHAIN.next_layer(twice) == ("verifier_0",)
    assert CHAIN.next_layer([*twice, turn("verifier_0", 3, 3)]) == ()


def test_a_layer_acts_side_by_side_and_its_flows_may_differ_in_length() -> None:
    flow = Chain((Act("asker"), Layer((Act("left", turns=2), Act("right"))), Act("closer")))
    assert play(topology(flow, "asker", "left", "right", "closer")) == [
        ("asker_0",),
        ("left_0", "right_0"),
        ("left_0",),
        ("closer_0",),
    ]


def test_a_loop_ends_on_its_word_or_after_its_rounds() -> None:
    looping = topology(Loop(chain("left", "right"), rounds=3, until=Says("right", "ACCEPT")), "left", "right")
    assert play(looping) == [("left_0",), ("right_0",)] * 3
    assert play(looping, right_0="I ACCEPT this") == [("left_0",), ("right_0",)]
    assert play(looping, left_0="ACCEPT") == [("left_0",)]


def test_seats_of_a_role_are_agents_of_their_own() -> None:
    debate = topology(Loop(Layer((Act("left"), Act("left", seat=1))), rounds=2), "left")
    assert debate.agents == ("left_0", "left_1")
    assert play(debate) == [("left_0", "left_1")] * 2
    assert debate.role_of("left_1").name == "left"


def test_what_comes_next_depends_on_the_turns_alone() -> None:
    copy = pickle.loads(pickle.dumps(CHAIN))
    turns = [turn("solver_0", 0, 0), turn("coder_0", 1, 1, status="error")]
    assert copy == CHAIN
    assert [copy.next_layer(turns) for _ in range(3)] == [("coder_0",)] * 3


@pytest.mark.parametrize(
    ("flow", "roles", "message"),
    [
        (chain("asker", "nobody"), ("asker",), "'nobody', which is not a role"),
        (chain("asker"), ("asker", "left"), "role 'left' never acts"),
        (Act("asker", turns=0), ("asker",), "limit of 0 turns"),
    ],
)
def test_a_flow_that_does_not_fit_its_roles_is_named(flow: Flow, roles: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        topology(flow, *roles)


def test_role_names_and_the_answer_role_are_checked() -> None:
    with pytest.raises(ConfigError, match="lower-case letters only"):
        Topology("bad", (Role("Data_Engineer", "x", duty="answer"),), Act("Data_Engineer"), "Data_Engineer")
    with pytest.raises(ConfigError, match="answer_role 'judge' is not a role"):
        topology(chain("asker"), "asker", answer_role="judge")


def test_an_unknown_topology_name_brings_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="did you mean 'chain'"):
        get_topology("chian")
