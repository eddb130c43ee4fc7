"""The embedded tables, by theme."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mappa_envs.tasks.tabular.table import Table
from mappa_envs.tasks.tabular.tables.health import HEALTH
from mappa_envs.tasks.tabular.tables.money import MONEY
from mappa_envs.tasks.tabular.tables.science import SCIENCE
from mappa_envs.tasks.tabular.tables.society import SOCIETY
from mappa_envs.tasks.tabular.tables.travel import TRAVEL

TABLES: Mapping[str, Table] = MappingProxyType(
    {table.name: table for table in (*SCIENCE, *HEALTH, *MONEY, *SOCIETY, *TRAVEL)}
)
"""All embedded tables by name."""
