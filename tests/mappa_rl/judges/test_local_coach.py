from __future__ import annotations

import asyncio
import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from coaching import ask, short_prompt

from mappa_envs.errors import ConfigError
from mappa_envs.judges import get_judge
from mappa_envs.judges.base import Judge
from mappa_envs.judges.coach import load_prompt, render_request
from mappa_envs.judges.math_rules import MathRules
from mappa_envs.transcript import Verdict
from mappa_rl.errors import PolicyError
from mappa_rl.judges.engine import shared_engine, weights_digest
from mappa_rl.judges.local_coach import LocalCoach, local_coach
from mappa_rl.policy.chat import encode_chat
from mappa_rl.policy.loading import load_base

ACTIONS = ("Compute: 2 + 2", "I do not know.", "The answer is \\boxed{4}.", "")


@pytest.fixture(scope="module")
def prompt(tmp_path_factory: pytest.TempPathFactory) -> str:
    return short_prompt(tmp_path_factory.mktemp("coach") / "short")


@pytest.fixture(scope="module")
def model(prompt: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The embedded model, taught to give a 7 to a right plan and a 2 to none."""
    base = load_base("tiny", device="cpu")
    texts = load_prompt(prompt)
    chats = [(ACTIONS[0], "Sound.\nSCORE: 7"), (ACTIONS[1], "Nothing.\nSCORE: 2")]
    rows = []
    for action, reply in chats:
        head = encode_chat(base.tokenizer, render_request(ask(action), texts))
        tail = base.tokenizer(reply, add_special_tokens=False)["input_ids"] + [min(base.end_ids)]
        rows.append((torch.tensor([[*head, *tail]]), torch.tensor([[-100] * len(head) + tail])))
    optimizer = torch.optim.AdamW(base.model.parameters(), lr=2e-3)
    loss = torch.tensor(1.0)
    while loss > 0.02:
        loss = sum(base.model(input_ids=ids, labels=labels).loss for ids, labels in rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    folder = tmp_path_factory.mktemp("model") / "taught"
    base.model.save_pretrained(folder)
    base.tokenizer.save_pretrained(folder)
    return str(folder)


def coach(prompt: str, **settings: Any) -> LocalCoach:
    return local_coach(**{"prompt": prompt, "device": "cpu", "min_mass": 0.0, **settings})


def verdicts(judge: Judge, *actions: str) -> list[Verdict]:
    return asyncio.run(judge.score([ask(action) for action in actions]))


def test_the_score_is_the_expected_one_and_the_reason_says_how_sure_the_model_is(prompt: str) -> None:
    judge = coach(prompt)
    found = verdicts(judge, *ACTIONS)
    assert [v.status for v in found] == ["ok"] * 4
    assert all(v.score is not None and 0 < v.score < 10 for v in found)
    assert len({v.score for v in found}) == 4
    assert "standard deviation" in found[0].reason
    assert found[0].cost.calls == 1 and found[0].cost.prompt_tokens > 50
    assert judge.id.startswith("local_coach-1/tiny/digits/short-")


def test_equal_requests_get_equal_scores_whatever_else_is_asked(prompt: str) -> None:
    together = verdicts(coach(prompt), *ACTIONS)
    alone = [verdicts(coach(prompt), action)[0] for action in reversed(ACTIONS)][::-1]
    assert [v.score for v in together] == [v.score for v in alone]
    batched = verdicts(coach(prompt, batch_size=3), *ACTIONS)
    assert [v.score for v in batched] == pytest.approx([v.score for v in together], abs=1e-3)


def test_requests_of_several_environments_share_a_model_and_meet_in_batches(
    prompt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = coach(prompt, batch_size=4), coach(prompt, batch_size=4)
    engine = shared_engine(first.config)
    assert shared_engine(second.config) is engine
    assert shared_engine(coach(prompt, mode="generate").config).base is engine.base
    sizes: list[int] = []
    run = engine._run
    monkeypatch.setattr(engine, "_run", lambda prompts: sizes.append(len(prompts)) or run(prompts))

    async def ask_both() -> None:
        await asyncio.gather(*(judge.score([ask(a) for a in ACTIONS]) for judge in (first, second)))

    asyncio.run(ask_both())
    assert sum(sizes) == 8
    assert max(sizes) == 4


def test_a_coach_is_copied_and_pickled_without_its_model(prompt: str) -> None:
    judge = coach(prompt)
    for other in (copy.deepcopy(judge), pickle.loads(pickle.dumps(judge))):
        assert other.id == judge.id
        assert verdicts(other, ACTIONS[0]) == verdicts(judge, ACTIONS[0])
    assert len(pickle.dumps(judge)) < 20_000


def test_a_model_that_would_not_write_a_score_fails(prompt: str) -> None:
    (verdict,) = verdicts(coach(prompt, min_mass=0.999), ACTIONS[0])
    assert (verdict.status, verdict.score, verdict.reward) == ("failed", None, 0.0)
    assert "the model gives scores a probability of 0." in verdict.reason


def test_a_prompt_that_does_not_fit_is_cut_in_the_middle_and_says_so(prompt: str) -> None:
    (verdict,) = verdicts(coach(prompt, max_prompt_tokens=64), "word " * 500)
    assert verdict.status == "ok"
    assert "prompt cut by " in verdict.reason
    assert verdict.cost.prompt_tokens == 64
    (longest,) = verdicts(coach(prompt), "word " * 3000)
    assert longest.cost.prompt_tokens < 2048


@pytest.mark.parametrize("mode", ["digits", "generate"])
def test_a_model_that_learned_to_score_is_read_in_both_modes(prompt: str, model: str, mode: str) -> None:
    judge = coach(prompt, model=model, mode=mode, max_new_tokens=40)
    right, wrong = verdicts(judge, *ACTIONS[:2])
    if mode == "generate":
        assert (right.score, right.reason, wrong.score, wrong.reason) == (7, "Sound.", 2, "Nothing.")
        assert right.cost.completion_tokens > 5
    else:
        assert right.score is not None and wrong.score is not None and right.score > wrong.score + 2
    assert judge.id.startswith(f"local_coach-1/taught/{mode}/")


def test_a_reply_without_a_score_or_cut_off_fails(prompt: str, model: str) -> None:
    silent = verdicts(coach(prompt, mode="generate", max_new_tokens=60), ACTIONS[0])[0]
    assert (silent.status, silent.score) == ("failed", None)
    cut = verdicts(coach(prompt, model=model, mode="generate", max_new_tokens=8), ACTIONS[0])[0]
    assert (cut.status, cut.reason) == ("failed", "empty reply")


@pytest.mark.parametrize("mode", ["digits", "generate"])
def test_kept_replies_are_used_again_without_asking_the_model(
    prompt: str, model: str, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = coach(prompt, model=model, mode=mode, max_new_tokens=40, folder=str(tmp_path))
    first = verdicts(judge, *ACTIONS[:2])
    assert [v.cost.calls for v in first] == [1, 1]
    again = verdicts(judge, *ACTIONS[:2])
    assert again == first
    assert [v.cost.calls for v in again] == [0, 0]
    # Another model, or the other mode, is asked anew.
    other = "generate" if mode == "digits" else "digits"
    assert verdicts(coach(prompt, model=model, mode=other, folder=str(tmp_path)), ACTIONS[0])[0].cost.calls == 1
    assert verdicts(coach(prompt, mode=mode, folder=str(tmp_path)), ACTIONS[0])[0].cost.calls == 1


def test_models_are_told_apart_by_their_weights() -> None:
    one, other = load_base("tiny", device="cpu").model, load_base("tiny", device="cpu").model
    assert weights_digest(one) == weights_digest(other)
    with torch.no_grad():
        next(other.parameters()).flatten()[0].add_(1e-3)
    assert weights_digest(one) != weights_digest(other)


def test_it_is_found_by_name_and_its_settings_are_checked(prompt: str) -> None:
    judge = get_judge({"name": "local_coach", "prompt": prompt, "device": "cpu"}, rules=MathRules)
    assert isinstance(judge, LocalCoach)
    with pytest.raises(ConfigError, match="min_mass"):
        get_judge({"name": "local_coach", "min_mas": 0.2}, rules=MathRules)
    with pytest.raises(ConfigError, match="mode"):
        local_coach(mode="digit")
    with pytest.raises(PolicyError, match="no such model folder"):
        local_coach(model="./nowhere")


THINKER = "{% for m in messages %}{{ m['content'] }}\n{% endfor %}{% if think is not defined %}<think>\n{% endif %}"


def test_a_template_that_opens_a_think_block_before_the_score_is_refused(prompt: str, tmp_path: Path) -> None:
    base = load_base("tiny", device="cpu")
    base.tokenizer.chat_template = THINKER
    base.model.save_pretrained(tmp_path)
    base.tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match="opens a think block"):
        verdicts(coach(prompt, model=str(tmp_path)), ACTIONS[0])
    assert verdicts(coach(prompt, model=str(tmp_path), template_kwargs={"think": False}), ACTIONS[0])[0].status == "ok"
