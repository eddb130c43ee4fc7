"""Every test starts from the registries as they were and leaves them so."""

from __future__ import annotations

from collections.abc import Iterator

import gymnasium
import pettingzoo
import pytest

from envs_registry import registry


@pytest.fixture(autouse=True)
def _restored_registries() -> Iterator[None]:
    tables = [registry._registry, pettingzoo.aec_registry, pettingzoo.parallel_registry, gymnasium.registry]
    saved = [dict(table) for table in tables]
    yield
    for table, before in zip(tables, saved, strict=True):
        table.clear()
        table.update(before)
