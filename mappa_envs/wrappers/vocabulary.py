"""Text as numbers of fixed size, for learners that know no text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mappa_envs.errors import ConfigError


@runtime_checkable
class Vocabulary(Protocol):
    """Tokens 0 to `size - 1`; one of them ends an action."""

    size: int
    end: int
    """The token that ends an action; it has no text."""

    def encode(self, text: str) -> list[int]:
        """Return the tokens of any text."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens."""
        ...


class PieceVocabulary:
    r"""One token per piece of text; text is read by the longest piece that fits.

    Token 0 ends an action, token 1 stands for a run of text that no piece matches and decodes to nothing, token
    `i + 2` is `pieces[i]`.

    Args:
        pieces: Different, non-empty texts, e.g. `["\\boxed{", "}", *"0123456789"]`.

    Raises:
        ConfigError: If a piece is empty, is no text, or comes twice.
    """

    def __init__(self, pieces: Sequence[str]) -> None:
        if isinstance(pieces, str) or not pieces or not all(isinstance(p, str) and p for p in pieces):
            raise ConfigError("bad pieces", expected="a list of non-empty texts", got=repr(pieces)[:200])
        if len(set(pieces)) < len(pieces):
            raise ConfigError("bad pieces", expected="different texts", got=repr(pieces)[:200])
        self.pieces = tuple(pieces)
        self.size, self.end = len(pieces) + 2, 0
        self._tokens = {piece: i + 2 for i, piece in enumerate(pieces)}
        self._pattern = re.compile("|".join(map(re.escape, sorted(pieces, key=len, reverse=True))))

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text; between pieces, token 1 for each run that is none."""
        tokens, at = [], 0
        for match in self._pattern.finditer(text):
            tokens += [1] * (match.start() > at) + [self._tokens[match.group()]]
            at = match.end()
        return tokens + [1] * (at < len(text))

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the pieces of the tokens in a row."""
        return "".join(self.pieces[token - 2] for token in tokens if token >= 2)


def characters() -> PieceVocabulary:
    """Return the vocabulary of printable ASCII and the newline, a token per character."""
    return PieceVocabulary([*(chr(code) for code in range(32, 127)), "\n"])


class TokenizerVocabulary:
    """The tokens of a tokenizer as of `transformers`: `len()`, `encode`, `decode` and `eos_token_id`.

    Args:
        tokenizer: Any object with these.

    Raises:
        ConfigError: If it has no end token.
    """

    def __init__(self, tokenizer: Any) -> None:
        if getattr(tokenizer, "eos_token_id", None) is None:
            raise ConfigError("the tokenizer has no end token", expected="an eos_token_id", got=repr(tokenizer)[:200])
        self.tokenizer = tokenizer
        self.size, self.end = len(tokenizer), int(tokenizer.eos_token_id)

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, without special ones around it."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without special ones; what is no Unicode is replaced."""
        return str(self.tokenizer.decode(list(tokens), skip_special_tokens=True))


def last_tokens(tokens: Sequence[int], count: int, padding: int) -> NDArray[np.int64]:
    """Return the last `count` tokens at the end of an array of that length, `padding` before them."""
    kept = list(tokens)[-count:] if count else []
    return np.array([padding] * (count - len(kept)) + kept, dtype=np.int64)


def first_tokens(tokens: Sequence[int], count: int, padding: int) -> NDArray[np.int64]:
    """Return the first `count` tokens at the start of an array of that length, `padding` after them."""
    kept = list(tokens)[:count]
    return np.array(kept + [padding] * (count - len(kept)), dtype=np.int64)
