"""Proposers answer side by side; an aggregator makes one answer of theirs."""

from __future__ import annotations

from mappa_envs.checks import at_least
from mappa_envs.topologies.domain import Domain
from mappa_envs.topologies.maths import MATHS
from mappa_envs.topology import Layer, Topology, View, chain


def mixture(domain: Domain = MATHS, *, proposers: int = 3) -> Topology:
    """Return the mixture of agents (Wang et al., arXiv 2406.04692, one layer of proposers).

    Args:
        domain: Gives the jobs.
        proposers: Agents that propose; they act at once and do not see each other.

    Raises:
        ConfigError: If there are fewer than two.
    """
    at_least(2, proposers=proposers)
    return Topology(
        name="mixture",
        roles=(
            domain.propose.role("proposer", "You are a Proposer of a team; others work on the same problem."),
            domain.conclude.role("aggregator", "You are the Aggregator of several proposals.", View("proposer")),
        ),
        flow=chain(
            Layer(tuple(domain.propose.act("proposer", seat) for seat in range(proposers))),
            domain.conclude.act("aggregator"),
        ),
        answer_role="aggregator",
    )
