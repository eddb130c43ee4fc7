"""`ReasoningGymSource`: generators of the reasoning-gym library, with answers graded by this project."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from envs_registry.errors import did_you_mean
from envs_registry.extras import import_extra
from mappa_envs.errors import ConfigError, TaskError
from mappa_envs.tasks.base import Split
from mappa_envs.tasks.math.base import MathTask
from mappa_envs.tasks.math.procedural import split_of

GENERATORS: tuple[str, ...] = (
    "aiw",
    "basic_arithmetic",
    "chain_sum",
    "count_bits",
    "count_primes",
    "decimal_chain_sum",
    "dice",
    "gcd",
    "gsm_symbolic",
    "lcm",
    "leg_counting",
    "number_sequence",
    "products",
    "simple_equations",
    "simple_geometry",
)
"""Generators whose every answer is one integer, decimal or fraction, so that equality of numbers grades it. The
library's own scorer, which gives part of the credit for a substring, is never used."""

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:/\d+)?")
_SEED_RANGE = 2**31
_DRAWS = 256
"""Library items tried for one task: the first one of the right split is taken."""


class ReasoningGymSource:
    """Problems of reasoning-gym; task `i` depends on the arguments and `i` only.

    Generators take turns. A problem belongs to the training or the evaluation split by a hash of its statement, as
    in `ProceduralSource`, so that the splits share none.

    Args:
        split: `train` or `eval`.
        seed: Another seed gives other problems; at least 0.
        generators: Names in `GENERATORS`; all of them by default.
        size: Number of tasks; endless by default.

    Raises:
        ConfigError: If an argument is wrong or the extra `reasoning-gym` is not installed.
    """

    name = "reasoning_gym"

    def __init__(
        self,
        split: Split = "train",
        seed: int = 0,
        generators: Sequence[str] | None = None,
        *,
        size: int | None = None,
    ) -> None:
        if split not in ("train", "eval"):
            raise ConfigError("ReasoningGymSource: unknown split", expected="'train' or 'eval'", got=repr(split))
        for what, value, least in (("seed", seed, 0), ("size", 1 if size is None else size, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConfigError(
                    f"ReasoningGymSource: bad {what}", expected=f"an integer of at least {least}", got=repr(value)
                )
        self.split = split
        self.seed = seed
        self.size = size
        self.generators = _check_generators(generators)
        self._library = import_extra("reasoning_gym", "reasoning-gym", "the task source reasoning_gym")

    def __len__(self) -> int:
        if self.size is None:
            raise TypeError("an endless ReasoningGymSource has no length; give it a size")
        return self.size

    def task(self, index: int) -> MathTask:
        """Return task `index` (0-based).

        Raises:
            TaskError: If there is no such index, no problem of the split turns up, or an answer is not a number.
        """
        if isinstance(index, bool) or not hasattr(index, "__index__") or index < 0:
            raise TaskError("ReasoningGymSource: no such task", expected="an integer from 0", got=repr(index))
        if self.size is not None and index >= self.size:
            raise TaskError("ReasoningGymSource: no such task", expected=f"at most {self.size - 1}", got=repr(index))
        lap, position = divmod(int(index), len(self.generators))
        generator = self.generators[position]
        for draw in range(_DRAWS):
            # A library dataset seeds item j with its seed plus j, so that neighbouring seeds share items, and some
            # fix their items' kinds by their size: a dataset of one item each has neither trouble.
            words = np.random.SeedSequence([self.seed, self.split == "eval", position, lap, draw])
            item_seed = int(words.generate_state(1)[0]) % _SEED_RANGE
            item = self._library.create_dataset(generator, seed=item_seed, size=1)[0]
            prompt = str(item["question"]).strip()
            if split_of(prompt) != self.split:
                continue
            answer = str(item["answer"]).strip()
            if not _NUMBER.fullmatch(answer):
                raise TaskError(
                    f"generator {generator!r} gave an answer that is not a number",
                    got=repr(answer),
                    fix="leave the generator out",
                )
            return MathTask(
                id=f"{self.name}-{self.split}-{self.seed}-{index}",
                prompt=prompt,
                kind=generator,
                source=self.name,
                answers=(answer,),
            )
        raise TaskError(f"generator {generator!r} gave no {self.split} problem in {_DRAWS} draws")


def _check_generators(generators: Sequence[str] | None) -> tuple[str, ...]:
    if generators is None:
        return GENERATORS
    if isinstance(generators, str) or not generators or len(set(generators)) < len(generators):
        raise ConfigError(
            "generators must be a non-empty list of distinct names", expected="e.g. ['gcd']", got=repr(generators)
        )
    for name in generators:
        if name not in GENERATORS:
            raise ConfigError(
                f"generator {name!r} is not one with numbers as answers",
                expected=f"one of {', '.join(GENERATORS)}",
                got=repr(name),
                fix=did_you_mean(name, GENERATORS, "pick from the list"),
            )
    return tuple(generators)
