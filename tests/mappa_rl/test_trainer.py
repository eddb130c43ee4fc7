from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from mappa_envs.judges.base import JudgeRequest
from mappa_envs.judges.math_rules import MathRules
from mappa_envs.transcript import Verdict
from mappa_rl.algorithms import TokenBatch
from mappa_rl.config import TrainConfig, load_config
from mappa_rl.errors import CheckpointError, ConfigError, TrainingError
from mappa_rl.policy.loading import TINY_FOLDER
from mappa_rl.rollout.collector import Episode, EpisodeSpec
from mappa_rl.rollout.row import Row
from mappa_rl.trainer import Trainer, check_failures, rollout_metrics

SMALL = ["steps=2", "rollout.tasks_per_step=4", "rollout.samples_per_task=2", "eval.tasks=4", "policy.device=cpu"]


def config(*more: str) -> TrainConfig:
    return load_config(TrainConfig, None, [*SMALL, *more])


def metrics(run_dir: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run_dir = tmp_path_factory.mktemp("runs") / "one"
    Trainer(config("save_every=1"), run_dir).run()
    return run_dir


def test_a_run_writes_everything_that_it_promises(finished: Path) -> None:
    names = {str(p.relative_to(finished)) for p in finished.rglob("*") if p.is_file()}
    assert {
        "config.yaml",
        "metrics.jsonl",
        "summary.json",
        "contamination.json",
        "learning_curve.png",
        "eval-000000.json",
        "eval-000002.json",
        "transcripts/eval-000002.jsonl",
        "transcripts/train-000001.jsonl",
        "adapters/solver_0/adapter_model.safetensors",
        "adapters/coder_0/adapter_model.safetensors",
        "adapters/verifier_0/adapter_model.safetensors",
        "checkpoints/step-000001/state.json",
        "checkpoints/step-000002/optimizers.pt",
    } <= names
    assert any(name.startswith("tensorboard/") for name in names)
    assert (finished / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert [record["step"] for record in metrics(finished)] == [1, 2]
    summary = json.loads((finished / "summary.json").read_text())
    assert 0 <= summary["before"]["success"]["mean"] <= 1
    assert load_config(TrainConfig, finished / "config.yaml", []) == config("save_every=1")


def test_training_moves_all_adapters_and_nothing_else(tmp_path: Path) -> None:
    trainer = Trainer(config("eval.tasks=0"), tmp_path / "run")
    before = {name: p.detach().clone() for name, p in trainer.team.weights.model.named_parameters()}
    trainer.run()
    moved = {name for name, p in trainer.team.weights.model.named_parameters() if not torch.equal(p, before[name])}
    assert all("lora_" in name for name in moved)
    for agent in trainer.team.agents:
        assert any(f".{agent}." in name for name in moved)


def test_a_run_is_repeated_exactly_by_its_seed(finished: Path, tmp_path: Path) -> None:
    Trainer(config("save_every=1"), tmp_path / "again").run()
    assert metrics(tmp_path / "again") == metrics(finished)
    Trainer(config("seed=1"), tmp_path / "other").run()
    assert metrics(tmp_path / "other") != metrics(finished)


def test_a_resumed_run_gives_the_numbers_of_an_uninterrupted_one(finished: Path, tmp_path: Path) -> None:
    run_dir = tmp_path / "resumed"

    class Stopped(Exception):
        pass

    def stop_after_one(kind: str, record: dict[str, Any]) -> None:
        if kind == "step" and record["step"] == 2:
            raise Stopped

    with pytest.raises(Stopped):
        Trainer(config("save_every=1"), run_dir, report=stop_after_one).run()
    result = Trainer(config("save_every=1"), run_dir, resume=True).run()
    assert metrics(run_dir) == metrics(finished)
    summary = json.loads((finished / "summary.json").read_text())
    assert result.before is not None and result.after is not None
    assert result.before.success.mean == summary["before"]["success"]["mean"]
    assert result.after.success.mean == summary["after"]["success"]["mean"]
    assert result.comparison is not None
    assert result.comparison.to_json() == summary["after_against_before"]
    assert result.comparison.tasks == 4


def test_a_trained_adapter_loads_with_plain_peft_and_generates_the_same(finished: Path, tmp_path: Path) -> None:
    trainer = Trainer(config("eval.tasks=0"), tmp_path / "new")
    trainer.team.load(finished / "adapters")
    plain = PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(TINY_FOLDER), finished / "adapters" / "coder_0"
    ).eval()
    ids = torch.tensor([trainer.team.base.tokenizer("Find the least common multiple")["input_ids"]])
    with trainer.team.weights.playing("coder_0") as model, torch.no_grad():
        torch.testing.assert_close(model(input_ids=ids).logits, plain(input_ids=ids).logits, atol=1e-5, rtol=1e-5)


def test_a_used_folder_and_a_missing_checkpoint_are_named(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not empty"):
        Trainer(config(), finished)
    with pytest.raises(CheckpointError, match="no checkpoint"):
        Trainer(config(), tmp_path / "empty", resume=True)


def test_the_mixed_reward_trains_on_verdict_and_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Row] = []

    def batch(trainer: Trainer, rows: list[Row]) -> TokenBatch:
        seen.extend(rows)
        return TokenBatch.from_rows(rows)

    monkeypatch.setattr(Trainer, "_batch", batch)
    runs = {}
    for reward in ("process", "mixed"):
        more = (
            "outcome_weight=0.25",
            "algorithm.kwargs.kl=none",
            "eval.tasks=0",
            "steps=1",
            "rollout.tasks_per_step=2",
        )
        Trainer(config(f"reward={reward}", *more), tmp_path / reward).run()
        runs[reward], seen = list(seen), []
    assert len(runs["process"]) == len(runs["mixed"])
    for process, mixed in zip(runs["process"], runs["mixed"], strict=True):
        assert mixed.response_ids == process.response_ids
        assert mixed.reward == pytest.approx(0.75 * process.reward + 0.25 * process.outcome)
    assert {row.reward for row in runs["mixed"]} != {row.reward for row in runs["process"]}
    (first,), (second,) = metrics(tmp_path / "process"), metrics(tmp_path / "mixed")
    assert first["score/solver_0"] == second["score/solver_0"]


def test_the_outcome_reward_gives_all_actions_of_an_episode_the_same(tmp_path: Path) -> None:
    trainer = Trainer(config("reward=outcome", "eval.tasks=0", "steps=1"), tmp_path / "run")
    assert trainer._train_env.judge.id.startswith("outcome")
    trainer.run()
    (record,) = metrics(tmp_path / "run")
    scores = [record[f"score/{agent}"] for agent in ("solver_0", "verifier_0")]
    assert scores[0] == pytest.approx(10 * record["success"])
    assert scores[0] == pytest.approx(scores[1])


def test_too_many_failed_verdicts_stop_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: MathRules, requests: list[JudgeRequest]) -> list[Verdict]:
        return [Verdict.failed("the judge is down", "broken") for _ in requests]

    monkeypatch.setattr(MathRules, "score", broken)
    with pytest.raises(TrainingError, match=r"verdicts failed(.|\n)*the judge is down"):
        Trainer(config("eval.tasks=0"), tmp_path / "run").run()


def row(status: str = "ok", reward: float = 0.5, truncated: bool = False) -> Row:
    return Row((1,), (2,), (-0.1,), reward, "a_0", "a", status, truncated, 0, 0, 0, "k", 0.0)  # type: ignore[arg-type]


def test_some_failures_are_allowed() -> None:
    rows = [row()] * 9 + [row("failed")]
    check_failures([], rows, 0.1)
    with pytest.raises(TrainingError, match="1 of 10 verdicts failed"):
        check_failures([], rows, 0.05)
    with pytest.raises(TrainingError, match=r"1 of 2 episodes failed(.|\n)*no kernel"):
        check_failures(
            [Episode(EpisodeSpec(0, 0)), Episode(EpisodeSpec(0, 0), failure="no kernel")][1:] * 1
            + [replace_transcript()],
            rows,
            0.1,
        )


def replace_transcript() -> Episode:
    from mappa_envs.transcript import Transcript

    return Episode(EpisodeSpec(0, 0), transcript=Transcript("e", "t", "1", "k", 0, None))


def test_failed_verdicts_stay_out_of_the_mean_score() -> None:
    record = rollout_metrics(1, [], [row(reward=1.0), replace(row(), status="failed", reward=0.0)])
    assert record["score/a_0"] == 10.0
    assert record["failed/a_0"] == 0.5
