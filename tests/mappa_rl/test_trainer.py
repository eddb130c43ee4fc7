from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

sys.path.insert(0, str(Path(__file__).parent / "training"))
from quick_team import LetterJudge, PaidJudge, quick_config, written

from mappa_envs.judges.base import JudgeRequest
from mappa_envs.transcript import Verdict
from mappa_rl.checkpoint import checkpoint_steps
from mappa_rl.config import TrainConfig, load_config
from mappa_rl.errors import CheckpointError, CheckpointWarning, ConfigError, TrainingError
from mappa_rl.evaluation.evaluate import Evaluation, Interval, summarise
from mappa_rl.evaluation.records import EpisodeRecord
from mappa_rl.policy.loading import TINY_FOLDER
from mappa_rl.rollout.row import Row
from mappa_rl.trainer import Trainer
from mappa_rl.training.learner import Learner


def records(run_dir: Path, name: str = "metrics.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run_dir / name).read_text().splitlines()]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run_dir = tmp_path_factory.mktemp("runs") / "one"
    Trainer(quick_config(), run_dir).run()
    return run_dir


def test_a_run_writes_everything_that_it_promises(finished: Path) -> None:
    names = {str(p.relative_to(finished)) for p in finished.rglob("*") if p.is_file()}
    assert {
        "config.yaml",
        "metrics.jsonl",
        "evaluations.jsonl",
        "summary.json",
        "contamination.json",
        "learning_curve.png",
        "eval-000000.json",
        "eval-000003.json",
        "transcripts/eval-000003.jsonl",
        "transcripts/train-000001.jsonl",
        "adapters/solver_0/adapter_model.safetensors",
        "adapters/verifier_0/adapter_model.safetensors",
        "checkpoints/step-000002/state.json",
        "checkpoints/step-000003/optimizers.pt",
        "checkpoints/step-000003/checksums.json",
    } <= names
    assert any(name.startswith("tensorboard/") for name in names)
    assert not any(name.endswith(".unfinished") for name in names)
    assert (finished / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert [record["step"] for record in records(finished)] == [1, 2, 3]
    for name in ("score", "scores", "entropy", "clipped", "kl_reference", "truncated", "failed", "grad_norm"):
        assert all(f"{name}/solver_0" in record for record in records(finished)), name
    summary = json.loads((finished / "summary.json").read_text())
    assert summary["steps"] == 3 and summary["stopped"] is None
    curve = records(finished, "evaluations.jsonl")
    assert [point["step"] for point in curve] == [0, 1, 2, 3]
    assert curve[0]["success"] == summary["before"]["success"]["mean"]
    assert curve[3]["success"] == summary["after"]["success"]["mean"]
    assert load_config(TrainConfig, finished / "config.yaml", []) == quick_config()


def test_training_moves_all_adapters_and_nothing_else(tmp_path: Path) -> None:
    trainer = Trainer(quick_config("eval.tasks=0", "steps=1"), tmp_path / "run")
    before = {name: p.detach().clone() for name, p in trainer.team.weights.model.named_parameters()}
    trainer.run()
    moved = {name for name, p in trainer.team.weights.model.named_parameters() if not torch.equal(p, before[name])}
    assert all("lora_" in name for name in moved)
    for agent in trainer.team.agents:
        assert any(f".{agent}." in name for name in moved)


def test_a_run_is_repeated_exactly_by_its_seed(finished: Path, tmp_path: Path) -> None:
    Trainer(quick_config(), tmp_path / "again").run()
    assert written(tmp_path / "again") == written(finished)
    Trainer(quick_config("seed=1", "steps=1", "eval.tasks=0"), tmp_path / "other").run()
    assert records(tmp_path / "other")[0] != records(finished)[0]


def test_a_finished_run_that_is_resumed_stays_as_it_is(finished: Path) -> None:
    before = written(finished)
    result = Trainer(quick_config(), finished, resume=True).run()
    assert written(finished) == before
    assert result.before is not None and result.after is not None and result.comparison is not None


def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(finished: Path) -> None:
    before = written(finished)
    damaged = finished / "checkpoints" / "step-000003" / "adapters" / "solver_0" / "adapter_model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    with pytest.warns(CheckpointWarning, match=r"step-000003 is damaged(.|\n)*solver_0(.|\n)*from step-000002"):
        trainer = Trainer(quick_config(), finished, resume=True)
    assert trainer.step == 2 and sorted(trainer.evaluations) == [0, 1, 2]
    trainer.run()
    assert written(finished) == before


def test_a_trained_adapter_loads_with_plain_peft_and_generates_the_same(finished: Path, tmp_path: Path) -> None:
    trainer = Trainer(quick_config("eval.tasks=0"), tmp_path / "new")
    trainer.team.load(finished / "adapters")
    plain = PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(TINY_FOLDER), finished / "adapters" / "solver_0"
    ).eval()
    ids = torch.tensor([trainer.team.base.tokenizer("Find the least common multiple")["input_ids"]])
    with trainer.team.weights.playing("solver_0") as model, torch.no_grad():
        torch.testing.assert_close(model(input_ids=ids).logits, plain(input_ids=ids).logits, atol=1e-5, rtol=1e-5)


def test_a_used_folder_and_a_missing_run_are_named(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not empty"):
        Trainer(quick_config(), finished)
    with pytest.raises(CheckpointError, match="no run to resume"):
        Trainer(quick_config(), tmp_path / "missing", resume=True)
    (tmp_path / "file.txt").write_text("no run")
    with pytest.raises(CheckpointError, match="no run to resume"):
        Trainer(quick_config(), tmp_path, resume=True)


def test_a_wrong_setting_leaves_the_folder_to_better_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no algorithm"):
        Trainer(quick_config("algorithm.name=grpoo"), tmp_path / "run")
    assert list((tmp_path / "run").iterdir()) == []


def test_a_resumed_run_keeps_its_settings(finished: Path) -> None:
    with pytest.raises(ConfigError, match="the settings differ") as refusal:
        Trainer(quick_config("steps=4", "optim.clip_norm=2"), finished, resume=True)
    assert "steps=4" in refusal.value.got and "optim.clip_norm=2.0" in refusal.value.got
    Trainer(quick_config("keep_last=3", "eval.patience=9"), finished, resume=True)
    Trainer(quick_config(), finished, resume=True)


def test_the_mixed_reward_trains_on_verdict_and_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[Row]] = []
    monkeypatch.setattr(Learner, "learn", lambda self, step, rows, facts: seen.append(rows) or {})
    for reward in ("process", "mixed"):
        settings = (f"reward={reward}", "outcome_weight=0.25", "eval.tasks=0", "steps=1")
        Trainer(quick_config(*settings), tmp_path / reward).run()
    assert len(seen[0]) == len(seen[1]) > 0
    for process, mixed in zip(*seen, strict=True):
        assert mixed.response_ids == process.response_ids
        assert mixed.reward == pytest.approx(0.75 * process.reward + 0.25 * process.outcome)
    assert [row.reward for row in seen[0]] != [row.reward for row in seen[1]]
    (first,), (second,) = records(tmp_path / "process"), records(tmp_path / "mixed")
    assert first["score/solver_0"] == second["score/solver_0"]


def test_the_outcome_reward_gives_all_actions_of_an_episode_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def asked(self: LetterJudge, requests: list[JudgeRequest]) -> list[Verdict]:
        raise AssertionError("the process judge is not asked")

    monkeypatch.setattr(LetterJudge, "score", asked)
    settings = ("reward=outcome", "env.kwargs.judge=quick_team:LetterJudge", "eval.tasks=0", "steps=1")
    trainer = Trainer(quick_config(*settings, "rollout.tasks_per_step=6"), tmp_path / "run")
    assert trainer.envs["train"].judge.id.startswith("outcome")
    trainer.run()
    (record,) = records(tmp_path / "run")
    assert record["score/solver_0"] == record["score/verifier_0"] == pytest.approx(10 * record["success"])


def test_too_many_failed_verdicts_stop_the_run_with_a_checkpoint(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = Trainer(quick_config("save_every=0"), tmp_path / "run")
    judge = trainer.envs["train"].judge
    score = judge.score

    async def broken(requests: list[JudgeRequest]) -> list[Verdict]:
        if judge.seen:  # type: ignore[attr-defined]
            return [Verdict.failed("the judge is down", "broken") for _ in requests]
        return await score(requests)

    monkeypatch.setattr(judge, "score", broken)
    with pytest.raises(TrainingError, match=r"8 of 8 verdicts failed(.|\n)*the judge is down"):
        trainer.run()
    assert checkpoint_steps(tmp_path / "run") == [1]
    Trainer(quick_config("save_every=0"), tmp_path / "run", resume=True).run()
    assert records(tmp_path / "run") == records(finished)


def test_a_judge_without_money_ends_the_run_so_that_it_can_go_on(finished: Path, tmp_path: Path) -> None:
    trainer = Trainer(quick_config("save_every=0"), tmp_path / "run")
    trainer.envs["train"].judge = PaidJudge(budget=20)
    result = trainer.run()
    assert result.stopped == "the budget is used up; raise budget" and result.steps == 2
    assert checkpoint_steps(tmp_path / "run")[-1] == 2
    assert [record["step"] for record in records(tmp_path / "run")] == [1, 2]
    again = Trainer(quick_config("save_every=0"), tmp_path / "run", resume=True).run()
    assert again.stopped is None
    assert records(tmp_path / "run") == records(finished)


def test_an_evaluation_that_the_budget_ended_is_made_up_for(finished: Path, tmp_path: Path) -> None:
    trainer = Trainer(quick_config(), tmp_path / "run")
    judge = trainer.envs["eval"].judge = PaidJudge(budget=10)
    result = trainer.run()
    # Four turns an evaluation: the third, after step 2, cannot be paid.
    assert judge.new == 10 and result.steps == 2 and sorted(trainer.evaluations) == [0, 1]
    Trainer(quick_config(), tmp_path / "run", resume=True).run()
    assert written(tmp_path / "run") == written(finished)


def test_a_run_that_gets_no_better_ends_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shares = iter([0.5, 0.75, 0.25, 0.75, 0.0, 0.0])

    def made_up(found: Sequence[EpisodeRecord]) -> Evaluation:
        whole = summarise(found)
        share = next(shares)
        return replace(whole, success=Interval(share, share, share))

    monkeypatch.setattr("mappa_rl.trainer.summarise", made_up)
    settings = ("steps=9", "eval.patience=2", "save_every=0", "keep_last=1")
    result = Trainer(quick_config(*settings), tmp_path / "run").run()
    assert result.steps == 3 and result.best_step == 1
    assert result.stopped is not None and "best after step 1" in result.stopped
    assert checkpoint_steps(tmp_path / "run") == [1, 3]
    again = Trainer(quick_config(*settings), tmp_path / "run", resume=True)
    assert again.run().steps == 3


def test_a_batch_that_gives_no_finite_gradient_is_saved_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = Trainer(quick_config("eval.tasks=0"), tmp_path / "run")
    before = [p.detach().clone() for p in trainer.team.parameters("solver_0")]
    forward = trainer.team.forward

    def broken(*args: Any, **kwargs: Any) -> Any:
        output = forward(*args, **kwargs)
        return replace(output, logprobs=output.logprobs * torch.nan)

    monkeypatch.setattr(trainer.team, "forward", broken)
    with pytest.raises(TrainingError, match=r"solver_0(.|\n)*not finite; the batch is saved in .*bad-batch-000001\.pt"):
        trainer.run()
    saved = torch.load(tmp_path / "run" / "bad-batch-000001.pt", weights_only=True)
    assert saved["step"] == 1 and len(saved["rows"]) == 8
    assert saved["advantages"].shape == saved["old_logprobs"].shape == saved["ref_logprobs"].shape
    assert all(row["response_ids"] for row in saved["rows"])
    for old, new in zip(before, trainer.team.parameters("solver_0"), strict=True):
        assert torch.equal(old, new)
