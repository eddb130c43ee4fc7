"""What a procedural family is: a seeded generator of problems whose answers are computed, never typed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

Topic = Literal["number_theory", "algebra", "combinatorics", "probability", "geometry", "sequences"]

MAX_LEVEL = 5


@dataclass(frozen=True, slots=True)
class Problem:
    """One generated problem."""

    prompt: str
    answer: str
    """Computed with sympy, in plain or LaTeX notation, e.g. `12`, `\\frac{3}{7}`."""
    expression: str
    """An independent Python expression for the answer. It may use integers, `+ - * / // % **`, comparisons,
    conditionals, generator and list comprehensions, `sum min max len abs pow range int str sorted set
    divmod`, and `math.` functions (comb, perm, factorial, gcd, lcm, isqrt, prod); nothing else."""
    mistakes: tuple[str, ...]
    """At least two expressions in the same language for typical wrong approaches; none gives the answer."""


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of problem in five levels."""

    name: str
    """Lower-case with underscores; unique."""
    topic: Topic
    summary: str
    """One line for the gallery."""
    make: Callable[[np.random.Generator, int], Problem]
    """`make(rng, level)` with level 1 to 5; all randomness comes from `rng`."""
