"""Success of the cells of a benchmark, and what it costs, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mappa_rl.bench.grid import Cell
from mappa_rl.bench.summary import CellSummary, pareto_front

_MARKERS = "osD^vP*X<>hp"


def plot_cells(path: Path, cells: Sequence[CellSummary]) -> None:
    """Draw, per environment, success with intervals, and success against tokens with the Pareto front; write a PNG.

    Args:
        path: Where to write.
        cells: What to draw. Scripted ones, which have no tokens, are in the first picture only.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    environments = list(dict.fromkeys(cell.cell.environment for cell in cells))
    by_environment = [[cell for cell in cells if cell.cell.environment == name] for name in environments]
    heights = [max(3.5, 0.28 * len(mine) + 1.2) for mine in by_environment]
    figure = Figure(figsize=(13, sum(heights)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(environments), 2, squeeze=False, height_ratios=heights)
    styles = _styles([cell.cell for cell in cells])
    for (left, right), name, mine in zip(axes, environments, by_environment, strict=True):
        _success(left, mine, styles)
        _tokens(right, mine, styles)
        left.set_title(f"{name}: success", fontsize="medium")
        right.set_title(f"{name}: success against tokens", fontsize="medium")
    figure.savefig(path, dpi=120)


def _styles(cells: Sequence[Cell]) -> dict[Cell, dict[str, str]]:
    """Colour tells the topology, the marker tells policy and algorithm."""
    topologies = list(dict.fromkeys(cell.topology for cell in cells))
    players = list(dict.fromkeys((cell.policy, cell.algorithm) for cell in cells))
    return {
        cell: {
            "color": f"C{topologies.index(cell.topology)}",
            "marker": _MARKERS[players.index((cell.policy, cell.algorithm)) % len(_MARKERS)],
        }
        for cell in cells
    }


def _label(cell: Cell) -> str:
    return " / ".join(part for part in (cell.topology, cell.policy, cell.algorithm) if part)


def _success(axis: Any, cells: Sequence[CellSummary], styles: dict[Cell, dict[str, str]]) -> None:
    for at, cell in enumerate(cells):
        axis.errorbar(100 * cell.success.mean, at, xerr=_bars(cell), capsize=3, **styles[cell.cell])
    axis.set_yticks(range(len(cells)), [_label(cell.cell) for cell in cells])
    axis.invert_yaxis()
    axis.set(xlabel="success (%, 95 % interval over tasks)", xlim=(-2, 102))
    axis.grid(axis="x", alpha=0.3)


def _tokens(axis: Any, cells: Sequence[CellSummary], styles: dict[Cell, dict[str, str]]) -> None:
    front, played = pareto_front(cells), [cell for cell in cells if not cell.scripted]
    for cell in played:
        at = cell.cost.tokens, 100 * cell.success.mean
        axis.errorbar(*at, yerr=_bars(cell), capsize=3, label=_label(cell.cell), **styles[cell.cell])
    if front:
        axis.step(
            [*(cell.cost.tokens for cell in front), max(cell.cost.tokens for cell in played)],
            [100 * cell.success.mean for cell in (*front, front[-1])],
            where="post",
            color="0.5",
            linestyle="--",
            label="Pareto front",
        )
        axis.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
    axis.set(xlabel="tokens per episode, read and written", ylabel="success (%)", ylim=(-2, 102))
    axis.set_xlim(left=0)
    axis.grid(alpha=0.3)


def _bars(cell: CellSummary) -> list[list[float]]:
    interval = cell.success
    return [[100 * (interval.mean - interval.low)], [100 * (interval.high - interval.mean)]]
