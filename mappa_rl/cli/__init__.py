"""The `mappa` command; each module here adds its commands to the app when it is imported."""

from mappa_rl.cli import bench, environments, judge, tasks, topology, training  # noqa: F401
from mappa_rl.cli.app import app, main

__all__ = ["app", "main"]
