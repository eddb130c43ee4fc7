"""Topologies: roles, the order they act in, and what each of them sees. Data, not code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from mappa_envs.flow import (
    Act,
    Chain,
    Flow,
    Layer,
    Loop,
    Pick,
    Says,
    agent_name,
    chain,
    parts,
    seats,
    walk,
)
from mappa_envs.topology_checks import check_topology, max_turns, upstream
from mappa_envs.transcript import Turn

__all__ = [
    "Act",
    "Chain",
    "Flow",
    "Layer",
    "Loop",
    "Pick",
    "Role",
    "Says",
    "Topology",
    "View",
    "agent_name",
    "chain",
    "seats",
]


@dataclass(frozen=True, slots=True)
class View:
    """What a role sees of another role's earlier turns."""

    role: str
    """A role's name, `upstream` (the roles that act directly before it) or `all`. A role that looks at its own name
    sees its colleagues in the other seats."""
    text: bool = True
    """Whether the actions are shown."""
    tools: bool = True
    """Whether the tool results are shown."""
    turns: Literal["all", "last"] = "all"
    """Every turn of each agent of the role, or its last one."""
    files: bool = True
    """Whether files that the role wrote are listed, in environments with shared files."""


@dataclass(frozen=True, slots=True)
class Role:
    """A seat in the team.

    Its own earlier turns are always shown to it, as chat history.
    """

    name: str
    """Lower-case letters; the PettingZoo agent is `{name}_{seat}`."""
    instructions: str
    """The system message."""
    duty: str
    """What a rule judge expects of it: a name that the environment's judge knows."""
    sees: tuple[View, ...] = ()
    tool: Literal["python"] | None = None
    """`python`: the last fenced block of each action runs in the agent's kernel."""


@dataclass(frozen=True)
class Topology:
    """Roles, flow, and the role whose last action holds the team's answer.

    Views of `upstream` and `all` are replaced with views of the roles that they stand for.

    Raises:
        ConfigError: If the flow and the roles do not fit, a role's work can reach nobody or is never asked for, a loop
            has no bound, or a role sees nothing of what came before it. Every fault is named.
    """

    name: str
    roles: tuple[Role, ...]
    flow: Flow
    answer_role: str
    agents: tuple[str, ...] = field(init=False)
    """PettingZoo agent ids in the order in which they first act."""

    def __post_init__(self) -> None:
        check_topology(self)
        order = dict.fromkeys(agent_name(p.role, p.seat) for p in parts(self.flow) if isinstance(p, Act))
        object.__setattr__(self, "agents", tuple(order))
        object.__setattr__(self, "roles", tuple(replace(r, sees=self._named_views(r)) for r in self.roles))

    def _named_views(self, role: Role) -> tuple[View, ...]:
        before = upstream(self.flow)[role.name]
        alone = agent_name(role.name, 1) not in self.agents
        views: dict[str, View] = {}
        for view in role.sees:
            group = {"all": [r.name for r in self.roles], "upstream": [r.name for r in self.roles if r.name in before]}
            for name in group.get(view.role, [view.role]):
                if not (name == role.name and alone):
                    views.setdefault(name, replace(view, role=name))
        return tuple(views.values())

    @property
    def max_turns(self) -> int:
        """The most turns that an episode can have."""
        return max_turns(self.flow)

    def role_of(self, agent: str) -> Role:
        """Return the role of an agent id."""
        name = agent.rsplit("_", 1)[0]
        return next(role for role in self.roles if role.name == name)

    def choices(self, role: str) -> tuple[Role, ...]:
        """Return the roles that `role` may pick from where it is a hub; else none."""
        picks = [p for p in parts(self.flow) if isinstance(p, Pick) and p.hub == role]
        names = {act.role for pick in picks for act in pick.choices}
        return tuple(r for r in self.roles if r.name in names)

    def next_layer(self, turns: Sequence[Turn]) -> tuple[str, ...]:
        """Return the agents that act next, side by side, after the complete layers of `turns`; empty at the end."""
        steps = walk(self.flow)
        layer = next(steps, ())
        done = 0
        while done < len(turns):
            taken = turns[done : done + len(layer)]
            done += len(layer)
            try:
                layer = steps.send(taken)
            except StopIteration:
                return ()
        return layer
