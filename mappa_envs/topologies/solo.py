"""One agent does everything."""

from __future__ import annotations

from mappa_envs.checks import at_least
from mappa_envs.topologies.domain import Domain
from mappa_envs.topologies.maths import MATHS
from mappa_envs.topology import Act, Loop, Says, Topology


def solo(domain: Domain = MATHS, *, turns: int = 4) -> Topology:
    """Return the team of one.

    Args:
        domain: Gives its job.
        turns: Most turns; it ends earlier when the agent gives its answer.

    Raises:
        ConfigError: If there are no turns.
    """
    at_least(1, turns=turns)
    return Topology(
        name="solo",
        roles=(domain.alone.role("soloist", "You work alone."),),
        flow=Loop(Act("soloist"), turns, until=Says("soloist", domain.answered)),
        answer_role="soloist",
    )
