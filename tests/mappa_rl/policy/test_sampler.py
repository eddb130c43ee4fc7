from __future__ import annotations

import functools
import math
from typing import Any

import pytest
import torch

from mappa_rl.policy.base import Sampling
from mappa_rl.policy.loading import Base, load_base
from mappa_rl.policy.sampler import choose, generate, left_pad

CHATS = (
    "Find the greatest common divisor of 12 and 18.",
    "Add.",
    "How many positive divisors does 360 have? " * 3,
)


@pytest.fixture(scope="module")
def base() -> Base:
    return load_base("tiny", device="cpu")


def test_a_batch_samples_what_each_prompt_would_alone(base: Base) -> None:
    tokenizer = base.tokenizer
    prompts = [tokenizer(text)["input_ids"] for text in CHATS]

    def run(batch: list[list[int]]) -> list[list[int]]:
        made = generate(
            base.model,
            batch,
            Sampling(temperature=0, max_new_tokens=12),
            end_ids=base.end_ids,
            pad_id=base.pad_id,
            generator=torch.Generator().manual_seed(0),
        )
        return [one.ids for one in made]

    together = run(prompts)
    assert together == [run([prompt])[0] for prompt in prompts]


def test_samples_of_one_prompt_share_its_pass_and_differ(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = [base.tokenizer(text)["input_ids"] for text in CHATS]
    read: list[tuple[int, ...]] = []
    forward = base.model.forward

    def counted(*args: Any, **kwargs: Any) -> Any:
        read.append(tuple(kwargs["input_ids"].shape))
        return forward(*args, **kwargs)

    monkeypatch.setattr(base.model, "forward", functools.wraps(forward)(counted))

    def run(batch: list[list[int]], temperature: float) -> list[list[int]]:
        made = generate(
            base.model,
            batch,
            Sampling(temperature=temperature, max_new_tokens=10),
            end_ids=frozenset(),
            pad_id=base.pad_id,
            generator=torch.Generator().manual_seed(0),
        )
        return [one.ids for one in made]

    repeated = [prompts[0], prompts[2], prompts[0], prompts[0], prompts[1]]
    made = run(repeated, 0.0)
    assert read[0][0] == 3 and read[1:] == [(5, 1)] * 9  # three prompts, then five sequences
    assert made == [run([prompt], 0.0)[0] for prompt in repeated]
    one, _, two, three, _ = run(repeated, 2.0)
    assert len({tuple(one), tuple(two), tuple(three)}) == 3


def test_sequences_end_at_the_end_id_and_say_so(base: Base) -> None:
    prompts = [base.tokenizer(text)["input_ids"] for text in CHATS]
    made = generate(
        base.model,
        prompts,
        Sampling(max_new_tokens=60),
        end_ids=base.end_ids,
        pad_id=base.pad_id,
        generator=torch.Generator().manual_seed(0),
    )
    for one in made:
        assert one.ended == (one.ids[-1] in base.end_ids)
        assert not any(token in base.end_ids for token in one.ids[:-1])
        assert len(one.ids) == len(one.logprobs) <= 60


def test_choosing_follows_temperature_and_top_p() -> None:
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.2]])).repeat(4000, 1)
    generator = torch.Generator().manual_seed(0)
    tokens, logprobs = choose(logits, Sampling(temperature=0.5), generator)
    weights = torch.tensor([0.25, 0.09, 0.04]) / 0.38
    assert torch.bincount(tokens, minlength=3) / 4000 == pytest.approx(weights.tolist(), abs=0.03)
    assert logprobs[tokens == 0][0].item() == pytest.approx(math.log(0.25 / 0.38), abs=1e-5)
    cut, _ = choose(logits, Sampling(top_p=0.6), generator)
    assert set(cut.tolist()) == {0, 1}
    greedy, logprobs = choose(logits, Sampling(temperature=0), generator)
    assert set(greedy.tolist()) == {0}
    assert logprobs[0].item() == pytest.approx(math.log(0.5), abs=1e-5)


def test_padding_is_on_the_left() -> None:
    ids, mask = left_pad([[1, 2], [3]], 9, torch.device("cpu"))
    assert ids.tolist() == [[1, 2], [9, 3]]
    assert mask.tolist() == [[1, 1], [0, 1]]
