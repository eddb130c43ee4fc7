"""Commands about training and measuring: `train`, `eval`, `compare`, `contamination`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mappa_rl.cli.app import ConfigFile, Overrides, RunFolder, app, config_of, console


@app.command()
def train(
    settings: Overrides = None,
    config: ConfigFile = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="Go on with the run in this folder, with its settings, from its last checkpoint."),
    ] = None,
) -> None:
    """Train a team and report held-out success before and after.

    Without settings it trains the embedded tiny model on generated competition maths, on any machine. In several
    processes: `accelerate launch --module mappa_rl.cli train ...`.
    """
    from mappa_rl.progress import TrainProgress, new_run_dir
    from mappa_rl.trainer import Trainer
    from mappa_rl.training.processes import launched_processes

    chosen = config_of(config or (resume / "config.yaml" if resume else None), None, settings or [])
    processes = launched_processes(chosen.policy.device)
    # The name is made from the time, which processes need not agree on.
    run_dir = processes.on_first(lambda: resume or chosen.run_dir or new_run_dir(Path("runs")))
    console.quiet = not processes.first
    console.print(f"run folder: {run_dir}")
    with TrainProgress(console, chosen.steps) as progress:
        trainer = Trainer(chosen, run_dir, resume=resume is not None, report=progress, processes=processes)
        result = trainer.run()
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

    chosen = config_of(config, run, settings or [])
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
