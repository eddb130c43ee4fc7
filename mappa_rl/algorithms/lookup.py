"""Algorithms by name."""

from __future__ import annotations

from typing import Any

from envs_registry.entry_points import check_kwargs
from envs_registry.errors import EntryPointError
from envs_registry.named import find_creator, known_names
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
    return known_names(GROUP, _BUILT_IN)


def make_algorithm(name: str, **kwargs: Any) -> Algorithm:
    """Return an algorithm.

    Args:
        name: A built-in name, the name of an entry point of the group `mappa.algorithms`, or `module:Class`.
        **kwargs: Its settings.

    Raises:
        ConfigError: If the name or a setting is wrong.
        EntryPointError: If a plugin's algorithm cannot be loaded, is declared twice or is no algorithm.
    """
    creator = find_creator(name, kind="algorithm", group=GROUP, built_in=_BUILT_IN)
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
