"""Environments of other distributions, found through the entry-point group `mappa.envs`.

An entry point of the group names a module that calls `register` when it is imported, or a callable that does
so when it is called. Plugins are loaded once, at the first lookup. One that fails is named in a
`PluginWarning` and in the error of every lookup that then finds nothing: an environment must not go missing
in silence.
"""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType

from envs_registry.errors import PluginWarning

GROUP = "mappa.envs"


@dataclass(frozen=True, slots=True)
class FailedPlugin:
    """A plugin that did not load."""

    distribution: str
    entry_point: str
    """`name = module:attr`, as in the distribution's metadata."""
    error: str

    def __str__(self) -> str:
        return f"{self.distribution} (entry point {self.entry_point!r}): {self.error}"


# Reentrant: a plugin may itself look environments up while it loads.
_lock = threading.RLock()
_loaded = False
_failed: list[FailedPlugin] = []


def load_plugins() -> tuple[FailedPlugin, ...]:
    """Load every installed plugin, the first time that this is called in a process.

    Returns:
        The plugins that failed, at that first call.

    Warns:
        PluginWarning: Once per plugin that failed.
    """
    global _loaded
    with _lock:
        if not _loaded:
            _loaded = True
            for point in sorted(entry_points(group=GROUP), key=lambda p: (_distribution(p), p.name)):
                _load(point)
            for failed in _failed:
                warnings.warn(f"plugin {failed}; its environments are missing", PluginWarning, stacklevel=4)
        return tuple(_failed)


def _load(point: EntryPoint) -> None:
    try:
        target = point.load()
        if not isinstance(target, ModuleType):
            target()
    except (Exception, SystemExit) as error:
        _failed.append(
            FailedPlugin(_distribution(point), f"{point.name} = {point.value}", f"{type(error).__name__}: {error}")
        )


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "unknown distribution"
