"""A prover works until a verifier accepts."""

from __future__ import annotations

from mappa_envs.checks import at_least
from mappa_envs.topologies.domain import Domain
from mappa_envs.topologies.maths import MATHS
from mappa_envs.topology import Loop, Says, Topology, View, chain


def prover_verifier(domain: Domain = MATHS, *, rounds: int = 3) -> Topology:
    """Return the prover-verifier loop (after Kirchner et al., arXiv 2407.13692, with one prover and no adversary).

    Args:
        domain: Gives the jobs.
        rounds: Most rounds; accepting ends the episode.

    Raises:
        ConfigError: If there is no round.
    """
    at_least(1, rounds=rounds)
    return Topology(
        name="prover_verifier",
        roles=(
            domain.prove.role("prover", "You are the Prover.", View("verifier", turns="last")),
            domain.check.role("verifier", "You are the Verifier of a prover's work.", View("prover", turns="last")),
        ),
        flow=Loop(chain(domain.prove.act("prover"), "verifier"), rounds, until=Says("verifier", domain.accepted)),
        answer_role="verifier",
    )
