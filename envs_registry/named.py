"""Creators by name: built in, `module:attribute`, or declared by an installed plugin's entry point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from envs_registry.entry_points import EntryPoint as Creator
from envs_registry.entry_points import load_entry_point
from envs_registry.errors import ConfigError, EntryPointError, did_you_mean


def known_names(group: str, built_in: Iterable[str]) -> tuple[str, ...]:
    """Return the built-in names and those that installed plugins declare in an entry-point group, sorted."""
    return tuple(sorted({*built_in, *entry_points(group=group).names}))


def find_creator(name: str, *, kind: str, group: str, built_in: Mapping[str, Creator]) -> Callable[..., Any]:
    """Return what makes the thing of a name.

    Args:
        name: A built-in name, the name of an entry point of `group`, or `module:attribute`.
        kind: What is looked for, for errors: "algorithm", "judge", ...
        group: Entry-point group.
        built_in: Creators, or `module:attribute` strings that are loaded when they are asked for, by name.

    Raises:
        ConfigError: If nothing has that name.
        EntryPointError: If it cannot be loaded, is declared twice, or cannot be called.
    """
    if ":" in name:
        return load_entry_point(name)
    points = list(entry_points(group=group, name=name))
    if len(points) + (name in built_in) > 1:
        raise EntryPointError(
            f"the {kind} {name!r} is declared more than once",
            expected="one declaration",
            got=", ".join([*(["built in"] if name in built_in else []), *map(_describe, points)]),
            fix="rename the entry point, or uninstall one of the distributions",
        )
    if name in built_in:
        return load_entry_point(built_in[name])
    if points:
        return _load(points[0], kind)
    names = known_names(group, built_in)
    raise ConfigError(
        f"there is no {kind} {name!r}",
        expected=f"one of {', '.join(names)}, or 'module:NAME'",
        got=repr(name),
        fix=did_you_mean(name, names, "install the distribution that declares it", cutoff=0.5),
    )


def _load(point: EntryPoint, kind: str) -> Callable[..., Any]:
    try:
        creator = point.load()
    except (Exception, SystemExit) as error:
        raise EntryPointError(
            f"the {kind} {point.name!r} of a plugin cannot be loaded",
            expected=_describe(point),
            got=f"{type(error).__name__}: {error}",
            fix="repair or uninstall that distribution, or install the extra that it needs",
        ) from error
    if not callable(creator):
        raise EntryPointError(
            f"the {kind} {point.name!r} of a plugin cannot be called",
            expected="a class or a function",
            got=repr(creator),
        )
    made: Callable[..., Any] = creator
    return made


def _describe(point: EntryPoint) -> str:
    where = point.dist.name if point.dist is not None else "unknown distribution"
    return f"{point.name} = {point.value} of {where}"
