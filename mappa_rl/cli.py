"""The `mappa` command."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import envs_registry
import mappa_envs  # noqa: F401  registers the built-in environments
from envs_registry.errors import MappaError
from mappa_rl.config import TrainConfig, load_config

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Teams of language-model agents that learn from per-action rewards.",
)
console = Console(highlight=False)

Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings, e.g. `steps=5 optim.lr=1e-3`.")
]
ConfigFile = Annotated[Path | None, typer.Option("--config", "-c", help="YAML file with settings.")]
RunFolder = Annotated[Path | None, typer.Option("--run", help="Use the settings and adapters of this run folder.")]


@app.command()
def envs() -> None:
    """List the registered environments."""
    table = Table("id", "description", box=None, header_style="bold")
    for spec in envs_registry.registered():
        table.add_row(spec.id, spec.description)
    console.print(table)


@app.command()
def play(
    env: Annotated[str, typer.Argument(help="Environment id.")] = "Mappa/MathChat-v0",
    settings: Overrides = None,
    policy: Annotated[
        str, typer.Option(help="`scripted`, or `model` (policy.model, with the adapters of --run).")
    ] = "scripted",
    episodes: Annotated[int, typer.Option(min=1, help="How many episodes.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sampling.")] = 0,
    task: Annotated[int, typer.Option(min=0, help="Index of the first held-out task.")] = 0,
    config: ConfigFile = None,
    run: RunFolder = None,
) -> None:
    """Play episodes and print their transcripts with scores."""
    from mappa_rl.play import play_episodes

    chosen = _config(config, run, [f"env.id={env}", *(settings or [])])
    for text in play_episodes(chosen, policy=policy, run=run, episodes=episodes, first_task=task, seed=seed):
        console.print(text, markup=False)
        console.print()


@app.command()
def train(
    settings: Overrides = None,
    config: ConfigFile = None,
    resume: Annotated[Path | None, typer.Option(help="Go on from the newest checkpoint of this run folder.")] = None,
) -> None:
    """Train a team and report held-out success before and after.

    Without settings it trains the embedded tiny model on generated competition maths, on any machine.
    """
    from mappa_rl.progress import TrainProgress, new_run_dir
    from mappa_rl.trainer import Trainer

    chosen = _config(config or (resume / "config.yaml" if resume else None), None, settings or [])
    run_dir = resume or chosen.run_dir or new_run_dir(Path("runs"))
    console.print(f"run folder: {run_dir}")
    with TrainProgress(console, chosen.steps) as progress:
        result = Trainer(chosen, run_dir, resume=resume is not None, report=progress).run()
    progress.finish(result)


@app.command(name="eval")
def evaluate_command(
    settings: Overrides = None,
    config: ConfigFile = None,
    run: RunFolder = None,
    against: Annotated[
        str | None, typer.Option(help="Compare with this run folder, or with `base`: the team before training.")
    ] = None,
    transcripts: Annotated[int, typer.Option(min=0, help="How many transcripts to print.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="The result as JSON. Default: under `evals/`, named by the settings.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Play all episodes anew.")] = False,
) -> None:
    """Measure a team on held-out tasks: avg@k, pass@k, majority@k, who went wrong; all with 95 % intervals.

    Samples per task: `eval.samples=4`. Episodes are kept as they finish: the same command goes on where it stopped.
    """
    from mappa_rl.evaluation.run import run_evaluation
    from mappa_rl.progress import print_evaluation

    chosen = _config(config, run, settings or [])
    result = run_evaluation(
        chosen,
        run=run,
        against=against,
        out=out,
        fresh=fresh,
        transcripts=transcripts,
        on_progress=lambda done, total: console.print(f"{done} of {total} episodes are done", style="dim"),
    )
    print_evaluation(console, result.policy)
    if result.baseline is not None:
        console.print(f"\nagainst: {against}", style="bold", markup=False)
        print_evaluation(console, result.baseline)
        console.print(f"\ndifference to {against}: {result.comparison}", style="bold", markup=False, soft_wrap=True)


@app.command(name="compare")
def compare_command(
    result: Annotated[Path, typer.Argument(help="A result that `mappa eval` wrote, or `eval-NNNNNN.json` of a run.")],
    baseline: Annotated[Path, typer.Argument(help="A result on the same tasks to compare with.")],
) -> None:
    """Compare two results on the same tasks: paired difference with a 95 % interval and a p-value."""
    from mappa_rl.evaluation.result import compare_results

    comparison, differing = compare_results(result, baseline)
    for key, mine, theirs in differing:
        console.print(f"differs: {key} = {mine}, baseline {theirs}", markup=False, soft_wrap=True)
    console.print(f"success: {100 * comparison.mean:.1f} %, baseline {100 * comparison.baseline:.1f} %")
    console.print(f"difference: {comparison}", style="bold", soft_wrap=True)


@app.command()
def contamination(
    train_file: Annotated[Path, typer.Argument(metavar="TRAIN.jsonl", help="Training problems.")],
    eval_file: Annotated[Path, typer.Argument(metavar="EVAL.jsonl", help="Held-out problems.")],
    prompt: Annotated[str, typer.Option(help="Key of the statement in both files.")] = "prompt",
    answer: Annotated[str, typer.Option(help="Key of the answer in both files.")] = "answer",
) -> None:
    """Name the held-out maths problems that are also training problems; exits with 1 if there are any."""
    from mappa_envs.tasks.math.contamination import check_contamination
    from mappa_envs.tasks.math.jsonl import JsonlSource

    train_tasks, eval_tasks = (JsonlSource(path, prompt=prompt, answer=answer) for path in (train_file, eval_file))
    report = check_contamination(train_tasks, eval_tasks)
    console.print(report.summary(), markup=False, soft_wrap=True)
    if not report.clean:
        raise typer.Exit(1)


@app.command()
def doctor() -> None:
    """Say how well agent code is isolated here and how to get more, and print versions, devices and cached models."""
    from mappa_rl.doctor import doctor_lines

    for line in doctor_lines():
        console.print(line, markup=False, soft_wrap=True)


def _config(file: Path | None, run: Path | None, settings: Sequence[str]) -> TrainConfig:
    if run is not None and file is None:
        file = run / "config.yaml"
    return load_config(TrainConfig, file, settings)


def main() -> None:
    """Run the command; errors of this project print what was expected, what was got and the fix, and exit with 2."""
    # What the libraries say of their own progress and plans would bury what this command says.
    warnings.filterwarnings("ignore", category=FutureWarning)
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    try:
        app()
    except MappaError as error:
        Console(stderr=True, highlight=False).print(f"error: {error}", markup=False, style="red")
        sys.exit(2)
