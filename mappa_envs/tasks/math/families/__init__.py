"""The procedural families, by name."""

from __future__ import annotations

from mappa_envs.tasks.math.families.algebra import ALGEBRA
from mappa_envs.tasks.math.families.base import MAX_LEVEL, Family, Problem, Topic
from mappa_envs.tasks.math.families.combinatorics import COMBINATORICS
from mappa_envs.tasks.math.families.geometry import GEOMETRY
from mappa_envs.tasks.math.families.number_theory import NUMBER_THEORY
from mappa_envs.tasks.math.families.probability import PROBABILITY
from mappa_envs.tasks.math.families.sequences import SEQUENCES
from mappa_envs.tasks.math.families.starter import STARTER

_ALL = (*STARTER, *NUMBER_THEORY, *ALGEBRA, *COMBINATORICS, *PROBABILITY, *GEOMETRY, *SEQUENCES)

FAMILIES: dict[str, Family] = {family.name: family for family in _ALL}
"""Every procedural family; the first ten are the starter families."""

STARTER_FAMILIES: tuple[str, ...] = tuple(family.name for family in STARTER)
"""Families with one short wording at levels 1 and 2."""

__all__ = ["FAMILIES", "MAX_LEVEL", "STARTER_FAMILIES", "Family", "Problem", "Topic"]
