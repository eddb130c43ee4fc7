"""A hub picks which specialist acts next, by name."""

from __future__ import annotations

from dataclasses import replace

from mappa_envs.checks import at_least
from mappa_envs.flow import parts
from mappa_envs.topologies.domain import Domain
from mappa_envs.topologies.maths import MATHS
from mappa_envs.topology import Act, Pick, Role, Topology, View


def star(domain: Domain = MATHS, *, rounds: int = 5, guided: bool = False) -> Topology:
    """Return the domain's specialists around a hub, which sees everything and picks who acts next.

    Args:
        domain: Gives the specialists.
        rounds: Most picks; after them the last specialist answers unasked.
        guided: Whether a specialist sees the hub's last turn, and so what it is to do.

    Raises:
        ConfigError: If there is no round.
    """
    at_least(1, rounds=rounds)
    names = [role.name for role in domain.team.roles]
    hub = Role(
        "hub",
        f"You lead the team of {', '.join(names)}. Decide what is to be done next; end with one line `Next: NAME`. "
        f"The {domain.team.answer_role} gives the team's answer: call it last.",
        duty="route",
        sees=(View("all"),),
    )
    told = (View("hub", turns="last"),) if guided else ()
    return Topology(
        name="star",
        roles=(hub, *(replace(role, sees=(*told, *role.sees)) for role in domain.team.roles)),
        flow=Pick(
            "hub",
            choices=tuple(part for part in parts(domain.team.flow) if isinstance(part, Act)),
            last=domain.team.answer_role,
            rounds=rounds,
        ),
        answer_role=domain.team.answer_role,
    )
