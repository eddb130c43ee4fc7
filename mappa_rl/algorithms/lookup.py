"""Algorithms by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from envs_registry.entry_points import check_kwargs, load_entry_point
from envs_registry.errors import ConfigError, EntryPointError, did_you_mean
from mappa_rl.algorithms.base import Algorithm
from mappa_rl.algorithms.dr_mas import DrMAS
from mappa_rl.algorithms.grpo import GRPO
from mappa_rl.algorithms.ppo import PPO
from mappa_rl.algorithms.reinforce_pp import ReinforcePP
from mappa_rl.algorithms.reinforce_pp_baseline import ReinforcePPBaseline
from mappa_rl.algorithms.rloo import RLOO

GROUP = "mappa.algorithms"

_BUILT_IN: dict[str, type[Algorithm]] = {
    "reinforce_pp": ReinforcePP,
    "reinforce_pp_baseline": ReinforcePPBaseline,
    "grpo": GRPO,
    "rloo": RLOO,
    "dr_mas": DrMAS,
    "ppo": PPO,
}


def algorithm_names() -> tuple[str, ...]:
    """Return the names of the built-in algorithms and of those that installed plugins declare."""
    return tuple(sorted({*_BUILT_IN, *(point.name for point in entry_points(group=GROUP))}))


def make_algorithm(name: str, **kwargs: Any) -> Algorithm:
    """Return an algorithm.

    Args:
        name: A built-in name, the name of an entry point of the group `mappa.algorithms`, or `module:Class`.
        **kwargs: Its settings.

    Raises:
        ConfigError: If the name or a setting is wrong.
        EntryPointError: If a plugin's algorithm cannot be loaded, is declared twice or is no algorithm.
    """
    creator = _creator(name)
    if not (isinstance(creator, type) and issubclass(creator, Algorithm)):
        check_kwargs(creator, kwargs, env_id=f"algorithm {name!r}")
    made = creator(**kwargs)
    if not isinstance(made, Algorithm):
        raise EntryPointError(
            f"{name!r} makes no algorithm",
            expected="a subclass of mappa_rl.algorithms.Algorithm, or a function that returns an instance",
            got=f"an object of type {type(made).__name__}",
        )
    return made


def _creator(name: str) -> Callable[..., Any]:
    if ":" in name:
        return load_entry_point(name)
    points = [point for point in entry_points(group=GROUP) if point.name == name]
    if len(points) + (name in _BUILT_IN) > 1:
        raise EntryPointError(
            f"the algorithm {name!r} is declared more than once",
            expected="one declaration",
            got=", ".join([*(["built in"] if name in _BUILT_IN else []), *map(_describe, points)]),
            fix="rename the entry point, or uninstall one of the distributions",
        )
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    if points:
        return _load(points[0])
    raise ConfigError(
        f"there is no algorithm {name!r}",
        expected=f"one of {', '.join(algorithm_names())}, or 'module:Class'",
        got=repr(name),
        fix=did_you_mean(name, algorithm_names(), "install the distribution that declares it", cutoff=0.5),
    )


def _load(point: EntryPoint) -> Callable[..., Any]:
    try:
        creator = point.load()
    except (Exception, SystemExit) as error:
        raise EntryPointError(
            f"the algorithm {point.name!r} of a plugin cannot be loaded",
            expected=_describe(point),
            got=f"{type(error).__name__}: {error}",
            fix="repair or uninstall that distribution",
        ) from error
    if not callable(creator):
        raise EntryPointError(
            f"the algorithm {point.name!r} of a plugin cannot be called",
            expected="a class or a function",
            got=repr(creator),
        )
    made: Callable[..., Any] = creator
    return made


def _describe(point: EntryPoint) -> str:
    where = point.dist.name if point.dist is not None else "unknown distribution"
    return f"{point.name} = {point.value} of {where}"
