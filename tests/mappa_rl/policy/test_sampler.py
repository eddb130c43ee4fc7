from __future__ import annotations

import math

import pytest
import torch

from mappa_rl.policy.base import PolicyRequest, Sampling
from mappa_rl.policy.loading import Base, load_base
from mappa_rl.policy.lora_team import LoraTeam
from mappa_rl.policy.sampler import choose, generate, left_pad
from mappa_rl.rollout.row import Row

AGENTS = ("solver_0", "coder_0", "verifier_0")
CHATS = (
    "Find the greatest common divisor of 12 and 18.",
    "Add.",
    "How many positive divisors does 360 have? " * 3,
)


@pytest.fixture(scope="module")
def base() -> Base:
    return load_base("tiny", device="cpu")


@pytest.fixture
def team(base: Base) -> LoraTeam:
    return LoraTeam(load_base("tiny", device="cpu"), AGENTS, seed=1)


def request(agent: str, text: str) -> PolicyRequest:
    return PolicyRequest(agent, ({"role": "system", "content": "Help."}, {"role": "user", "content": text}))


def requests() -> list[PolicyRequest]:
    return [request(agent, text) for agent in AGENTS for text in CHATS]


def rows(team: LoraTeam, agent: str, sampling: Sampling) -> list[Row]:
    samples = team.act([request(agent, text) for text in CHATS], sampling, seed=3)
    return [
        Row(s.prompt_ids, s.response_ids, s.logprobs, 0.5, agent, agent[:-2], "ok", s.truncated, i, i, 0, "k", 0.0)
        for i, s in enumerate(samples)
    ]


def shake(team: LoraTeam, agent: str) -> None:
    """Move an adapter away from its start, where it does nothing."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in team.parameters(agent):
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))


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


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_training_recomputes_the_sampling_log_probabilities(team: LoraTeam, temperature: float) -> None:
    for agent in AGENTS:
        shake(team, agent)
    made = rows(team, "coder_0", Sampling(temperature=temperature, max_new_tokens=30))
    recomputed = team.logprobs("coder_0", made, temperature=temperature)
    for i, row in enumerate(made):
        torch.testing.assert_close(recomputed[i, : len(row.logprobs)], torch.tensor(row.logprobs), atol=2e-4, rtol=1e-3)
        assert not recomputed[i, len(row.logprobs) :].any()


def test_log_probabilities_agree_with_the_models_own_logits(team: LoraTeam) -> None:
    (row, *_) = rows(team, "solver_0", Sampling(max_new_tokens=20))
    ids = torch.tensor([[*row.prompt_ids, *row.response_ids]])
    with torch.no_grad():
        logits = team.base.model(input_ids=ids).logits[0, len(row.prompt_ids) - 1 : -1]
    plain = (logits / 0.5).log_softmax(-1).gather(-1, ids[0, len(row.prompt_ids) :, None]).squeeze(-1)
    ours = team.logprobs("solver_0", [row], temperature=0.5)[0]
    torch.testing.assert_close(ours, plain, atol=1e-4, rtol=1e-4)


def test_the_reference_is_the_base_and_equals_fresh_adapters(team: LoraTeam) -> None:
    made = rows(team, "solver_0", Sampling(max_new_tokens=20))
    fresh = team.logprobs("solver_0", made, temperature=1.0).detach()
    shake(team, "solver_0")
    reference = team.all_reference_logprobs(made, temperature=1.0, micro_tokens=64)
    torch.testing.assert_close(reference, fresh, atol=1e-5, rtol=1e-4)
    assert (team.logprobs("solver_0", made, temperature=1.0).detach() - reference).abs().max() > 0.01


def test_gradients_reach_the_acting_adapter_only(team: LoraTeam) -> None:
    made = rows(team, "coder_0", Sampling(max_new_tokens=20))
    team.logprobs("coder_0", made, temperature=1.0).sum().backward()
    with_gradient = {name for name, p in team.model.named_parameters() if p.grad is not None}
    assert with_gradient
    assert all(".coder_0." in name for name in with_gradient)


def test_the_same_seed_gives_the_same_samples(team: LoraTeam) -> None:
    sampling = Sampling(max_new_tokens=16)
    one, two, other = (team.act(requests(), sampling, seed=s) for s in (5, 5, 6))
    assert one == two
    assert one != other


def test_requests_come_back_in_order(team: LoraTeam) -> None:
    mixed = [requests()[i] for i in (8, 0, 4, 2, 6)]
    samples = team.act(mixed, Sampling(temperature=0, max_new_tokens=8), seed=0)
    alone = [team.act([r], Sampling(temperature=0, max_new_tokens=8), seed=0)[0] for r in mixed]
    assert [s.prompt_ids for s in samples] == [s.prompt_ids for s in alone]
    assert [s.text for s in samples] == [s.text for s in alone]


def test_a_long_prompt_is_cut_in_its_middle_and_says_so() -> None:
    team = LoraTeam(load_base("tiny", device="cpu"), AGENTS, max_prompt_tokens=40)
    (sample,) = team.act([request("solver_0", "one two three " * 200)], Sampling(max_new_tokens=4), seed=0)
    whole = LoraTeam(load_base("tiny", device="cpu"), AGENTS).act(
        [request("solver_0", "one two three " * 200)], Sampling(max_new_tokens=4), seed=0
    )[0]
    assert len(sample.prompt_ids) == 40
    assert sample.prompt_cut == len(whole.prompt_ids) - 40
    assert sample.prompt_ids[:10] == whole.prompt_ids[:10]
    assert sample.prompt_ids[-30:] == whole.prompt_ids[-30:]


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
