"""Commands about tasks: `tasks validate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mappa_rl.cli.app import app, console

tasks = typer.Typer(no_args_is_help=True, help="Check tasks of your own.")
app.add_typer(tasks, name="tasks")


@tasks.callback()
def group() -> None:
    """Keep `validate` a command of its own while it is the only one."""


@tasks.command()
def validate(
    folder: Annotated[Path, typer.Argument(help="A task folder, or a folder of task folders.")],
) -> None:
    """Check folders of table tasks and say what is wrong; exits with 1 if one cannot be used."""
    from mappa_envs.tasks.tabular.folder_checks import validate as check

    failed = 0
    for name, problems in check(folder).items():
        errors = sum(problem.severity == "error" for problem in problems)
        failed += errors > 0
        console.print(f"{name}: {f'{errors} errors' if errors else 'can be used'}", style="bold", markup=False)
        for problem in problems:
            console.print(f"  {problem.severity}: {problem.text}", markup=False, soft_wrap=True)
    if failed:
        raise typer.Exit(1)
