"""`ProceduralSource`: as many problems as wanted, from the procedural families."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from envs_registry.errors import did_you_mean
from mappa_envs.errors import ConfigError, TaskError
from mappa_envs.tasks.base import Split
from mappa_envs.tasks.math.base import MathTask
from mappa_envs.tasks.math.families import FAMILIES, MAX_LEVEL
from mappa_envs.tasks.math.statements import normalise_statement, stable_share

EVAL_SHARE = 0.2
"""Share of all problems that belongs to the evaluation split."""
_SPLIT_CODE: dict[Split, int] = {"train": 0, "eval": 1}
_MAX_DRAWS = 1000
_NUMBER = re.compile(r"\d+")


def split_of(prompt: str) -> Split:
    """Tell which split a problem belongs to: decided by its wording and the set of its numbers alone.

    The order of the numbers plays no part, so that gcd(45, 63) and gcd(63, 45) never lie on different sides.
    """
    statement = normalise_statement(prompt)
    numbers = " ".join(sorted(_NUMBER.findall(statement)))
    key = f"{_NUMBER.sub('#', statement)} {numbers}"
    return "eval" if stable_share(key, "split") < EVAL_SHARE else "train"


class ProceduralSource:
    """Problems drawn from families; task `i` depends on the arguments and `i` only.

    The training and evaluation splits share no statement, whatever their seeds. Families take turns in an
    order shuffled by the seed, and levels rotate, so that every `len(families) * len(levels)` tasks that
    start at a multiple of that number hold each family at each level once.

    Args:
        split: `train` or `eval`.
        seed: Another seed gives other problems; at least 0.
        families: Names in `FAMILIES`; all of them by default.
        levels: Difficulties, 1 to 5.
        size: Number of tasks; endless by default.

    Raises:
        ConfigError: If an argument is wrong.
    """

    name = "procedural"

    def __init__(
        self,
        split: Split = "train",
        seed: int = 0,
        families: Sequence[str] | None = None,
        levels: Sequence[int] = (1, 2, 3),
        *,
        size: int | None = None,
    ) -> None:
        if split not in _SPLIT_CODE:
            raise ConfigError("ProceduralSource: unknown split", expected="'train' or 'eval'", got=repr(split))
        if not _is_int(seed, 0):
            raise ConfigError("ProceduralSource: bad seed", expected="an integer of at least 0", got=repr(seed))
        if size is not None and not _is_int(size, 1):
            raise ConfigError("ProceduralSource: bad size", expected="None or an integer of at least 1", got=repr(size))
        self.split = split
        self.seed = seed
        self.size = size
        self.families = check_families(families)
        self.levels = check_levels(levels)
        order = np.random.default_rng(np.random.SeedSequence([seed, 2])).permutation(len(self.families))
        self._order = tuple(self.families[int(position)] for position in order)

    def __len__(self) -> int:
        if self.size is None:
            raise TypeError("an endless ProceduralSource has no length; give it a size")
        return self.size

    def task(self, index: int) -> MathTask:
        """Return task `index` (0-based).

        Raises:
            TaskError: If there is no such index, or no problem of the split turns up.
        """
        if not _is_int(index, 0) or (self.size is not None and index >= self.size):
            end = "" if self.size is None else f" to {self.size - 1}"
            raise TaskError("ProceduralSource: no such task", expected=f"an integer from 0{end}", got=repr(index))
        index = int(index)
        lap, position = divmod(index, len(self._order))
        family = FAMILIES[self._order[position]]
        level = self.levels[(lap + position) % len(self.levels)]
        rng = np.random.default_rng(np.random.SeedSequence([self.seed, _SPLIT_CODE[self.split], index]))
        for _ in range(_MAX_DRAWS):
            problem = family.make(rng, level)
            if split_of(problem.prompt) == self.split:
                return MathTask(
                    id=f"{self.name}-{self.split}-{self.seed}-{index}",
                    prompt=problem.prompt,
                    kind=family.name,
                    level=level,
                    source=self.name,
                    answers=(problem.answer,),
                    expression=problem.expression,
                    mistakes=problem.mistakes,
                )
        raise TaskError(
            f"family {family.name!r} gave no {self.split} problem of level {level} in {_MAX_DRAWS} draws",
            fix="give the family more distinct problems at this level",
        )


def check_families(families: Sequence[str] | None) -> tuple[str, ...]:
    """Check names of families.

    Args:
        families: Names; None stands for all families.

    Raises:
        ConfigError: If a name is unknown or given twice, or there is none.
    """
    if families is None:
        return tuple(FAMILIES)
    if isinstance(families, str) or not families:
        raise ConfigError(
            "families must be a non-empty list of names", expected="e.g. ['gcd', 'lcm']", got=repr(families)
        )
    for name in families:
        if name not in FAMILIES:
            raise ConfigError(
                f"unknown family {name!r}",
                expected=f"one of {', '.join(FAMILIES)}",
                got=repr(name),
                fix=did_you_mean(name, FAMILIES, "pick from the list"),
            )
    if len(set(families)) < len(families):
        raise ConfigError("a family is named twice", expected="distinct names", got=repr(list(families)))
    return tuple(families)


def check_levels(levels: Sequence[int]) -> tuple[int, ...]:
    """Check difficulty levels.

    Raises:
        ConfigError: If a level is no integer from 1 to 5 or given twice, or there is none.
    """
    expected = f"distinct integers from 1 to {MAX_LEVEL}, at least one"
    if isinstance(levels, int | str) or not levels:
        raise ConfigError("bad levels", expected=expected, got=repr(levels))
    if not all(_is_int(level, 1) and level <= MAX_LEVEL for level in levels) or len(set(levels)) < len(levels):
        raise ConfigError("bad levels", expected=expected, got=repr(list(levels)))
    return tuple(int(level) for level in levels)


def _is_int(value: object, least: int) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= least
