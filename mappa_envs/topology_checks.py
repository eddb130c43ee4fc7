"""Faults of a topology that can be seen before anybody acts; each is named."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from envs_registry.errors import ConfigError
from mappa_envs.flow import Act, Chain, Flow, Layer, Loop, Pick, Says, agent_name, parts

if TYPE_CHECKING:
    from mappa_envs.topology import Topology

MAX_TURNS = 1000
"""Most turns of an episode."""
GROUPS = ("all", "upstream")
"""Words that a view may use instead of a role's name."""

_Edges = set[tuple[str, str]]


def check_topology(topology: Topology) -> None:
    """Refuse a topology that cannot work.

    Raises:
        ConfigError: Naming every fault.
    """
    # Later checks walk the flow, and need what the earlier ones make sure of.
    for check in (_kinds, _names, _bounds, _length, _views, _dead):
        if problems := list(check(topology)):
            raise ConfigError(
                f"topology {topology.name!r}: {'; '.join(problems)}",
                expected=f"a flow over the roles {sorted(role.name for role in topology.roles)}",
                fix="correct the Role, View or flow of that name",
            )


def upstream(flow: Flow) -> dict[str, set[str]]:
    """Return for each role of a flow the roles that may act directly before one of its turns, itself included."""
    edges = _edges(flow)
    return {act.role: {a for a, b in edges if b == act.role} for act in _acts(flow)}


def max_turns(flow: Flow) -> int:
    """Return the most turns that an episode can have."""
    match flow:
        case Act():
            return flow.turns
        case Chain() | Layer():
            return sum(max_turns(inner) for inner in flow.flows)
        case Loop():
            return flow.rounds * max_turns(flow.flow)
        case Pick():
            turns = {act.role: act.turns for act in flow.choices}
            return flow.rounds * (1 + max(turns.values())) + turns[flow.last]


def _acts(flow: Flow) -> list[Act]:
    return [part for part in parts(flow) if isinstance(part, Act)]


def _kinds(topology: Topology) -> Iterable[str]:
    given: Iterable[object] = parts(topology.flow)
    for part in given:
        if not isinstance(part, Flow):
            yield f"{part!r} is not a flow: write Act({part!r}) for a turn of a role"
        until: object = part.until if isinstance(part, Loop) else None
        if not isinstance(until, Says | None):
            yield f"a loop has until={until!r}: write Says(role, {until!r})"


def _names(topology: Topology) -> Iterable[str]:
    names = [role.name for role in topology.roles]
    for name in sorted({n for n in names if names.count(n) > 1}):
        yield f"role {name!r} is defined twice"
    for name in names:
        if not (name.isascii() and name.isalpha() and name.islower()):
            yield f"role name {name!r} is not lower-case letters only"
        elif name in GROUPS:
            yield f"role name {name!r} means a group of roles in views"
    if topology.answer_role not in names:
        yield f"answer_role {topology.answer_role!r} is not a role"
    acting = dict.fromkeys(name for part in parts(topology.flow) for name in _mentioned(part))
    for name in acting:
        if name not in names:
            yield f"the flow names {name!r}, which is not a role"
    acts = _acts(topology.flow)
    for name in names:
        if name not in {act.role for act in acts}:
            yield f"role {name!r} never acts: it is unreachable"
        else:
            taken = sorted({act.seat for act in acts if act.role == name})
            if taken != list(range(len(taken))):
                yield f"role {name!r} has the seats {taken}, not 0 to {len(taken) - 1}"


def _mentioned(flow: Flow) -> list[str]:
    match flow:
        case Act():
            return [flow.role]
        case Loop():
            return [flow.until.role] if flow.until is not None else []
        case Pick():
            return [flow.hub, flow.last]
    return []


def _bounds(topology: Topology) -> Iterable[str]:
    for part in parts(topology.flow):
        match part:
            case Act() if not _is_count(part.turns):
                yield f"role {part.role!r} has a limit of {part.turns!r} turns: it is unreachable or unbounded"
            case Chain() | Layer() if not part.flows:
                yield f"an empty {type(part).__name__}"
            case Layer():
                inner = [_agents(flow) for flow in part.flows]
                twice = {a for i, one in enumerate(inner) for other in inner[i + 1 :] for a in one & other}
                if twice:
                    yield f"{_list(sorted(twice))} acts side by side with itself"
            case Loop():
                inside = sorted({act.role for act in _acts(part)})
                if not _is_count(part.rounds):
                    yield f"the loop over {_list(inside)} has {part.rounds!r} rounds: it is unreachable or unbounded"
                if part.until is not None and part.until.role not in inside:
                    yield f"the loop over {_list(inside)} waits for {part.until.role!r}, which acts outside it"
            case Pick():
                yield from _pick_faults(part)


def _pick_faults(pick: Pick) -> Iterable[str]:
    names = [act.role for act in pick.choices]
    if not _is_count(pick.rounds):
        yield f"hub {pick.hub!r} has {pick.rounds!r} rounds: its choices are unreachable or unbounded"
    if pick.last not in names:
        yield f"hub {pick.hub!r} ends with {pick.last!r}, which is not one of its choices"
    if pick.hub in names or len(set(names)) < len(names):
        yield f"hub {pick.hub!r} needs different roles to choose from, not {_list(names)}"


def _length(topology: Topology) -> Iterable[str]:
    if (turns := max_turns(topology.flow)) > MAX_TURNS:
        yield f"an episode may have {turns} turns, more than {MAX_TURNS}"


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _agents(flow: Flow) -> set[str]:
    return {agent_name(act.role, act.seat) for act in _acts(flow)}


def _list(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _views(topology: Topology) -> Iterable[str]:
    names = {role.name for role in topology.roles}
    seats = {name: max(act.seat for act in _acts(topology.flow) if act.role == name) + 1 for name in names}
    for role in topology.roles:
        for view in role.sees:
            if view.role not in names and view.role not in GROUPS:
                yield f"role {role.name!r} sees {view.role!r}, which is not a role"
            elif view.role == role.name and seats[role.name] == 1:
                yield f"role {role.name!r} has one seat and looks at itself; its own turns are shown to it anyway"
            elif not (view.text or view.tools or view.files):
                yield f"the view of {role.name!r} on {view.role!r} shows nothing"
    before = _before(_edges(topology.flow))
    # Whoever a hub picks may be the first to work on the problem.
    picks = [part for part in parts(topology.flow) if isinstance(part, Pick)]
    first = _first(topology.flow) | {act.role for pick in picks for act in pick.choices}
    for role in topology.roles:
        seen = {name for view in role.sees for name in (names if view.role in GROUPS else {view.role})}
        if role.name not in first and not seen & before[role.name]:
            yield (
                f"role {role.name!r} sees nothing of what came before it"
                f" ({_list(sorted(before[role.name] - {role.name}))}): add a View, or put it in the first Layer"
            )


def _dead(topology: Topology) -> Iterable[str]:
    """Name the roles whose work can reach the answer by no view, no shared file, and no word that steers the flow."""
    reach: _Edges = set()
    for role in topology.roles:
        seen = {view.role for view in role.sees}
        others = {other.name for other in topology.roles if seen & set(GROUPS) or other.name in seen}
        reach |= {(other, role.name) for other in others}
        if role.tool is not None:
            reach |= {(other.name, role.name) for other in topology.roles if other.tool is not None}
    for part in parts(topology.flow):
        match part:
            case Loop(until=until) if until is not None:
                reach |= {(until.role, act.role) for act in _acts(part)}
            case Pick():
                reach |= {(part.hub, act.role) for act in part.choices}
    helpful = _before(reach).get(topology.answer_role, set()) | {topology.answer_role}
    for role in topology.roles:
        if role.name not in helpful:
            yield f"role {role.name!r} is dead: nobody on the way to {topology.answer_role!r} sees its work"


def _edges(flow: Flow) -> _Edges:
    """Return the pairs of roles of which the second may act directly after the first."""
    match flow:
        case Act():
            return {(flow.role, flow.role)} if flow.turns > 1 else set()
        case Chain():
            inner = set().union(*(_edges(f) for f in flow.flows))
            for one, other in zip(flow.flows, flow.flows[1:], strict=False):
                inner |= {(a, b) for a in _last(one) for b in _first(other)}
            return inner
        case Layer():
            return set().union(*(_edges(f) for f in flow.flows))
        case Loop():
            again = {(a, b) for a in _last(flow.flow) for b in _first(flow.flow)} if flow.rounds > 1 else set()
            return _edges(flow.flow) | again
        case Pick():
            names = {act.role for act in flow.choices}
            out = {(flow.hub, name) for name in names}
            back = {(name, flow.hub) for name in names - {flow.last}} if flow.rounds > 1 else set()
            unasked = {(name, flow.last) for name in names - {flow.last}}
            return out.union(back, unasked, *(_edges(act) for act in flow.choices))


def _first(flow: Flow) -> set[str]:
    match flow:
        case Act():
            return {flow.role}
        case Chain():
            return _first(flow.flows[0])
        case Layer():
            return set().union(*(_first(inner) for inner in flow.flows))
        case Loop():
            return _first(flow.flow)
        case Pick():
            return {flow.hub}


def _last(flow: Flow) -> set[str]:
    match flow:
        case Act():
            return {flow.role}
        case Chain():
            return _last(flow.flows[-1])
        case Layer():
            return set().union(*(_last(inner) for inner in flow.flows))
        case Loop():
            # A loop that waits for a word may end in its middle.
            early = {flow.until.role} if flow.until is not None else set()
            return _last(flow.flow) | early
        case Pick():
            return {flow.last}


def _before(edges: _Edges) -> dict[str, set[str]]:
    """Return for each name all names from which a path leads to it."""
    before: dict[str, set[str]] = {name: set() for edge in edges for name in edge}
    grown = True
    while grown:
        grown = False
        for a, b in edges:
            new = ({a} | before[a]) - before[b]
            if new:
                before[b] |= new
                grown = True
    return before
