"""Commands about topologies: `topology list`, `topology show`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mappa_rl.cli.app import app, console

topology_app = typer.Typer(no_args_is_help=True, help="Who acts when, and who sees what.")
app.add_typer(topology_app, name="topology")


@topology_app.command(name="list")
def list_topologies() -> None:
    """List the topologies that have a name."""
    from mappa_envs.topologies import topology_names

    for name in topology_names():
        console.print(name, markup=False)


@topology_app.command()
def show(
    name: Annotated[str, typer.Argument(help="A name, or `module:NAME`.")],
    parameters: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Parameters, e.g. `rounds=3`.")
    ] = None,
    domain: Annotated[str, typer.Option(help="What the seats get their jobs from.")] = "maths",
    out: Annotated[Path | None, typer.Option(help="Draw it to this .svg, .png or .pdf file.")] = None,
) -> None:
    """Show a topology as text, and draw it."""
    from mappa_envs.topologies import get_domain, get_topology
    from mappa_envs.topologies.drawing import draw
    from mappa_envs.topologies.outline import outline
    from mappa_rl.config.overrides import apply_overrides, parse_override

    given = apply_overrides({}, [parse_override(text) for text in parameters or []])
    topology = get_topology({**given, "name": name}, get_domain(domain))
    console.print(outline(topology), markup=False, soft_wrap=True)
    if out is not None:
        draw(topology, out)
        console.print(f"\ndrawn to {out}", markup=False, soft_wrap=True)
