"""The `mappa` command: the app, the options that commands share, and `main`."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

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


def config_of(file: Path | None, run: Path | None, settings: Sequence[str]) -> TrainConfig:
    """Return the settings of a file, or of a run folder, with overrides."""
    if run is not None and file is None:
        file = run / "config.yaml"
    return load_config(TrainConfig, file, settings)


def main() -> None:
    """Run the command; errors of this project print what was expected, what was got and the fix, and exit with 2."""
    # What the libraries say of their own progress and plans would bury what this command says.
    warnings.filterwarnings("ignore", category=FutureWarning)
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    # `module:NAME` in a setting may name a file of the folder that the command runs in.
    sys.path.append("")
    try:
        app()
    except MappaError as error:
        Console(stderr=True, highlight=False).print(f"error: {error}", markup=False, style="red")
        sys.exit(2)
