"""A topology as text."""

from __future__ import annotations

from collections.abc import Iterator

from mappa_envs.flow import Act, Chain, Flow, Layer, Loop, Pick, agent_name
from mappa_envs.topology import Topology, View

_STOPS = {"never": "", "code_ok": ", until its code ran", "no_code": ", until it writes no code"}


def outline(topology: Topology) -> str:
    """Return a topology for people: its flow as an indented list, then each role with its duty and what it sees."""
    lines = [
        f"{topology.name}: {len(topology.agents)} agents, at most {topology.max_turns} turns; "
        f"the answer is the {topology.answer_role}'s last action",
        "",
        "flow",
        *(f"  {line}" for line in _flow(topology.flow)),
        "",
        "roles",
    ]
    for role in topology.roles:
        agents = [agent for agent in topology.agents if topology.role_of(agent) is role]
        tool = f", runs {role.tool}" if role.tool else ""
        lines.append(f"  {role.name} ({', '.join(agents)}): duty {role.duty}{tool}")
        lines.append(f"    sees {'; '.join(['the problem', 'its own turns', *map(view_text, role.sees)])}")
    return "\n".join(lines)


def view_text(view: View) -> str:
    """Return a view in words: `coder (last turn: text, tools)`."""
    kinds = [name for name, shown in (("text", view.text), ("tools", view.tools), ("files", view.files)) if shown]
    return f"{view.role} ({'last turn' if view.turns == 'last' else 'all turns'}: {', '.join(kinds)})"


def act_text(act: Act) -> str:
    """Return a turn in words."""
    limit = f" (up to {act.turns} turns{_STOPS[act.stop_when]})" if act.turns > 1 else ""
    return agent_name(act.role, act.seat) + limit


def loop_text(flow: Loop | Pick) -> str:
    """Return the rule of a loop or a hub in words."""
    if isinstance(flow, Pick):
        return f"up to {flow.rounds} picks by {flow.hub}; {flow.last} ends it"
    until = f", until {flow.until.role} writes {flow.until.text}" if flow.until else ""
    return f"{'up to ' if flow.until else ''}{flow.rounds} {'time' if flow.rounds == 1 else 'times'}{until}"


def _flow(flow: Flow) -> Iterator[str]:
    match flow:
        case Act():
            yield act_text(flow)
        case Chain():
            for inner in flow.flows:
                yield from _flow(inner)
        case Layer():
            yield "side by side"
            for inner in flow.flows:
                yield from (f"  {line}" for line in _flow(inner))
        case Loop():
            yield loop_text(flow)
            yield from (f"  {line}" for line in _flow(flow.flow))
        case Pick():
            yield loop_text(flow)
            yield from (f"  {act_text(act)}" for act in flow.choices)
