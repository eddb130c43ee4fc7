"""A topology as a picture: boxes act from left to right, dashed arrows show who sees whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mappa_envs.errors import ConfigError
from mappa_envs.flow import Act, Chain, Flow, Layer, Loop, Pick, agent_name
from mappa_envs.topologies.outline import loop_text
from mappa_envs.topology import Topology

_FORMATS = (".svg", ".png", ".pdf")
_SEEN = {
    "arrowstyle": "->",
    "color": "#b0651d",
    "lw": 0.9,
    "linestyle": (0, (4, 3)),
    "connectionstyle": "arc3,rad=0.28",
}
_TOOL, _PLAIN, _ANSWER = "#dbe9f6", "#f2f2f2", "#2a6f4e"


@dataclass(slots=True)
class _Frame:
    left: float
    right: float
    low: float
    high: float
    label: str


@dataclass(slots=True)
class _Plan:
    """Where the boxes of a flow stand, in units of one box; `width` columns, rows around zero."""

    width: int
    height: int
    places: dict[str, tuple[float, float]] = field(default_factory=dict)
    frames: list[_Frame] = field(default_factory=list)
    steps: list[tuple[str, str]] = field(default_factory=list)
    """Which box follows which."""
    first: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)

    def moved(self, x: float, y: float) -> _Plan:
        places = {name: (a + x, b + y) for name, (a, b) in self.places.items()}
        frames = [_Frame(f.left + x, f.right + x, f.low + y, f.high + y, f.label) for f in self.frames]
        return _Plan(self.width, self.height, places, frames, self.steps, self.first, self.last)


def draw(topology: Topology, path: Path) -> None:
    """Write the picture of a topology.

    Args:
        topology: What to draw.
        path: An `.svg`, `.png` or `.pdf` file.

    Raises:
        ConfigError: If the file has another ending.
    """
    if path.suffix.lower() not in _FORMATS:
        raise ConfigError(f"cannot draw to {path.name!r}", expected=f"a name that ends in {', '.join(_FORMATS)}")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    plan = _plan(topology.flow)
    with rc_context({"svg.hashsalt": topology.name}):
        figure = Figure(figsize=(2.1 * plan.width + 0.8, 1.25 * plan.height + 1.6), layout="constrained")
        axes = figure.add_subplot()
        _paint(axes, topology, plan)
        # Without a date the same topology gives the same file.
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)


def _plan(flow: Flow) -> _Plan:
    match flow:
        case Act():
            name = agent_name(flow.role, flow.seat)
            return _Plan(1, 1, {name: (0, 0)}, [], [(name, name)] if flow.turns > 1 else [], [name], [name])
        case Chain():
            return _row([_plan(inner) for inner in flow.flows])
        case Layer():
            return _stack([_plan(inner) for inner in flow.flows])
        case Loop():
            return _framed(_plan(flow.flow), loop_text(flow))
        case Pick():
            hub = _plan(Act(flow.hub))
            choices = _stack([_plan(act) for act in flow.choices])
            both = _row([hub, choices])
            both.last = [agent_name(flow.last, act.seat) for act in flow.choices if act.role == flow.last]
            return _framed(both, loop_text(flow))


def _row(plans: list[_Plan]) -> _Plan:
    made = _Plan(0, max(plan.height for plan in plans), first=plans[0].first)
    for plan in plans:
        moved = plan.moved(made.width, 0)
        # An agent that acts again later keeps its first place.
        made.places = {**moved.places, **made.places}
        made.frames += moved.frames
        made.steps += [(a, b) for a in made.last for b in plan.first] + plan.steps
        made.last = plan.last
        made.width += plan.width
    return made


def _stack(plans: list[_Plan]) -> _Plan:
    height = sum(plan.height for plan in plans)
    made = _Plan(max(plan.width for plan in plans), height)
    top = (height - 1) / 2
    for plan in plans:
        moved = plan.moved(0, top - (plan.height - 1) / 2)
        top -= plan.height
        made.places |= moved.places
        made.frames += moved.frames
        made.steps += plan.steps
        made.first = [*made.first, *plan.first]
        made.last = [*made.last, *plan.last]
    return made


def _framed(plan: _Plan, label: str) -> _Plan:
    half = (plan.height - 1) / 2 + 0.45
    depth = 0.06 * len(plan.frames)
    plan.frames.append(_Frame(-0.45 - depth, plan.width - 0.55 + depth, -half - depth, half + depth, label))
    return plan


def _paint(axes: Any, topology: Topology, plan: _Plan) -> None:
    for frame in plan.frames:
        axes.add_patch(_box(frame.left, frame.low, frame.right, frame.high, fc="none", ec="#888888"))
        axes.text(frame.left + 0.04, frame.high + 0.05, frame.label, fontsize=8, color="#555555", parse_math=False)
    boxes = {}
    for agent in topology.agents:
        (x, y), role = plan.places[agent], topology.role_of(agent)
        answers = role.name == topology.answer_role
        edge = {"ec": _ANSWER if answers else "#444444", "lw": 2.2 if answers else 1}
        face = _TOOL if role.tool else _PLAIN
        boxes[agent] = axes.add_patch(_box(x - 0.32, y - 0.26, x + 0.32, y + 0.26, fc=face, zorder=3, **edge))
        axes.text(x, y, f"{agent}\n{role.duty}", ha="center", va="center", fontsize=8.5, zorder=4)
    for start, end in sorted({step for step in plan.steps if step[0] != step[1]}):
        axes.add_patch(_arrow(plan, boxes, start, end, arrowstyle="-|>", color="black", lw=1.2))
    for agent in topology.agents:
        seen_roles = {view.role for view in topology.role_of(agent).sees}
        for seen in topology.agents:
            if topology.role_of(seen).name in seen_roles and seen != agent:
                axes.add_patch(_arrow(plan, boxes, seen, agent, **_SEEN))
    axes.set_title(topology.name, loc="left", fontsize=11)
    note = "black: acts next   dashed: is seen by   blue: runs code   green edge: gives the answer"
    axes.set_xlabel(note, fontsize=7, color="#555555", loc="left")
    axes.set_xlim(-0.75, plan.width - 0.25)
    axes.set_ylim(-plan.height / 2 - 0.15, plan.height / 2 + 0.25)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)


def _box(left: float, low: float, right: float, high: float, **style: Any) -> Any:
    from matplotlib.patches import FancyBboxPatch

    return FancyBboxPatch((left, low), right - left, high - low, boxstyle="round,pad=0,rounding_size=0.08", **style)


def _arrow(plan: _Plan, boxes: Mapping[str, Any], start: str, end: str, **style: Any) -> Any:
    from matplotlib.patches import FancyArrowPatch

    ends = {"patchA": boxes[start], "patchB": boxes[end], "shrinkA": 1, "shrinkB": 2}
    return FancyArrowPatch(plan.places[start], plan.places[end], mutation_scale=11, zorder=2, **ends, **style)
