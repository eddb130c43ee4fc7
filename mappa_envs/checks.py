"""Checks of what callers hand to an environment: named errors, never asserts."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import numpy as np

from mappa_envs.errors import ActionError, ConfigError
from mappa_envs.spaces import has_lone_surrogate

MAX_ACTION_CHARS = 200_000
_OPTIONS = ("task_index",)


def check_action(agent: str, action: object) -> None:
    """Refuse what is no action.

    Raises:
        ActionError: If it is not a string, is too long, or cannot be encoded as UTF-8.
    """
    if not isinstance(action, str):
        raise ActionError(
            f"the action of {agent!r} is not a string",
            expected="str",
            got=type(action).__name__,
            fix="pass the text that the agent wrote",
        )
    if len(action) > MAX_ACTION_CHARS:
        raise ActionError(
            f"the action of {agent!r} is too long",
            expected=f"at most {MAX_ACTION_CHARS} characters",
            got=f"{len(action)}",
            fix="limit the policy's number of new tokens",
        )
    if has_lone_surrogate(action):
        raise ActionError(
            f"the action of {agent!r} is not valid Unicode",
            expected="text that UTF-8 can encode",
            got="a lone surrogate",
            fix="decode the policy's output with errors='replace'",
        )


def at_least(least: int, **values: object) -> None:
    """Refuse a parameter that is no integer of at least `least`.

    Raises:
        ConfigError: Naming the first such parameter.
    """
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigError(f"bad {name}", expected=f"an integer of at least {least}", got=repr(value))


def check_seed(seed: object) -> None:
    """Refuse what is no seed.

    Raises:
        ConfigError: If it is neither None nor a non-negative integer.
    """
    if seed is not None and not _is_index(seed):
        raise ConfigError("reset: bad seed", expected="a non-negative integer or None", got=repr(seed))


def task_index(options: Mapping[str, Any] | None) -> int | None:
    """Return the option `task_index` of a reset; None where it is not given.

    Raises:
        ConfigError: If it is no index, or an option is named nearly, but not quite, like one that exists.
    """
    if options is None:
        return None
    for key in options:
        close = difflib.get_close_matches(str(key), _OPTIONS, n=1, cutoff=0.75)
        if close and key not in _OPTIONS:
            raise ConfigError(f"reset: unknown option {key!r}", expected=", ".join(_OPTIONS), fix=f"use {close[0]!r}")
    index = options.get("task_index")
    if index is not None and not _is_index(index):
        raise ConfigError("reset: bad task_index", expected="a non-negative integer", got=repr(index))
    return None if index is None else int(index)


def _is_index(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 0
