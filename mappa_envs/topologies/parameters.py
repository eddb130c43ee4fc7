"""Checks of what topologies are parametrised with."""

from __future__ import annotations

from envs_registry.errors import ConfigError


def at_least(least: int, **values: object) -> None:
    """Refuse a parameter that is no integer of at least `least`.

    Raises:
        ConfigError: Naming the first such parameter.
    """
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigError(f"bad {name}", expected=f"an integer of at least {least}", got=repr(value))
