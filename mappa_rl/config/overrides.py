"""Overrides `dotted.key=value` on nested mappings; values are YAML."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from envs_registry.errors import ConfigError
from mappa_rl.config import yaml_text


@dataclass(frozen=True, slots=True)
class Override:
    """One `key=value`."""

    path: tuple[str, ...]
    value: Any

    @property
    def key(self) -> str:
        """The dotted key."""
        return ".".join(self.path)


def parse_override(text: str) -> Override:
    """Parse `dotted.key=value`.

    Args:
        text: The value is YAML: `optim.lr=1e-5`, `optim.betas=[0.9, 0.99]`, `run_dir=null`,
            `policy.model=tiny`. A value left empty is null.

    Raises:
        ConfigError: If there is no `=`, the key is empty or the value is not YAML.
    """
    key, equals, value = text.partition("=")
    path = tuple(key.strip().split("."))
    if not equals or not all(path):
        raise ConfigError(
            f"the override {text!r} has no {'value' if not equals else 'key'}",
            expected="dotted.key=value",
            got=repr(text),
            fix=f"write {key.strip() or 'key'}=VALUE",
        )
    try:
        return Override(path, yaml_text.parse(value))
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(
            f"the value of the override {key.strip()!r} is not YAML",
            expected="a YAML value such as 3, 1e-5, true, text or [1, 2]",
            got=f"{value!r} ({' '.join(str(error).split())})",
            fix=f"put text with special characters into quotes: {key.strip()}='\"...\"'",
        ) from error


def format_override(path: Sequence[str], value: Any) -> str:
    """Return the override that `parse_override` reads back."""
    return f"{'.'.join(path)}={yaml_text.flow(value)}"


def apply_overrides(data: Mapping[str, Any], overrides: Sequence[Override]) -> dict[str, Any]:
    """Return the data with the overrides applied in order; missing mappings on the way are made.

    Args:
        data: Nested mappings; not changed.
        overrides: A later one wins.

    Raises:
        ConfigError: If a key leads through a value that is no mapping.
    """
    result = copy.deepcopy(dict(data))
    for override in overrides:
        inside = result
        for depth, part in enumerate(override.path[:-1]):
            # A section that is null (left empty in the file) may be filled by overrides.
            if inside.get(part) is None:
                inside[part] = {}
            below = inside[part]
            if not isinstance(below, dict):
                parent = ".".join(override.path[: depth + 1])
                raise ConfigError(
                    f"the override {override.key!r} leads through {parent!r}, which has no keys",
                    expected=f"a mapping at {parent!r}",
                    got=repr(below),
                    fix=f"set {parent}=... as a whole",
                )
            inside = below
        inside[override.path[-1]] = copy.deepcopy(override.value)
    return result


def flatten(data: Mapping[str, Any], prefix: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """Return the leaves of nested mappings with their paths.

    A mapping that is empty, or has keys that no dotted key can name, is a leaf.
    """
    leaves: list[tuple[tuple[str, ...], Any]] = []
    for key, value in data.items():
        path = (*prefix, key)
        if isinstance(value, Mapping) and value and all(map(_nameable, value)):
            leaves += flatten(value, path)
        else:
            leaves.append((path, value))
    return leaves


def _nameable(key: str) -> bool:
    return bool(key) and key == key.strip() and not set(key) & {".", "="}
