"""The score that a language model is about to write, read off its probabilities instead of sampled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mappa_envs.transcript import MAX_SCORE
from mappa_rl.errors import PolicyError
from mappa_rl.policy.sampler import left_pad

OPENING = "SCORE:"
"""The reply is started for the model up to here (and the blank after it, where that is a token of its own)."""
_HIGHEST = int(MAX_SCORE)


@dataclass(frozen=True, slots=True)
class ScoreDistribution:
    """What a model would answer on a scale of 0 to 10."""

    weights: tuple[float, ...]
    """Probability of each whole score from 0 to 10; they add up to `mass`."""

    @property
    def mass(self) -> float:
        """Probability that the model writes a score at all, 0 to 1."""
        return math.fsum(self.weights)

    @property
    def mean(self) -> float:
        """Expected score, 0 to 10, given that there is one."""
        return math.fsum(k * w for k, w in enumerate(self.weights)) / self.mass

    @property
    def spread(self) -> float:
        """Standard deviation of the score, 0 to 5."""
        mean = self.mean
        return math.sqrt(math.fsum(w * (k - mean) ** 2 for k, w in enumerate(self.weights)) / self.mass)

    @property
    def likeliest(self) -> int:
        """The score that greedy decoding would write."""
        return self.weights.index(max(self.weights))


@dataclass(frozen=True, slots=True)
class ScoreTokens:
    """How a tokenizer writes `SCORE: 0` to `SCORE: 10`."""

    opening: tuple[int, ...]
    """Ids that all of them start with."""
    heads: tuple[int, ...]
    """Per score, the id after the opening; `1` and `10` may share one."""
    after_one: tuple[int, ...]
    """Where `10` is two tokens: ids of the digits 0 to 9 after `1`; else empty."""

    @classmethod
    def of(cls, tokenizer: Any) -> ScoreTokens:
        """Find the tokens of a tokenizer.

        Raises:
            PolicyError: If it writes the scores in another way than one token each, or digit by digit.
        """
        written = [_ids(tokenizer, f"{OPENING} {k}") for k in range(_HIGHEST + 1)]
        common = 0
        while all(len(ids) > common + 1 for ids in written) and len({ids[common] for ids in written}) == 1:
            common += 1
        rests = [ids[common:] for ids in written]
        heads = tuple(rest[0] for rest in rests)
        digits = rests[:_HIGHEST]
        split = len(rests[_HIGHEST]) == 2 and heads[_HIGHEST] == heads[1]
        if (
            any(len(rest) != 1 for rest in digits)
            or len(set(heads[:_HIGHEST])) < _HIGHEST
            or not (split or len(rests[_HIGHEST]) == 1)
        ):
            raise PolicyError(
                "this model's tokenizer does not write the scores 0 to 10 in a way that can be read off",
                expected="one token per score, or one per digit",
                got=" ".join(str(rest) for rest in rests),
                fix="use mode: generate",
            )
        after_one: tuple[int, ...] = ()
        if split:
            # Of 1, what goes on with a digit is another number: 10, or one that is no score.
            teens = [_ids(tokenizer, f"{OPENING} 1{d}")[common:] for d in range(10)]
            after_one = tuple(ids[1] for ids in teens if len(ids) == 2 and ids[0] == heads[1])
        return cls(tuple(written[0][:common]), heads, after_one)

    @property
    def suffix(self) -> tuple[int, ...]:
        """Ids to append to a prompt; what is predicted before and after the last of them gives the scores."""
        return (*self.opening, self.heads[1])

    def distribution(self, first: Tensor, second: Tensor) -> ScoreDistribution:
        """Return the distribution over scores.

        Where `10` is written as `1` and `0`, its probability is `P(1) P(0 | 1)`, and that of the score 1 is
        `P(1) (1 - P(any digit | 1))`: to take `P(1)` for the score 1 would count every 10 as a 1.

        Args:
            first: Probabilities [vocabulary] of the token after the opening.
            second: Probabilities [vocabulary] of the token after `1`.
        """
        weights = [float(p) for p in first[torch.tensor(self.heads, device=first.device)]]
        if self.after_one:
            digits = [float(p) for p in second[torch.tensor(self.after_one, device=second.device)]]
            one = weights[1]
            weights[_HIGHEST] = one * digits[0]
            weights[1] = one * max(0.0, 1.0 - math.fsum(digits))
        return ScoreDistribution(tuple(weights))


@torch.inference_mode()
def score_distributions(
    model: Any, tokens: ScoreTokens, prompts: Sequence[Sequence[int]], *, pad_id: int
) -> list[ScoreDistribution]:
    """Return what the model would answer to each prompt, in one forward pass.

    Args:
        model: A transformers causal language model in eval mode.
        tokens: The scores in its tokens.
        prompts: Token ids of chats, ready for the reply.
        pad_id: Any valid id; padded positions are masked.
    """
    ids, mask = left_pad([[*prompt, *tokens.suffix] for prompt in prompts], pad_id, model.device)
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    logits = model(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False, logits_to_keep=2).logits
    probabilities = logits.double().softmax(-1).cpu()
    return [tokens.distribution(first, second) for first, second in probabilities]


def _ids(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids
