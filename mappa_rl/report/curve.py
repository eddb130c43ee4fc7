"""The learning curve of a run as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mappa_rl.evaluation.evaluate import Evaluation


def learning_curve(
    path: Path, steps: Sequence[Mapping[str, Any]], evaluations: Sequence[tuple[int, Evaluation]]
) -> None:
    """Draw success and per-agent scores against training steps and write a PNG.

    Args:
        path: Where to write.
        steps: Metric records with `step`, `success` (share of rollouts) and `score/<agent>` (0-10).
        evaluations: Held-out results by the number of training steps before them.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    FigureCanvasAgg(figure)
    success, scores = figure.subplots(1, 2)
    at = [record["step"] for record in steps]
    if at:
        success.plot(at, [100 * record["success"] for record in steps], color="0.6", label="training rollouts")
    if evaluations:
        x = [step for step, _ in evaluations]
        mean = [100 * e.success.mean for _, e in evaluations]
        below = [m - 100 * e.success.low for m, (_, e) in zip(mean, evaluations, strict=True)]
        above = [100 * e.success.high - m for m, (_, e) in zip(mean, evaluations, strict=True)]
        success.errorbar(x, mean, yerr=[below, above], marker="o", capsize=4, label="held-out tasks (95 % interval)")
    success.set(xlabel="training step", ylabel="success (%)", ylim=(0, 100), title="Team success")
    success.legend(loc="lower right")
    agents = sorted({key.removeprefix("score/") for record in steps for key in record if key.startswith("score/")})
    for agent in agents:
        scores.plot(at, [record.get(f"score/{agent}", float("nan")) for record in steps], label=agent)
    scores.set(xlabel="training step", ylabel="judge's score (0-10)", ylim=(0, 10), title="Process rewards")
    if agents:
        scores.legend(loc="lower right")
    figure.savefig(path, dpi=120)
