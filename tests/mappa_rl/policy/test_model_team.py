from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from team_cases import AGENTS, CHATS, model_team_of, request, requests, rows_by, shake, team_of
from transformers import AutoModelForCausalLM

from mappa_rl.errors import CheckpointError, ConfigError, PolicyError
from mappa_rl.policy.base import PolicyRequest, Sample, Sampling
from mappa_rl.policy.loading import TINY_FOLDER
from mappa_rl.policy.mixed_team import MixedTeam
from mappa_rl.policy.model_team import ModelTeam
from mappa_rl.policy.team import Team

KINDS = ["lora", "shared_lora", "full"]


def learner(team: Team, agent: str) -> str:
    name = team.learner_of(agent)
    assert name is not None
    return name


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("kind", KINDS)
def test_training_recomputes_the_sampling_log_probabilities(kind: str, temperature: float) -> None:
    team = team_of(kind=kind)
    for name in team.learners:
        shake(team, name, 0.01 if kind == "full" else 0.05)
    made = rows_by(team, "coder_0", Sampling(temperature=temperature, max_new_tokens=30))
    recomputed = team.forward(learner(team, "coder_0"), made, temperature=temperature).logprobs
    for i, row in enumerate(made):
        torch.testing.assert_close(recomputed[i, : len(row.logprobs)], torch.tensor(row.logprobs), atol=2e-4, rtol=1e-3)
        assert not recomputed[i, len(row.logprobs) :].any()


@pytest.mark.parametrize("kind", KINDS)
def test_the_reference_is_what_training_started_from(kind: str) -> None:
    team = team_of(kind=kind)
    made = rows_by(team, "solver_0", Sampling(max_new_tokens=20))
    name = learner(team, "solver_0")
    fresh = team.forward(name, made, temperature=1.0).logprobs.detach()
    shake(team, name)
    reference = team.reference_logprobs(made, temperature=1.0, micro_tokens=64)
    torch.testing.assert_close(reference, fresh, atol=1e-5, rtol=1e-4)
    assert (team.forward(name, made, temperature=1.0).logprobs.detach() - reference).abs().max() > 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_reach_the_learner_only(kind: str) -> None:
    team = team_of(kind=kind)
    made = rows_by(team, "coder_0", Sampling(max_new_tokens=20))
    name = learner(team, "coder_0")
    team.forward(name, made, temperature=1.0).logprobs.sum().backward()
    for other in team.learners:
        assert [p.grad is not None for p in team.parameters(other)] == [other == name] * len(team.parameters(other))
    assert isinstance(team, ModelTeam)
    mine = {id(p) for p in team.parameters(name)}
    assert all(p.grad is None for p in team.base.model.parameters() if id(p) not in mine)


@pytest.mark.parametrize(
    ("kind", "learners"),
    [("lora", {a: (a,) for a in AGENTS}), ("shared_lora", {"team": AGENTS}), ("full", {a: (a,) for a in AGENTS})],
)
def test_each_kind_has_its_learners_and_what_they_share(kind: str, learners: dict[str, tuple[str, ...]]) -> None:
    team = team_of(kind=kind)
    assert dict(team.learners) == learners
    greedy = Sampling(temperature=0, max_new_tokens=8)
    before = [sample.logprobs for sample in team.act([request(a, CHATS[0]) for a in AGENTS], greedy, seed=0)]
    shake(team, learner(team, "coder_0"))
    after = [sample.logprobs for sample in team.act([request(a, CHATS[0]) for a in AGENTS], greedy, seed=0)]
    changed = [one != two for one, two in zip(before, after, strict=True)]
    assert changed == ([True] * 3 if kind == "shared_lora" else [False, True, False])


@pytest.mark.parametrize("kind", KINDS)
def test_saved_weights_and_value_heads_come_back_bit_for_bit(kind: str, tmp_path: Path) -> None:
    team, again = (team_of(kind=kind, value_heads=True) for _ in range(2))
    for name in team.learners:
        shake(team, name, 0.02)
    team.save(tmp_path)
    count = [len(again.parameters(name)) for name in again.learners]
    again.load(tmp_path)
    # Loading replaces weights; it wraps no second adapter around them.
    assert [len(again.parameters(name)) for name in again.learners] == count
    for name in team.learners:
        for one, two in zip(team.parameters(name), again.parameters(name), strict=True):
            assert torch.equal(one, two)
    made = rows_by(team, "coder_0", Sampling(max_new_tokens=10))
    assert torch.equal(team.values(made, micro_tokens=99), again.values(made, micro_tokens=99))
    assert team.values(made, micro_tokens=99).abs().max() > 0


def test_a_full_model_loads_with_plain_transformers(tmp_path: Path) -> None:
    team = model_team_of(kind="full")
    shake(team, "coder_0", 0.01)
    team.save(tmp_path)
    plain = AutoModelForCausalLM.from_pretrained(tmp_path / "coder_0")
    ids = torch.tensor([[5, 6, 7]])
    with team.weights.playing("coder_0") as model, torch.no_grad():
        assert torch.equal(model(input_ids=ids).logits, plain(input_ids=ids).logits)


@pytest.mark.parametrize("value_heads", [False, True])
def test_an_adapter_loads_with_plain_peft_and_generates_the_same_tokens(value_heads: bool, tmp_path: Path) -> None:
    team = model_team_of(value_heads=value_heads)
    shake(team, "coder_0")
    team.save(tmp_path)
    plain = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(TINY_FOLDER), tmp_path / "coder_0").eval()
    for sample in team.act([request("coder_0", t) for t in CHATS], Sampling(temperature=0, max_new_tokens=30), seed=0):
        prompt = torch.tensor([sample.prompt_ids])
        made = plain.generate(
            input_ids=prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=30
        )
        assert tuple(made[0, prompt.shape[1] :].tolist()) == sample.response_ids


def test_a_missing_or_misfitting_checkpoint_is_named(tmp_path: Path) -> None:
    team_of(lora_rank=4).save(tmp_path)
    with pytest.raises(CheckpointError, match=r"(?s)do not fit this model.*rank"):
        team_of(lora_rank=8).load(tmp_path)
    with pytest.raises(CheckpointError, match=r"(?s)value head .* cannot be read"):
        team_of(lora_rank=4, value_heads=True).load(tmp_path)
    with pytest.raises(CheckpointError, match="no adapter in"):
        team_of().load(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="no model in"):
        team_of(kind="full").load(tmp_path / "nowhere")


def test_a_team_that_starts_from_a_trained_adapter_has_it_as_its_reference(tmp_path: Path) -> None:
    # trl 3194: with the adapters off as the reference, the KL of a policy that starts trained is not 0.
    trained = team_of()
    for name in trained.learners:
        shake(trained, name)
    trained.save(tmp_path)
    team = model_team_of(start_from=str(tmp_path))
    made = rows_by(team, "coder_0", Sampling(max_new_tokens=20))
    reference = team.reference_logprobs(made, temperature=1.0, micro_tokens=10_000)
    torch.testing.assert_close(team.forward("coder_0", made, temperature=1.0).logprobs.detach(), reference)
    with torch.no_grad():
        bare = team_of().forward("coder_0", made, temperature=1.0).logprobs
    assert (bare - reference).abs().max() > 0.01
    # The copy neither moves nor is saved.
    shake(team, "coder_0")
    assert torch.equal(team.reference_logprobs(made, temperature=1.0, micro_tokens=10_000), reference)
    assert len(team.parameters("coder_0")) == len(trained.parameters("coder_0"))
    team.save(tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir() if path.is_dir()} == set(AGENTS)


@pytest.mark.parametrize("kind", KINDS)
def test_frozen_roles_play_as_the_base_and_never_learn(kind: str) -> None:
    team = model_team_of(kind=kind, frozen=["verifier", "coder_0"])
    assert list(team.learners.values()) == [("solver_0",)]
    for name in team.learners:
        shake(team, name)
    greedy = Sampling(temperature=0, max_new_tokens=8)
    base = team_of(kind=kind)
    for agent in ("coder_0", "verifier_0"):
        (mine,), (bases,) = (t.act([request(agent, CHATS[0])], greedy, seed=0) for t in (team, base))
        assert mine.response_ids == bases.response_ids
        assert mine.logprobs == pytest.approx(bases.logprobs, abs=1e-4)
        assert team.learner_of(agent) is None
    with pytest.raises(PolicyError, match=r"(?s)no learner 'verifier_0'.*team|solver_0"):
        team.parameters("verifier_0")


def test_a_wholly_frozen_team_plays() -> None:
    team = team_of(frozen=list(AGENTS))
    assert team.learners == {} and len(team.act(requests(), Sampling(max_new_tokens=4), seed=0)) == 9


def shout(request: PolicyRequest) -> str:
    return request.messages[-1]["content"].upper()


def test_roles_can_have_a_base_or_a_script_of_their_own(tmp_path: Path) -> None:
    other = model_team_of(kind="full")
    shake(other, "coder_0", 0.01)
    other.save(tmp_path)
    team = team_of(
        per_role={"coder": {"model": str(tmp_path / "coder_0")}, "verifier_0": {"script": "test_model_team:shout"}}
    )
    assert isinstance(team, MixedTeam)
    assert dict(team.learners) == {"solver_0": ("solver_0",), "coder_0": ("coder_0",)}
    greedy = Sampling(temperature=0, max_new_tokens=12)
    order = [("verifier_0", "Add."), ("coder_0", CHATS[0]), ("solver_0", CHATS[0]), ("coder_0", CHATS[1])]
    made = team.act([request(agent, text) for agent, text in order], greedy, seed=0)
    assert made[0].text == "ADD." and made[0].response_ids == ()
    for one, player in ((made[1], other), (made[2], team_of()), (made[3], other)):
        agent, text = order[made.index(one)]
        assert one.response_ids == player.act([request(agent, text)], greedy, seed=0)[0].response_ids
    # Rows of both models, mixed, go through the model that wrote them.
    rows = [row for agent in ("solver_0", "coder_0") for row in rows_by(team, agent, Sampling(max_new_tokens=9))]
    rows = rows[::2] + rows[1::2]
    reference = team.reference_logprobs(rows, temperature=1.0, micro_tokens=100)
    for i, row in enumerate(rows):
        torch.testing.assert_close(reference[i, : len(row.logprobs)], torch.tensor(row.logprobs), atol=2e-4, rtol=1e-3)
    shake(team, "coder_0")
    team.save(tmp_path / "saved")
    assert {path.name for path in (tmp_path / "saved").iterdir() if path.is_dir()} == {"solver_0", "coder_0"}


def test_one_shared_adapter_per_base(tmp_path: Path) -> None:
    model_team_of(kind="full").save(tmp_path)
    team = team_of(kind="shared_lora", per_role={"coder": {"model": str(tmp_path / "coder_0")}})
    assert dict(team.learners) == {"team": ("solver_0", "verifier_0"), "team1": ("coder_0",)}


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"frozen": ["verifyer"]}, r"(?s)'verifyer', which is no role.*did you mean 'verifier'"),
        ({"per_role": {"judge": {}}}, r"(?s)'judge', which is no role.*solver"),
        ({"kind": "full", "start_from": "runs/x"}, "holds adapters, and policy.kind=full has none"),
    ],
)
def test_settings_that_name_nothing_are_errors(policy: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        team_of(**policy)


def test_an_unknown_agent_is_named() -> None:
    for team in (team_of(), MixedTeam({"solver_0": team_of()})):
        with pytest.raises(PolicyError, match="no agent 'judge_0'"):
            team.act([request("judge_0", "Hi")], Sampling(), seed=0)
    with pytest.raises(PolicyError, match="two teams have a learner"):
        MixedTeam({"solver_0": team_of(), "coder_0": team_of()})


def test_the_same_seed_gives_the_same_samples() -> None:
    team, sampling = team_of(), Sampling(max_new_tokens=16)
    one, two, other = (team.act(requests(), sampling, seed=s) for s in (5, 5, 6))
    assert one == two
    assert one != other


def test_requests_come_back_in_order() -> None:
    team = team_of()
    mixed = [requests()[i] for i in (8, 0, 4, 2, 6)]
    samples = team.act(mixed, Sampling(temperature=0, max_new_tokens=8), seed=0)
    alone = [team.act([r], Sampling(temperature=0, max_new_tokens=8), seed=0)[0] for r in mixed]
    assert [s.prompt_ids for s in samples] == [s.prompt_ids for s in alone]
    assert [s.text for s in samples] == [s.text for s in alone]


def test_a_long_prompt_is_cut_in_its_middle_and_says_so() -> None:
    long = [request("solver_0", "one two three " * 200)]
    (sample,) = team_of(max_prompt_tokens=40).act(long, Sampling(max_new_tokens=4), seed=0)
    (whole,) = team_of().act(long, Sampling(max_new_tokens=4), seed=0)
    assert len(sample.prompt_ids) == 40
    assert sample.prompt_cut == len(whole.prompt_ids) - 40
    assert sample.prompt_ids[:10] == whole.prompt_ids[:10]
    assert sample.prompt_ids[-30:] == whole.prompt_ids[-30:]


def test_rows_hold_the_sampled_ids_where_their_text_would_be_tokenised_otherwise() -> None:
    # rllm 272, trl 5224: two id sequences can decode to one text; re-encoding trains on ids that nobody sampled.
    team = model_team_of()
    tokenizer = team.base.tokenizer
    samples = team.act(requests() * 4, Sampling(temperature=3.0, max_new_tokens=24), seed=0)
    assert all(len(sample.response_ids) <= 24 for sample in samples)
    again = [tuple(tokenizer(sample.text, add_special_tokens=False)["input_ids"]) for sample in samples]
    bodies = [s.response_ids[: len(s.response_ids) - (not s.truncated)] for s in samples]
    other = [sample for sample, one, two in zip(samples, again, bodies, strict=True) if one != two]
    assert other
    template = rows_by(team, "solver_0", Sampling(max_new_tokens=1))[0]
    rows = [replace(template, **ids_of(sample)) for sample in other]
    got = team.reference_logprobs(rows, temperature=3.0, micro_tokens=4096)
    for i, sample in enumerate(other):  # the log-probabilities belong to the ids that are kept
        expected = torch.tensor(sample.logprobs)
        torch.testing.assert_close(got[i, : len(expected)], expected, atol=2e-4, rtol=1e-3)


def ids_of(sample: Sample) -> dict[str, Any]:
    return {"prompt_ids": sample.prompt_ids, "response_ids": sample.response_ids, "logprobs": sample.logprobs}


def test_autocast_computes_in_bfloat16_alike_in_sampling_and_training() -> None:
    team = model_team_of(autocast=True)
    shake(team, "coder_0")
    made = rows_by(team, "coder_0", Sampling(max_new_tokens=20))
    output = team.forward("coder_0", made, temperature=1.0).logprobs
    assert output.dtype == torch.float32
    assert all(p.dtype == torch.float32 for p in team.base.model.parameters())
    full = model_team_of()
    shake(full, "coder_0")
    exact = full.forward("coder_0", made, temperature=1.0).logprobs
    assert 1e-4 < (output - exact).abs().max() < 0.2
    for i, row in enumerate(made):
        assert (output[i, : len(row.logprobs)] - torch.tensor(row.logprobs)).abs().max() < 0.2
    output.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in team.parameters("coder_0"))
