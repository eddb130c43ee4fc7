from __future__ import annotations

import math

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from mappa_rl.errors import PolicyError
from mappa_rl.judges.digits import ScoreDistribution, ScoreTokens, score_distributions
from mappa_rl.policy.loading import Base, load_base


@pytest.fixture(scope="module")
def tiny() -> Base:
    return load_base("tiny", device="cpu")


def words(*vocabulary: str) -> PreTrainedTokenizerFast:
    """A tokenizer with one token per word."""
    ids = {word: i for i, word in enumerate(("?", *vocabulary))}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="?")


def vector(size: int, values: dict[int, float]) -> torch.Tensor:
    made = torch.zeros(size, dtype=torch.float64)
    for index, value in values.items():
        made[index] = value
    return made


def test_a_ten_that_is_two_tokens_is_not_a_one(tiny: Base) -> None:
    tokens = ScoreTokens.of(tiny.tokenizer)
    assert tiny.tokenizer.decode(tokens.opening) == "SCORE: "
    assert tokens.heads[10] == tokens.heads[1]
    assert tiny.tokenizer.decode(tokens.after_one) == "0123456789"
    # P(1) = 0.4 is split: half of it goes on to 10, a tenth to 13, which is no score.
    size = len(tiny.tokenizer)
    first = vector(size, {tokens.heads[1]: 0.4, tokens.heads[7]: 0.5})
    second = vector(size, {tokens.after_one[0]: 0.5, tokens.after_one[3]: 0.1})
    found = tokens.distribution(first, second)
    assert found.weights == pytest.approx([0, 0.16, 0, 0, 0, 0, 0, 0.5, 0, 0, 0.2])
    assert found.mass == pytest.approx(0.86)
    assert found.mean == pytest.approx((0.16 + 3.5 + 2.0) / 0.86)
    assert found.likeliest == 7


def test_a_ten_of_one_token_is_read_at_once() -> None:
    tokenizer = words("SCORE", ":", *(str(k) for k in range(11)))
    tokens = ScoreTokens.of(tokenizer)
    assert tokens.opening == (1, 2)
    assert tokens.heads == tuple(range(3, 14))
    assert tokens.after_one == ()
    found = tokens.distribution(vector(14, {4: 0.25, 13: 0.75}), vector(14, {}))
    assert (found.weights[1], found.weights[10], found.mean) == (0.25, 0.75, 7.75)


def test_a_tokenizer_that_writes_scores_otherwise_is_refused() -> None:
    with pytest.raises(PolicyError, match="use mode: generate"):
        ScoreTokens.of(words("SCORE", ":", "1", "2"))


def test_mean_and_spread_are_those_of_the_distribution() -> None:
    # Half of 0.8 on 2 and half on 6: mean 4, standard deviation 2, whatever the mass.
    found = ScoreDistribution((0, 0, 0.4, 0, 0, 0, 0.4, 0, 0, 0, 0))
    assert (found.mass, found.mean, found.spread) == (0.8, 4.0, 2.0)


def test_the_distribution_is_that_of_the_model_step_by_step(tiny: Base) -> None:
    tokens = ScoreTokens.of(tiny.tokenizer)
    prompts = [tiny.tokenizer(text)["input_ids"] for text in ("Answer 3.", "What is 12 + 7? Print 10 and 1.")]

    @torch.inference_mode()
    def next_token(ids: list[int]) -> torch.Tensor:
        return tiny.model(input_ids=torch.tensor([ids])).logits[0, -1].double().softmax(-1)

    def digit(text: str) -> int:
        (index,) = tiny.tokenizer(text, add_special_tokens=False)["input_ids"]
        return int(index)

    found = score_distributions(tiny.model, tokens, prompts, pad_id=tiny.pad_id)
    for prompt, one in zip(prompts, found, strict=True):
        opened = [*prompt, *tiny.tokenizer("SCORE: ", add_special_tokens=False)["input_ids"]]
        first, after = next_token(opened), next_token([*opened, digit("1")])
        expected = [float(first[digit(str(k))]) for k in range(10)]
        teens = math.fsum(float(after[digit(str(d))]) for d in range(10))
        expected.append(expected[1] * float(after[digit("0")]))
        expected[1] *= 1 - teens
        assert one.weights == pytest.approx(expected, abs=1e-6)
        assert 0 < one.mass < 1
