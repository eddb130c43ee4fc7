"""Entry points: `"module:attr"` strings or callables that make an environment."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from envs_registry.errors import ConfigError, EntryPointError, RegistryError, did_you_mean

EntryPoint = str | Callable[..., Any]

_DOTTED = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_ENTRY_POINT = re.compile(rf"({_DOTTED}):({_DOTTED})")


def check_entry_point(entry_point: object, *, what: str) -> None:
    """Check the form of an entry point without importing it.

    Args:
        entry_point: What was passed to `register`.
        what: Name of the argument, for the error.

    Raises:
        RegistryError: If it is neither a `"module:attr"` string nor a callable.
    """
    if isinstance(entry_point, str):
        if _ENTRY_POINT.fullmatch(entry_point):
            return
    elif callable(entry_point):
        return
    raise RegistryError(
        f"{what} is not an entry point",
        expected="'package.module:attribute' or a callable",
        got=repr(entry_point),
    )


def load_entry_point(entry_point: EntryPoint) -> Callable[..., Any]:
    """Return the callable that an entry point names.

    Raises:
        EntryPointError: If its module cannot be imported or lacks the attribute, or that is not callable.
    """
    if not isinstance(entry_point, str):
        return entry_point
    module_name, attribute = entry_point.split(":")
    module = load_module(module_name, why=f"entry point {entry_point!r}")
    try:
        creator = reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        raise EntryPointError(
            f"module {module_name!r} has no {attribute!r}",
            expected=f"what entry point {entry_point!r} names",
            fix=did_you_mean(attribute, dir(module), "correct the entry point in register()"),
        ) from error
    if not callable(creator):
        raise EntryPointError(
            f"entry point {entry_point!r} is not callable", expected="a class or function", got=repr(creator)
        )
    return creator


def load_module(name: str, *, why: str) -> Any:
    """Import a module.

    Args:
        name: Dotted name.
        why: What asks for it, for the error.

    Raises:
        EntryPointError: If the import fails for any reason; the reason is its `__cause__`.
    """
    if not re.fullmatch(_DOTTED, name):
        raise EntryPointError(f"{why} names no module", expected="a dotted module name", got=repr(name))
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise EntryPointError(
            f"module {name!r} cannot be imported ({why})",
            expected="a module that imports without error",
            got=f"{type(error).__name__}: {error}",
            fix="install what it needs, or correct its name",
        ) from error


def check_kwargs(creator: Callable[..., Any], kwargs: Mapping[str, Any], *, env_id: str) -> None:
    """Check keyword arguments against the signature of a creator, where it has a closed one.

    Args:
        creator: Class or function; functions made with `functools.wraps` count as what they wrap.
        kwargs: What it is about to be called with.
        env_id: For the error.

    Raises:
        ConfigError: If a keyword is unknown (names the nearest one) or a required one is missing.
    """
    try:
        parameters = inspect.signature(creator).parameters.values()
    except (TypeError, ValueError):  # some builtins have no signature: let the call itself speak
        return
    by_name = {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    is_open = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for name in () if is_open else sorted(set(kwargs) - set(by_name)):
        raise ConfigError(
            f"{env_id} takes no keyword {name!r}",
            expected=", ".join(sorted(by_name)) or "no keywords",
            got=f"{name}={kwargs[name]!r}",
            fix=did_you_mean(name, by_name, f"leave {name!r} out"),
        )
    missing = sorted(n for n, p in by_name.items() if p.default is p.empty and n not in kwargs)
    if missing:
        raise ConfigError(
            f"{env_id} needs {', '.join(map(repr, missing))}",
            expected=", ".join(sorted(by_name)),
            got=", ".join(sorted(kwargs)) or "no keywords",
            fix=f"make({env_id!r}, {missing[0]}=...)",
        )
