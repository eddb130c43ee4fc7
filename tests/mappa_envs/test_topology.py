from __future__ import annotations

import pickle

import pytest

from envs_registry.errors import ConfigError
from mappa_envs.flow import picked
from mappa_envs.topologies import CHAIN
from mappa_envs.topology import Act, Chain, Flow, Layer, Loop, Pick, Role, Says, Topology, View, chain, seats
from mappa_envs.transcript import ToolResult, Turn, Verdict

ROLES = tuple(
    Role(name, "Do your part.", duty="answer", sees=(View("all"),)) for name in ("asker", "left", "right", "closer")
)


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


def test_a_loop_ends_when_its_role_says_the_word_or_after_its_rounds() -> None:
    looping = topology(Loop(chain("left", "right"), rounds=3, until=Says("right", "ACCEPT")), "left", "right")
    assert play(looping) == [("left_0",), ("right_0",)] * 3
    assert play(looping, right_0="I ACCEPT this") == [("left_0",), ("right_0",)]
    assert play(looping, left_0="ACCEPT") == [("left_0",), ("right_0",)] * 3, "said by another role"
    assert play(looping, right_0="<think>ACCEPT?</think> No.") == [("left_0",), ("right_0",)] * 3, "a draft"


def test_a_loop_stops_in_its_middle_when_the_word_is_said_there() -> None:
    looping = topology(Loop(chain("left", "right"), rounds=3, until=Says("left", "DONE")), "left", "right")
    assert play(looping, left_0="DONE") == [("left_0",)]


HUB = Pick("asker", (Act("left"), Act("right", turns=2), Act("closer")), last="closer", rounds=4)


def test_a_hub_picks_by_name_until_the_last_role_has_acted() -> None:
    star = topology(HUB, "asker", "left", "right", "closer")
    assert star.agents == ("asker_0", "left_0", "right_0", "closer_0")
    assert [role.name for role in star.choices("asker")] == ["left", "right", "closer"]
    assert star.choices("left") == ()
    assert play(star, asker_0="closer, please") == [("asker_0",), ("closer_0",)]
    assert play(star, asker_0="Next: RIGHT") == [("asker_0",), ("right_0",), ("right_0",)] * 4 + [("closer_0",)]


def test_a_hub_that_names_nobody_passes_the_turn_to_whoever_has_not_acted() -> None:
    star = topology(HUB, "asker", "left", "right", "closer")
    hub = ("asker_0",)
    expected = [hub, ("left_0",), hub, ("right_0",), ("right_0",), hub, ("closer_0",)]
    assert play(star, asker_0="<think>right</think> hm") == expected


@pytest.mark.parametrize(
    ("action", "name"),
    [
        ("Next: left", "left"),
        ("Not left but Right.", "right"),
        ("leftover", None),
        ("left_0 acts", "left"),
        ("<think>left</think>", None),
        ("", None),
    ],
)
def test_the_last_whole_word_that_is_a_name_is_picked(action: str, name: str | None) -> None:
    assert picked(action, ["left", "right"]) == name


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


def test_the_most_turns_are_counted() -> None:
    star = topology(HUB, "asker", "left", "right", "closer")
    assert star.max_turns == 4 * (1 + 2) + 1 == len(play(star, asker_0="right"))
    debate = topology(chain(Loop(seats("left", 3), 2), "closer"), "left", "closer")
    assert debate.max_turns == 7 == sum(map(len, play(debate)))


def team(*sees: tuple[str, tuple[View, ...]], flow: Flow) -> Topology:
    return Topology("views", tuple(Role(n, "x", duty="answer", sees=v) for n, v in sees), flow, sees[-1][0])


def test_views_of_groups_are_replaced_with_the_roles_that_they_stand_for() -> None:
    made = team(
        ("left", (View("upstream", turns="last"),)),
        ("right", (View("upstream"),)),
        ("closer", (View("left", text=False), View("all"))),
        flow=chain(Loop(chain(seats("left", 2), "right"), 2), "closer"),
    )
    views = {role.name: role.sees for role in made.roles}
    assert views["left"] == (View("right", turns="last"),), "the roles that act directly before, also around the loop"
    assert views["right"] == (View("left"),)
    assert views["closer"] == (View("left", text=False), View("right")), "a named view wins, and nobody sees itself"
    seated = team(
        ("left", (View("upstream"),)), ("closer", (View("all"),)), flow=chain(Loop(seats("left", 2), 2), "closer")
    )
    assert seated.roles[0].sees == (View("left"),), "colleagues in other seats are upstream"


LOOP = chain("left", "right")


@pytest.mark.parametrize(
    ("flow", "roles", "message"),
    [
        (chain("asker", "nobody"), ("asker",), "'nobody', which is not a role"),
        (chain("asker"), ("asker", "left"), "role 'left' never acts: it is unreachable"),
        (Act("asker", turns=0), ("asker",), "'asker' has a limit of 0 turns: it is unreachable or unbounded"),
        (Loop(LOOP, rounds=0), ("left", "right"), "'left', 'right' has 0 rounds: it is unreachable or unbounded"),
        (Loop(LOOP, rounds=None), ("left", "right"), "has None rounds"),  # type: ignore[arg-type]
        (Loop(LOOP, rounds=True), ("left", "right"), "has True rounds"),
        (Loop(LOOP, rounds=501), ("left", "right"), "may have 1002 turns, more than 1000"),
        (Loop(LOOP, 2, until="ACCEPT"), ("left", "right"), r"write Says\(role, 'ACCEPT'\)"),  # type: ignore[arg-type]
        (Chain((Loop(Act("left"), 2, Says("right", "x")), Act("right"))), ("left", "right"), "waits for 'right'"),
        (Chain(("left",)), ("left",), r"'left' is not a flow: write Act\('left'\)"),  # type: ignore[arg-type]
        (chain("left", Chain(())), ("left",), "an empty Chain"),
        (Layer((Act("left"), Act("left"))), ("left",), "'left_0' acts side by side with itself"),
        (Layer((Act("left"), Act("left", seat=2))), ("left",), r"the seats \[0, 2\], not 0 to 1"),
        (Pick("asker", (Act("left"),), last="right", rounds=1), ("asker", "left"), "'right', which is not"),
        (Pick("asker", (Act("asker"),), last="asker", rounds=1), ("asker",), "needs different roles to choose from"),
        (Pick("asker", (Act("left"),), last="left", rounds=0), ("asker", "left"), "'asker' has 0 rounds"),
    ],
)
def test_a_flow_that_does_not_fit_its_roles_is_named(flow: Flow, roles: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        topology(flow, *roles, answer_role=roles[-1])


@pytest.mark.parametrize(
    ("sees", "message"),
    [
        ({"right": ()}, "role 'right' sees nothing of what came before it .'left'."),
        ({"right": (View("closer"),)}, "role 'right' sees nothing of what came before it"),
        ({"right": (View("left", text=False, tools=False, files=False),)}, "'right' on 'left' shows nothing"),
        ({"right": (View("right"), View("left"))}, "looks at itself"),
        ({"right": (View("middle"),)}, "role 'right' sees 'middle', which is not a role"),
        ({"closer": (View("left"),)}, "role 'right' is dead: nobody on the way to 'closer' sees its work"),
    ],
)
def test_a_role_that_sees_nothing_or_that_nobody_sees_is_named(sees: dict[str, tuple[View, ...]], message: str) -> None:
    views = {"left": (), "right": (View("left"),), "closer": (View("left"), View("right")), **sees}
    with pytest.raises(ConfigError, match=message):
        team(*views.items(), flow=chain("left", "right", "closer"))


def test_work_may_reach_the_answer_through_files_a_word_or_a_pick() -> None:
    coder = Role("coder", "x", duty="compute", tool="python")
    closer = Role("closer", "x", duty="answer", tool="python", sees=(View("asker"),))
    asker = Role("asker", "x", duty="answer")
    Topology("files", (coder, asker, closer), Chain((Layer((Act("coder"), Act("asker"))), Act("closer"))), "closer")
    with pytest.raises(ConfigError, match="'coder' is dead"):
        toolless = Role("closer", "x", duty="answer", sees=(View("asker"),))
        Topology("x", (coder, asker, toolless), Chain((Layer((Act("coder"), Act("asker"))), Act("closer"))), "closer")
    guard = Role("guard", "x", duty="answer", sees=(View("asker"),))
    Topology("word", (asker, guard), Loop(chain("asker", "guard"), 2, Says("guard", "GO")), "asker")
    Topology("pick", (asker, toolless), Pick("asker", (Act("closer"),), "closer", 1), "closer")


def test_role_names_and_the_answer_role_are_checked() -> None:
    with pytest.raises(ConfigError, match="lower-case letters only"):
        Topology("bad", (Role("Data_Engineer", "x", duty="answer"),), Act("Data_Engineer"), "Data_Engineer")
    with pytest.raises(ConfigError, match="answer_role 'judge' is not a role"):
        topology(chain("asker"), "asker", answer_role="judge")

    for name in ("all", "upstream"):
        with pytest.raises(ConfigError, match="means a group of roles"):
            Topology("bad", (Role(name, "x", duty="answer"),), Act(name), name)
