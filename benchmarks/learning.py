"""Process against outcome rewards, and algorithms against each other, at equal rollouts.

    python benchmarks/learning.py --out learning          # 5 arms x 5 seeds, about 70 minutes on one core
    python benchmarks/learning.py --out learning --report # only the tables and the picture, from what is there

Every run is a `mappa train` of the embedded model on MathChat with held-out evaluations on the way. Runs that are
done are kept, so that the command goes on where it was stopped. `learning.json` holds every number, `learning.png` the
curves; the tables are printed as Markdown.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import shutil
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scipy import stats

from mappa_envs.envs.math_chat import DEFAULT_TASKS
from mappa_envs.tasks.math.families import STARTER_FAMILIES

ARMS: dict[str, tuple[str, ...]] = {
    "process": ("reward=process",),
    "outcome": ("reward=outcome",),
    "mixed": ("reward=mixed",),
    "grpo": ("reward=process", "algorithm.name=grpo"),
    "dr_mas": ("reward=process", "algorithm.name=dr_mas"),
}
"""Settings by arm; the first three learn with REINFORCE++."""

Cell = Mapping[str, Any]


def run_cell(
    arm: str, seed: int, levels: Sequence[int], steps: int, every: int, tasks: int, more: Sequence[str], folder: Path
) -> Cell:
    """Train one arm with one seed and return its held-out successes by rollouts."""
    from mappa_rl.config import TrainConfig, load_config
    from mappa_rl.trainer import Trainer

    settings = [*ARMS[arm], f"seed={seed}", f"steps={steps}", f"eval.every={every}", f"eval.tasks={tasks}"]
    if tuple(levels) != DEFAULT_TASKS.levels:
        settings.append(f"env.kwargs.tasks={{families: [{', '.join(STARTER_FAMILIES)}], levels: {list(levels)}}}")
    settings += more
    config = load_config(TrainConfig, None, [*settings, "keep_transcripts=0"])
    shutil.rmtree(folder, ignore_errors=True)
    started = time.monotonic()
    Trainer(config, folder).run()
    rollouts = config.rollout.tasks_per_step * config.rollout.samples_per_task
    return {
        "arm": arm,
        "seed": seed,
        "settings": settings,
        "commit": _commit(),
        "seconds": round(time.monotonic() - started, 1),
        "curve": [[line["step"] * rollouts, line["success"]] for line in _lines(folder / "evaluations.jsonl")],
        "training": [line["success"] for line in _lines(folder / "metrics.jsonl")],
    }


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return mean and 95 % t-interval over seeds: runs are the units, so that luck of a run is in it."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, math.nan, math.nan
    half = stats.t.ppf(0.975, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def rollouts_to(curve: Sequence[Sequence[float]], threshold: float) -> float:
    """Return the rollouts at the first evaluation with at least `threshold` success; infinity if there is none."""
    return next((at for at, success in curve if success >= threshold), math.inf)


def by_arm(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Return the cells of each arm that has some, by seed."""
    return {
        arm: mine for arm in ARMS if (mine := sorted((c for c in cells if c["arm"] == arm), key=lambda c: c["seed"]))
    }


def band(cells: Sequence[Cell]) -> list[tuple[float, float, float]]:
    """Return an arm's mean success with its interval in percent, one per evaluation."""
    curves = zip(*([100 * success for _, success in cell["curve"]] for cell in cells), strict=True)
    return [interval(successes) for successes in curves]


def tables(cells: Sequence[Cell]) -> str:
    """Return success against rollouts and rollouts to the outcome arm's final success, as Markdown."""
    arms = by_arm(cells)
    ats = [at for at, _ in cells[0]["curve"]]
    lines = ["| rollouts | " + " | ".join(arms) + " |", "|---" * (len(arms) + 1) + "|"]
    for at, *row in zip(ats, *map(band, arms.values()), strict=True):
        lines.append(f"| {at} | " + " | ".join(f"{mean:.1f} ({low:.0f}-{high:.0f})" for mean, low, high in row) + " |")
    if "outcome" in arms:
        threshold = statistics.fmean(c["curve"][-1][1] for c in arms["outcome"])
        lines += ["", f"Rollouts to {100 * threshold:.1f} % (the outcome arm's final mean), seed by seed:", ""]
        lines += ["| arm | each seed | median |", "|---|---|---|"]
        for arm, mine in arms.items():
            reached = [rollouts_to(c["curve"], threshold) for c in mine]
            shown = ", ".join("never" if math.isinf(r) else f"{r:.0f}" for r in reached)
            middle = statistics.median(reached)
            lines.append(f"| {arm} | {shown} | {'never' if math.isinf(middle) else f'{middle:.0f}'} |")
    return "\n".join(lines)


def draw(cells: Sequence[Cell], path: Path) -> None:
    """Draw held-out success against rollouts, with 95 % intervals over seeds."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    arms = by_arm(cells)
    groups = [
        ("rewards (REINFORCE++)", ("process", "outcome", "mixed")),
        ("algorithms (process)", ("process", "grpo", "dr_mas")),
    ]
    shown = [group for group in groups if len(arms.keys() & set(group[1])) > 1] or groups[:1]
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for panel, (title, names) in zip(panels, shown, strict=True):
        for arm in (name for name in names if name in arms):
            mine = arms[arm]
            x = [at for at, _ in mine[0]["curve"]]
            means, lows, highs = zip(*band(mine), strict=True)
            label = "reinforce_pp" if arm == "process" and "grpo" in names else arm
            (line,) = panel.plot(x, means, marker="o", label=f"{label} ({len(mine)} seeds)")
            panel.fill_between(x, lows, highs, color=line.get_color(), alpha=0.2)
        panel.set(xlabel="training episodes", title=title, ylim=(0, 100))
        panel.legend(loc="lower right")
    panels[0].set_ylabel("held-out success, % (95 % interval over seeds)")
    figure.savefig(path, dpi=120)


def main() -> None:
    """Run what is missing, then report."""
    parser = argparse.ArgumentParser(description="Process against outcome rewards at equal rollouts.")
    parser.add_argument("--out", type=Path, default=Path("learning"), help="folder of results")
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=list(ARMS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--levels", nargs="+", type=int, default=list(DEFAULT_TASKS.levels), help="difficulty of the tasks"
    )
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--every", type=int, default=2, help="evaluate after every so many steps")
    parser.add_argument("--tasks", type=int, default=100, help="held-out tasks per evaluation")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="settings of all runs")
    parser.add_argument("--report", action="store_true", help="run nothing")
    options = parser.parse_args()
    done = options.out / "cells"
    done.mkdir(parents=True, exist_ok=True)
    for seed in range(options.seeds):
        for arm in options.arms:
            path = done / f"{arm}-{seed}.json"
            if path.exists() or options.report:
                continue
            folder = options.out / "runs" / path.stem
            cell = run_cell(arm, seed, options.levels, options.steps, options.every, options.tasks, options.set, folder)
            path.write_text(json.dumps(cell, indent=2) + "\n")
            print(f"{path.stem}: {100 * cell['curve'][-1][1]:.0f} % in {cell['seconds']:.0f} s", flush=True)
    cells = [json.loads(path.read_text()) for path in sorted(done.glob("*.json"))]
    machine = {"python": platform.python_version(), "machine": platform.machine()}
    (options.out / "learning.json").write_text(json.dumps({"machine": machine, "cells": cells}, indent=2) + "\n")
    draw(cells, options.out / "learning.png")
    print(tables(cells))


if __name__ == "__main__":
    main()
