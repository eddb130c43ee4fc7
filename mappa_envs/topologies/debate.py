"""Debaters answer side by side and revise after seeing each other; an arbiter decides."""

from __future__ import annotations

from mappa_envs.checks import at_least
from mappa_envs.topologies.domain import Domain
from mappa_envs.topologies.maths import MATHS
from mappa_envs.topology import Loop, Topology, View, chain, seats


def debate(domain: Domain = MATHS, *, debaters: int = 3, rounds: int = 2) -> Topology:
    """Return the debate (Du et al., arXiv 2305.14325, with an arbiter in place of a vote).

    Args:
        domain: Gives the jobs.
        debaters: Agents that debate; within a round they act at once.
        rounds: Turns of each debater; from the second on it sees the others' last turns.

    Raises:
        ConfigError: If a number is too small.
    """
    at_least(2, debaters=debaters)
    at_least(1, rounds=rounds)
    last = View("debater", turns="last")
    return Topology(
        name="debate",
        roles=(
            domain.propose.role(
                "debater", "You are a Debater of a team; from the second round on you see the others' work.", last
            ),
            domain.conclude.role("arbiter", "You are the Arbiter of a debate.", last),
        ),
        flow=chain(Loop(seats("debater", debaters), rounds), domain.conclude.act("arbiter")),
        answer_role="arbiter",
    )
