"""Importing what only an optional extra installs."""

from __future__ import annotations

import importlib
from typing import Any

from envs_registry.errors import ConfigError


def import_extra(module: str, extra: str, purpose: str) -> Any:
    """Import an optional dependency.

    Args:
        module: Name of the module.
        extra: The extra of this distribution that installs it.
        purpose: What it is needed for.

    Raises:
        ConfigError: If it is not installed; names the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{purpose} needs the optional package {module!r}",
            got=str(error),
            fix=f'pip install "mappa-gym[{extra}]"',
        ) from error
