"""Topologies: roles, the order they act in, and what each of them sees. Data, not code.

A flow is a small tree. What comes next is a pure function of the turns taken so far, so a topology has no state,
pickles, and can be replayed from a transcript.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from envs_registry.errors import ConfigError
from mappa_envs.transcript import Turn

StopWhen = Literal["never", "code_ok", "no_code"]


@dataclass(frozen=True, slots=True)
class View:
    """What a role sees of another role's earlier turns."""

    role: str
    text: bool = True
    """Whether the actions are shown."""
    tools: bool = True
    """Whether the tool results are shown."""
    turns: Literal["all", "last"] = "all"


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


@dataclass(frozen=True, slots=True)
class Act:
    """One role acts, at most `turns` times in a row."""

    role: str
    turns: int = 1
    stop_when: StopWhen = "never"
    """`code_ok`: after a turn whose code ran without error; `no_code`: after a turn without code."""
    seat: int = 0


@dataclass(frozen=True, slots=True)
class Chain:
    """Flows one after the other."""

    flows: tuple[Flow, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """Flows side by side: the agents of one layer do not see each other's turns of it."""

    flows: tuple[Flow, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A flow again and again, until a turn's action contains `until` or `rounds` are over."""

    flow: Flow
    rounds: int
    until: str | None = None


Flow = Act | Chain | Layer | Loop

_Agents = tuple[str, ...]


def agent_name(role: str, seat: int = 0) -> str:
    """Return the PettingZoo agent id of a role's seat."""
    return f"{role}_{seat}"


def chain(*flows: Flow | str) -> Chain:
    """Put flows one after the other; a plain role name stands for one turn of it."""
    return Chain(tuple(Act(f) if isinstance(f, str) else f for f in flows))


def _acts(flow: Flow) -> Iterator[Act]:
    match flow:
        case Act():
            yield flow
        case Chain() | Layer():
            for inner in flow.flows:
                yield from _acts(inner)
        case Loop():
            yield from _acts(flow.flow)


def _walk(flow: Flow) -> Generator[_Agents, Sequence[Turn], None]:
    """Yield the agents of each next layer; receive the turns that they took in it."""
    match flow:
        case Act():
            for _ in range(flow.turns):
                (turn,) = yield (agent_name(flow.role, flow.seat),)
                if _stops(flow.stop_when, turn):
                    return
        case Chain():
            for inner in flow.flows:
                yield from _walk(inner)
        case Layer():
            yield from _side_by_side([_walk(inner) for inner in flow.flows])
        case Loop():
            for _ in range(flow.rounds):
                if (yield from _until(_walk(flow.flow), flow.until)):
                    return


def _stops(rule: StopWhen, turn: Turn) -> bool:
    statuses = {tool.status for tool in turn.tools}
    if rule == "code_ok":
        return statuses == {"ok"}
    return rule == "no_code" and statuses <= {"missing"}


def _until(
    walk: Generator[_Agents, Sequence[Turn], None], word: str | None
) -> Generator[_Agents, Sequence[Turn], bool]:
    layer = next(walk, None)
    while layer is not None:
        turns = yield layer
        if word is not None and any(word in turn.action for turn in turns):
            return True
        try:
            layer = walk.send(turns)
        except StopIteration:
            layer = None
    return False


def _side_by_side(
    walks: list[Generator[_Agents, Sequence[Turn], None]],
) -> Generator[_Agents, Sequence[Turn], None]:
    fronts = [next(walk, None) for walk in walks]
    while any(front is not None for front in fronts):
        turns = yield tuple(agent for front in fronts for agent in front or ())
        for i, (walk, front) in enumerate(zip(walks, fronts, strict=True)):
            if front is not None:
                try:
                    fronts[i] = walk.send([turn for turn in turns if turn.agent in front])
                except StopIteration:
                    fronts[i] = None


@dataclass(frozen=True)
class Topology:
    """Roles, flow, and the role whose last action holds the team's answer.

    Raises:
        ConfigError: If a role is named twice, never acts, does not exist, or a limit is not positive.
    """

    name: str
    roles: tuple[Role, ...]
    flow: Flow
    answer_role: str
    agents: tuple[str, ...] = field(init=False)
    """PettingZoo agent ids in the order in which they first act."""

    def __post_init__(self) -> None:
        names = [role.name for role in self.roles]
        acts = list(_acts(self.flow))
        problems = [f"role {n!r} is defined twice" for n in sorted({n for n in names if names.count(n) > 1})]
        problems += [
            f"role name {n!r} is not lower-case letters only"
            for n in names
            if not (n.isascii() and n.isalpha() and n.islower())
        ]
        problems += [f"the flow names {a.role!r}, which is not a role" for a in acts if a.role not in names]
        problems += [f"role {n!r} never acts" for n in names if n not in {a.role for a in acts}]
        problems += [f"role {a.role!r} has a limit of {a.turns} turns" for a in acts if a.turns < 1]
        problems += [
            f"role {r.name!r} sees {v.role!r}, which is not a role"
            for r in self.roles
            for v in r.sees
            if v.role not in names
        ]
        if self.answer_role not in names:
            problems.append(f"answer_role {self.answer_role!r} is not a role")
        if problems:
            raise ConfigError(
                f"topology {self.name!r}: {'; '.join(problems)}",
                expected=f"a flow over the roles {sorted(names)}",
                fix="correct the Role, View or Act of that name",
            )
        order = dict.fromkeys(agent_name(a.role, a.seat) for a in acts)
        object.__setattr__(self, "agents", tuple(order))

    def role_of(self, agent: str) -> Role:
        """Return the role of an agent id."""
        name = agent.rsplit("_", 1)[0]
        return next(role for role in self.roles if role.name == name)

    def next_layer(self, turns: Sequence[Turn]) -> tuple[str, ...]:
        """Return the agents that act next, side by side, after the complete layers of `turns`; empty at the end."""
        walk = _walk(self.flow)
        layer = next(walk, ())
        done = 0
        while done < len(turns):
            taken = turns[done : done + len(layer)]
            done += len(layer)
            try:
                layer = walk.send(taken)
            except StopIteration:
                return ()
        return layer
