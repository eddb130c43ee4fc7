"""Commands about environments: `envs`, `play`, `doctor`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

import envs_registry
import mappa_envs  # noqa: F401  registers the built-in environments
from mappa_rl.cli.app import ConfigFile, Overrides, RunFolder, app, config_of, console


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

    chosen = config_of(config, run, [f"env.id={env}", *(settings or [])])
    for text in play_episodes(chosen, policy=policy, run=run, episodes=episodes, first_task=task, seed=seed):
        console.print(text, markup=False)
        console.print()


@app.command()
def doctor() -> None:
    """Say how well agent code is isolated here and how to get more, and print versions, devices and cached models."""
    from mappa_rl.doctor import doctor_lines

    for line in doctor_lines():
        console.print(line, markup=False, soft_wrap=True)
