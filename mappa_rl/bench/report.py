"""The report of a benchmark: one JSON, a table, and a picture."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mappa_rl.bench.plot import plot_cells
from mappa_rl.bench.summary import CellSummary, Contrast, contrasts, pareto_front
from mappa_rl.errors import EvaluationError
from mappa_rl.files import write_text

FORMAT = 1
JSON_NAME, TABLE_NAME, PICTURE_NAME = "bench.json", "table.md", "success.png"

Rows = list[list[str]]
"""Cells of a table as text; the first row is its header."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a benchmark came to."""

    bench: Mapping[str, Any]
    """Its settings, as plain JSON."""
    cells: tuple[CellSummary, ...]
    failed: Mapping[str, str]
    """Why runs came to no result, by their names."""
    kept: int
    """Runs that were finished before."""

    @property
    def contrasts(self) -> list[Contrast]:
        """All pairs of cells that differ in one thing only."""
        return contrasts(self.cells)


def write_report(report: Report, folder: Path) -> None:
    """Write `bench.json`, `table.md` and `success.png` into a folder."""
    made = report.contrasts
    data = {
        "format": FORMAT,
        "bench": report.bench,
        "cells": [cell.to_json() for cell in report.cells],
        "contrasts": [contrast.to_json() for contrast in made],
        "failed": report.failed,
    }
    write_text(folder / JSON_NAME, json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    parts = [markdown(cell_rows(report.cells)), markdown(contrast_rows(made))]
    write_text(folder / TABLE_NAME, "\n".join(parts))
    plot_cells(folder / PICTURE_NAME, report.cells)


def read_cells(path: Path) -> list[CellSummary]:
    """Return the cells of a `bench.json`.

    Raises:
        EvaluationError: If the file cannot be read or is something else.
    """
    expected = f"a {JSON_NAME} that `mappa bench` wrote"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        got = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise EvaluationError(f"{path} cannot be read", expected=expected, got=got, fix="check the path") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("cells"), list):
        raise EvaluationError(f"{path} is no benchmark", expected=expected, got=str(data)[:80])
    return [CellSummary.from_json(cell) for cell in data["cells"]]


def cell_rows(cells: Sequence[CellSummary]) -> Rows:
    """Return the result table: one row per cell, labels only of the axes that vary; costs are means per episode."""
    axes = [
        name
        for name in ("environment", "topology", "policy", "algorithm")
        if len({getattr(c.cell, name) for c in cells}) > 1
    ]
    front = {front.cell for e in {c.cell.environment for c in cells} for front in pareto_front(_of(cells, e))}
    numbers = ["success %", "95 % interval", "by seed", "actions", "tokens read", "written", "judge calls", "seconds"]
    rows = [[*axes, *numbers, "Pareto"]]
    for cell in cells:
        interval, cost = cell.success, cell.cost
        rows.append(
            [
                *(getattr(cell.cell, name) or "-" for name in axes),
                f"{100 * interval.mean:.1f}",
                f"{100 * interval.low:.1f} to {100 * interval.high:.1f}",
                " ".join(f"{100 * share:.1f}" for share in cell.by_seed.values()),
                f"{cost.actions:.1f}",
                f"{cost.prompt_tokens:.0f}",
                f"{cost.response_tokens:.0f}",
                f"{cost.judge_calls:.1f}",
                "-" if cost.seconds is None else f"{cost.seconds:.2f}",
                "front" if cell.cell in front else "",
            ]
        )
    return rows


def contrast_rows(made: Sequence[Contrast]) -> Rows:
    """Return the table of comparisons, the surest first."""
    rows = [["differ in", "where", "first", "second", "points", "95 % interval", "p", "p (Holm)"]]
    for contrast in sorted(made, key=lambda c: (c.p_holm, c.paired.p_value)):
        d = contrast.paired.difference
        labels = [contrast.what, contrast.where, contrast.first, contrast.second]
        numbers = [f"{100 * d.mean:+.1f}", f"{100 * d.low:+.1f} to {100 * d.high:+.1f}"]
        rows.append([*labels, *numbers, f"{contrast.paired.p_value:.2g}", f"{contrast.p_holm:.2g}"])
    return rows


def markdown(rows: Rows) -> str:
    """Return rows as a Markdown table whose columns are aligned as plain text too."""
    escaped = [[text.replace("|", "\\|") for text in row] for row in rows]
    widths = [max(len(row[at]) for row in escaped) for at in range(len(rows[0]))]
    header, *body = ["| " + " | ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)) + " |" for row in escaped]
    return "\n".join([header, "|" + "|".join("-" * (w + 2) for w in widths) + "|", *body]) + "\n"


def _of(cells: Sequence[CellSummary], environment: str) -> list[CellSummary]:
    return [cell for cell in cells if cell.cell.environment == environment]
