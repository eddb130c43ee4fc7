"""`mappa bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mappa_rl.cli.app import Overrides, app, console
from mappa_rl.config import load_config


@app.command()
def bench(
    file: Annotated[Path, typer.Argument(metavar="FILE.yaml", help="The benchmark.")],
    settings: Overrides = None,
    against: Annotated[Path | None, typer.Option(help="Compare with this older bench.json, cell by cell.")] = None,
) -> None:
    """Compare environments, topologies, policies and algorithms on the same problems and seeds.

    What is finished is kept: the same command goes on where it stopped. Exits with 1 if a run failed.
    """
    from mappa_rl.bench import summary
    from mappa_rl.bench.config import BenchConfig
    from mappa_rl.bench.report import Rows, cell_rows, contrast_rows, markdown, read_cells
    from mappa_rl.bench.run import Failed, run_bench
    from mappa_rl.bench.work import RunResult

    def say(made: RunResult | Failed, done: int, total: int) -> None:
        text = f"FAILED: {made.reason}" if isinstance(made, Failed) else f"success {made.evaluation.success}"
        console.print(
            f"{done:>3}/{total}  {made.run.cell}, seed {made.run.config.seed}: {text}", markup=False, soft_wrap=True
        )

    def show(title: str, rows: Rows) -> None:
        console.print(f"\n{title}", style="bold", markup=False)
        console.print(markdown(rows), markup=False, soft_wrap=True)

    chosen = load_config(BenchConfig, file, settings or [])
    old = read_cells(against) if against is not None else None
    out = chosen.out or Path("runs") / f"bench-{file.stem}"
    report = run_bench(chosen, out, say)
    if report.kept:
        console.print(f"{report.kept} runs were finished before", style="dim")
    show("costs are means per episode", cell_rows(report.cells))
    if report.contrasts:
        show("cells that differ in one thing only", contrast_rows(report.contrasts))
    if old is not None:
        made, notes = summary.against(report.cells, old)
        show(f"new against {against}", contrast_rows(made))
        for note in notes:
            console.print(note, markup=False, soft_wrap=True)
    console.print(f"everything is in {out}: bench.json, table.md, success.png, runs/", markup=False, soft_wrap=True)
    if report.failed:
        raise typer.Exit(1)
