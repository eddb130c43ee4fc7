"""The procedural families, by name."""

from __future__ import annotations

from mappa_envs.tasks.math.families.base import MAX_LEVEL, Family, Problem, Topic
from mappa_envs.tasks.math.families.starter import STARTER

FAMILIES: dict[str, Family] = {family.name: family for family in (*STARTER,)}
"""Every procedural family; the first ten are the starter families."""

STARTER_FAMILIES: tuple[str, ...] = tuple(family.name for family in STARTER)
"""Families with one short wording at levels 1 and 2."""

__all__ = ["FAMILIES", "MAX_LEVEL", "STARTER_FAMILIES", "Family", "Problem", "Topic"]
