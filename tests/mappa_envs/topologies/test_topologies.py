from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mappa_envs
from envs_registry.errors import ConfigError, EntryPointError
from mappa_envs.topologies import CHAIN, MATHS, get_domain, get_topology, lookup, register_topology, topology_names
from mappa_envs.topologies.debate import debate
from mappa_envs.topologies.drawing import draw
from mappa_envs.topologies.mixture import mixture
from mappa_envs.topologies.outline import outline
from mappa_envs.topologies.prover_verifier import prover_verifier
from mappa_envs.topologies.solo import solo
from mappa_envs.topologies.star import star
from mappa_envs.topology import Topology

BUILT_IN = ["chain", "debate", "mixture", "prover_verifier", "solo", "star"]
DOMAINS = ["maths", "tables"]
ROOT = Path(__file__).parents[3]


def test_every_built_in_topology_is_there() -> None:
    assert set(BUILT_IN) <= set(topology_names())
    assert get_topology("chain") is CHAIN


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("name", BUILT_IN)
def test_every_topology_works_with_every_domain(name: str, domain: str) -> None:
    made = get_topology(name, get_domain(domain))
    assert made.max_turns >= len(made.agents)
    assert all(role.instructions and role.duty for role in made.roles)


@pytest.mark.parametrize("make", [solo, debate, mixture, prover_verifier, star])
def test_a_topology_is_at_most_thirty_lines_of_data(make: Callable[..., Topology]) -> None:
    source = inspect.getsource(make)
    code = source[: source.index('"""')] + source[source.rindex('"""') :]
    assert 5 < len(code.splitlines()) <= 30


def test_the_shapes_are_those_of_their_parameters() -> None:
    assert debate(debaters=4, rounds=3).agents == ("debater_0", "debater_1", "debater_2", "debater_3", "arbiter_0")
    assert debate(debaters=4, rounds=3).max_turns == 13
    assert debate().next_layer([]) == ("debater_0", "debater_1", "debater_2")
    assert mixture(proposers=2).agents == ("proposer_0", "proposer_1", "aggregator_0")
    assert prover_verifier(rounds=2).max_turns == 6
    assert solo(turns=2).max_turns == 2
    assert star(rounds=1).agents == ("hub_0", *CHAIN.agents)
    assert "hub" not in {view.role for role in star().roles for view in role.sees}
    assert all(role.sees[0].role == "hub" for role in star(guided=True).roles[1:])


def test_debaters_see_each_others_last_turns_and_the_arbiter_all_of_them() -> None:
    views = {role.name: role.sees for role in debate().roles}
    assert [(v.role, v.turns) for v in views["debater"]] == [("debater", "last")]
    assert [(v.role, v.turns) for v in views["arbiter"]] == [("debater", "last")]
    assert {role.name: role.sees for role in mixture().roles}["proposer"] == ()


def test_parameters_come_in_a_mapping() -> None:
    assert get_topology({"name": "debate", "debaters": 2}) == debate(debaters=2)
    env = mappa_envs.make("Mappa/MathChat-v0", topology={"name": "debate", "debaters": 2, "rounds": 1})
    assert env.possible_agents == ["debater_0", "debater_1", "arbiter_0"]


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        ("chian", "did you mean 'chain'"),
        ({"name": "debate", "round": 3}, "did you mean 'rounds'"),
        ({"name": "debate", "rounds": 0}, "bad rounds"),
        ({"name": "debate", "debaters": True}, "bad debaters"),
        ({"name": "debate", "debaters": 1}, "at least 2"),
        ({"name": "mixture", "proposers": "3"}, "bad proposers"),
        ({"name": "prover_verifier", "rounds": 1.5}, "bad rounds"),
        ({"name": "solo", "turns": -1}, "bad turns"),
        ({"name": "star", "rounds": 0}, "bad rounds"),
        ({"name": "chain", "rounds": 2}, "takes no keyword 'rounds'"),
        ({"rounds": 2}, "a mapping with a 'name'"),
        (3, "of the wrong type"),
        (None, "of the wrong type"),
        ("mappa_envs.topologies:CHIAN", "did you mean 'CHAIN'"),
        ("mappa_envs.topologies.chain:SOLVER", "is no topology"),
        ({"name": "mappa_envs.topologies:CHAIN", "rounds": 2}, "takes no parameters"),
    ],
)
def test_what_names_no_topology_is_answered_with_what_does(topology: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        get_topology(topology)


def test_a_module_and_a_name_are_enough() -> None:
    assert get_topology("mappa_envs.topologies:CHAIN") is CHAIN
    assert get_topology({"name": "mappa_envs.topologies.debate:debate", "rounds": 1}) == debate(rounds=1)
    with pytest.raises(EntryPointError, match=r"no_such_module.*cannot be imported"):
        get_topology("no_such_module:TEAM")


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that a test registers are gone after it."""
    monkeypatch.setattr(lookup, "_plans", dict(lookup._plans))


@pytest.mark.usefixtures("forgotten")
def test_a_registered_topology_is_found_by_its_name_and_keeps_it() -> None:
    register_topology("duel", debate)
    assert get_topology({"name": "duel", "rounds": 1}) == debate(rounds=1)
    register_topology("duel", debate)
    with pytest.raises(ConfigError, match="already registered"):
        register_topology("duel", mixture)
    with pytest.raises(ConfigError, match="already registered"):
        register_topology("chain", solo)
    with pytest.raises(ConfigError, match="is no topology"):
        register_topology("nothing", 3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="a name without ':'"):
        register_topology("a:b", CHAIN)


def test_another_distributions_topology_is_found_by_its_entry_point(tmp_path: Path) -> None:
    (tmp_path / "acme_teams.py").write_text(
        "from dataclasses import replace\nfrom mappa_envs.topologies import CHAIN\n"
        "RELAY = replace(CHAIN, name='relay')\n"
    )
    info = tmp_path / "acme_teams-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-teams\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[mappa.topologies]\nrelay = acme_teams:RELAY\nbroken = acme_gone:TEAM\n")
    code = (
        "import mappa_envs\nfrom mappa_envs.topologies import get_topology, topology_names\n"
        "print('relay' in topology_names(), mappa_envs.make('Mappa/MathChat-v0', topology='relay').topology.name)\n"
        "try:\n    get_topology('broken')\n"
        "except Exception as error:\n    print(type(error).__name__, 'acme_gone' in str(error))"
    )
    path = os.pathsep.join(map(str, (tmp_path, ROOT)))
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.stdout.split() == ["True", "relay", "EntryPointError", "True"], done.stderr


def test_the_outline_names_everybody_and_every_rule() -> None:
    text = outline(debate())
    for part in ("debate: 4 agents, at most 7 turns", "2 times", "side by side", "debater_2", "runs python"):
        assert part in text
    assert "debater (last turn: text, tools, files)" in text
    assert "up to 3 times, until verifier writes \\boxed{" in outline(prover_verifier())
    assert "up to 5 picks by hub; verifier ends it" in outline(star())
    assert "coder_0 (up to 2 turns, until its code ran)" in outline(CHAIN)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_drawing_shows_every_agent_and_is_the_same_every_time(name: str, tmp_path: Path) -> None:
    import matplotlib

    topology = get_topology(name, MATHS)
    with matplotlib.rc_context({"svg.fonttype": "none"}):  # text stays text
        for file in ("one.svg", "two.svg"):
            draw(topology, tmp_path / file)
    svg = (tmp_path / "one.svg").read_text()
    assert all(f">{agent}<" in svg for agent in topology.agents)
    assert svg == (tmp_path / "two.svg").read_text()


def test_a_drawing_is_also_a_bitmap_and_nothing_else(tmp_path: Path) -> None:
    draw(CHAIN, tmp_path / "chain.png")
    assert (tmp_path / "chain.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ConfigError, match=r"cannot draw to 'chain.doc'"):
        draw(CHAIN, tmp_path / "chain.doc")


def test_an_unknown_domain_is_named() -> None:
    with pytest.raises(ConfigError, match="did you mean 'maths'"):
        get_domain("math")
