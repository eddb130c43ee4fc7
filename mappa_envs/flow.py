"""Flows: who acts when, as a small tree of data.

What comes next is a pure function of the turns taken so far, so a flow has no state, pickles, and can be replayed from
a transcript.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from mappa_envs.thoughts import visible_text
from mappa_envs.transcript import Turn

StopWhen = Literal["never", "code_ok", "no_code"]


@dataclass(frozen=True, slots=True)
class Act:
    """One agent acts, at most `turns` times in a row."""

    role: str
    turns: int = 1
    stop_when: StopWhen = "never"
    """`code_ok`: after a turn whose code ran without error; `no_code`: after a turn without code."""
    seat: int = 0


@dataclass(frozen=True, slots=True)
class Says:
    """A condition: a turn of `role` contains `text` outside its `<think>` parts."""

    role: str
    text: str


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
    """A flow again and again, until a turn meets `until` (the flow then stops at once) or `rounds` are over."""

    flow: Flow
    rounds: int
    until: Says | None = None


@dataclass(frozen=True, slots=True)
class Pick:
    """A hub picks who acts next by naming the role, again and again.

    The last role that its action names outside `<think>` is picked. An action that names none passes the turn to the
    first choice that has not acted yet. When `last` has acted the flow is over; after `rounds` picks without it,
    `last` acts unasked, so the flow always ends with it.
    """

    hub: str
    choices: tuple[Act, ...]
    """One per role."""
    last: str
    """The choice that ends the flow."""
    rounds: int
    """Most picks."""


Flow = Act | Chain | Layer | Loop | Pick

Agents = tuple[str, ...]
Walk = Generator[Agents, Sequence[Turn], None]


def agent_name(role: str, seat: int = 0) -> str:
    """Return the PettingZoo agent id of a role's seat."""
    return f"{role}_{seat}"


def chain(*flows: Flow | str) -> Chain:
    """Put flows one after the other; a plain role name stands for one turn of it."""
    return Chain(tuple(Act(f) if isinstance(f, str) else f for f in flows))


def seats(role: str, count: int) -> Layer:
    """Put `count` agents of one role side by side, one turn each."""
    return Layer(tuple(Act(role, seat=seat) for seat in range(count)))


def parts(flow: Flow) -> Iterator[Flow]:
    """Yield a flow and all flows inside it, in the order in which they first act."""
    yield flow
    match flow:
        case Act():
            pass
        case Chain() | Layer():
            for inner in flow.flows:
                yield from parts(inner)
        case Loop():
            yield from parts(flow.flow)
        case Pick():
            yield Act(flow.hub)
            yield from flow.choices


def picked(action: str, names: Sequence[str]) -> str | None:
    """Return the last of `names` that an action names outside `<think>`, or None.

    A name counts as a whole word in any case, also with a seat (`coder_0`).
    """
    found = re.findall(rf"\b({'|'.join(map(re.escape, names))})(?:_\d+)?\b", visible_text(action), re.IGNORECASE)
    return found[-1].lower() if found else None


def walk(flow: Flow) -> Walk:
    """Yield the agents of each next layer; receive the turns that they took in it."""
    match flow:
        case Act():
            for _ in range(flow.turns):
                (turn,) = yield (agent_name(flow.role, flow.seat),)
                if _stops(flow.stop_when, turn):
                    return
        case Chain():
            for inner in flow.flows:
                yield from walk(inner)
        case Layer():
            yield from _side_by_side([walk(inner) for inner in flow.flows])
        case Loop():
            for _ in range(flow.rounds):
                if (yield from _until(walk(flow.flow), flow.until)):
                    return
        case Pick():
            yield from _by_name(flow)


def _stops(rule: StopWhen, turn: Turn) -> bool:
    statuses = {tool.status for tool in turn.tools}
    if rule == "code_ok":
        return statuses == {"ok"}
    return rule == "no_code" and statuses <= {"missing"}


def _met(condition: Says, turn: Turn) -> bool:
    return turn.role == condition.role and condition.text in visible_text(turn.action)


def _until(inner: Walk, condition: Says | None) -> Generator[Agents, Sequence[Turn], bool]:
    layer = next(inner, None)
    while layer is not None:
        turns = yield layer
        if condition is not None and any(_met(condition, turn) for turn in turns):
            return True
        layer = _send(inner, turns)
    return False


def _side_by_side(walks: list[Walk]) -> Walk:
    fronts = [next(inner, None) for inner in walks]
    while any(front is not None for front in fronts):
        turns = yield tuple(agent for front in fronts for agent in front or ())
        for i, (inner, front) in enumerate(zip(walks, fronts, strict=True)):
            if front is not None:
                fronts[i] = _send(inner, [turn for turn in turns if turn.agent in front])


def _by_name(flow: Pick) -> Walk:
    choices = {act.role: act for act in flow.choices}
    waiting = list(choices)
    for _ in range(flow.rounds):
        (turn,) = yield (agent_name(flow.hub),)
        name = picked(turn.action, list(choices)) or (waiting[0] if waiting else flow.last)
        yield from walk(choices[name])
        if name == flow.last:
            return
        if name in waiting:
            waiting.remove(name)
    yield from walk(choices[flow.last])


def _send(inner: Walk, turns: Sequence[Turn]) -> Agents | None:
    try:
        return inner.send(turns)
    except StopIteration:
        return None
