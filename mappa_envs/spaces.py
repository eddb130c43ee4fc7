"""`AnyText`: a space for prose.

`gymnasium.spaces.Text` needs an explicit character set: its default excludes the space and the newline, and a
full-Unicode one takes over a second to build and prints a representation of a million characters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.vector.utils import create_shared_memory

from envs_registry.errors import ConfigError

_PRINTABLE = [chr(code) for code in range(32, 127)] + ["\n"]


def has_lone_surrogate(text: str) -> bool:
    """Tell whether `text` cannot be encoded as UTF-8."""
    return any("\ud800" <= char <= "\udfff" for char in text)


class AnyText(Space[str]):
    """Any string without lone surrogates, up to a number of characters.

    Args:
        max_chars: Largest length in characters (not tokens), at least 1.
        seed: Seed of the space's own generator, used by `sample` only.
        sample_chars: Largest length of a sample; samples are printable ASCII.

    Raises:
        ConfigError: If `max_chars` or `sample_chars` is not a positive integer.
    """

    def __init__(
        self, max_chars: int, *, seed: int | np.random.Generator | None = None, sample_chars: int = 64
    ) -> None:
        for name, value in (("max_chars", max_chars), ("sample_chars", sample_chars)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"AnyText: bad {name}", expected="an integer of at least 1", got=repr(value))
        self.max_chars = max_chars
        self.sample_chars = min(sample_chars, max_chars)
        super().__init__(shape=None, dtype=str, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Text of unbounded alphabet has no fixed-size array form."""
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Draw printable ASCII of 0 to `sample_chars` characters from the space's own generator.

        Args:
            mask: Must be None; text has no action mask.
            probability: Must be None.

        Raises:
            ConfigError: If a mask or probability is given.
        """
        if mask is not None or probability is not None:
            raise ConfigError("AnyText.sample takes no mask", expected="None", got=repr(mask or probability))
        length = int(self.np_random.integers(0, self.sample_chars + 1))
        return "".join(_PRINTABLE[int(i)] for i in self.np_random.integers(0, len(_PRINTABLE), size=length))

    def contains(self, x: Any) -> bool:
        """Tell whether `x` is a string within the limit that UTF-8 can encode."""
        return isinstance(x, str) and len(x) <= self.max_chars and not has_lone_surrogate(x)

    def __repr__(self) -> str:
        return f"AnyText({self.max_chars})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AnyText) and other.max_chars == self.max_chars

    __hash__ = Space.__hash__


@create_shared_memory.register(AnyText)
def _no_shared_memory(space: AnyText, n: int = 1, ctx: Any = None) -> None:
    """Refuse: Gymnasium reads text from shared memory once, when the vector environment is made, and never again.

    Raises:
        ConfigError: Always.
    """
    raise ConfigError(
        "text cannot be shared between the processes of an AsyncVectorEnv: its observations would never change",
        expected="AsyncVectorEnv(..., shared_memory=False) or SyncVectorEnv",
        got="shared_memory=True, which is Gymnasium's default",
        fix="gymnasium.make_vec(id, vectorization_mode='async', vector_kwargs={'shared_memory': False})",
    )
