"""Commands about environments: `envs`, `play`, `doctor`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

import envs_registry
import mappa_envs  # noqa: F401  registers the built-in environments
from envs_registry.errors import ConfigError
from mappa_rl.cli.app import ConfigFile, Overrides, RunFolder, app, config_of, console

if TYPE_CHECKING:
    from mappa_rl.play import PlayedTask


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
    episodes: Annotated[
        str, typer.Option(help="How many episodes, or `all`: every task of both splits, as a table.")
    ] = "1",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sampling.")] = 0,
    task: Annotated[int, typer.Option(min=0, help="Index of the first held-out task.")] = 0,
    config: ConfigFile = None,
    run: RunFolder = None,
) -> None:
    """Play episodes and print their transcripts with scores."""
    from mappa_rl.play import play_all, play_episodes

    chosen = config_of(config, run, [f"env.id={env}", *(settings or [])])
    if episodes == "all":
        _print_all(play_all(chosen, policy=policy, run=run, seed=seed))
        return
    if not (episodes.isascii() and episodes.isdigit() and int(episodes) > 0):
        raise ConfigError("bad --episodes", expected="a positive integer or 'all'", got=repr(episodes))
    for text in play_episodes(chosen, policy=policy, run=run, episodes=int(episodes), first_task=task, seed=seed):
        console.print(text, markup=False)
        console.print()


def _print_all(played: Iterable[PlayedTask]) -> None:
    """Print a line per task as it comes in, then the mean per kind of task."""
    from mappa_envs.grading.tables import fair_metrics

    done: list[PlayedTask] = []
    for one in played:
        done.append(one)
        word = {True: "success", False: "failure", None: "undecided"}[one.success]
        roles = "  ".join(f"{name} {score:.1f}" for name, score in one.roles.items() if score is not None)
        console.print(f"{one.split:5}  {one.task:32}  {word:9}  {roles}  {one.reason}", markup=False, soft_wrap=True)
    table = Table("tasks", "number", "success", "score", box=None, header_style="bold")
    for kind in [*sorted({one.kind for one in done}), None]:
        some = [one for one in done if kind in (None, one.kind)]
        wins = sum(one.success is True for one in some)
        mean = sum(one.score for one in some) / len(some)
        table.add_row(kind or "all", str(len(some)), str(wins), f"{mean:.3f}")
    console.print(table)
    tables = [(one.kind, one.details["metrics"]) for one in done if "metrics" in one.details]
    if tables:
        fair = fair_metrics(tables)["all"]
        named = (("accuracy", fair.accuracy), ("F1", fair.f1), ("RMSE in % of the range", fair.rmse_range))
        means = ", ".join(f"{name} {value:.3f}" for name, value in named if value is not None)
        console.print(f"fair means (failed runs count 0.5, 0 and 50 %): {means}", markup=False)


@app.command()
def doctor() -> None:
    """Say how well agent code is isolated here and how to get more, and print versions, devices and cached models."""
    from mappa_rl.doctor import doctor_lines

    for line in doctor_lines():
        console.print(line, markup=False, soft_wrap=True)
