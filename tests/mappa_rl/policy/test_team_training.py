"""One training step with every kind of team."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from mappa_rl.config import TrainConfig, load_config
from mappa_rl.errors import ConfigError
from mappa_rl.trainer import Trainer

SMALL = ["steps=1", "rollout.tasks_per_step=2", "rollout.samples_per_task=2", "eval.tasks=0", "policy.device=cpu"]


def train(run_dir: Path, *settings: str) -> tuple[Trainer, dict[str, Any]]:
    trainer = Trainer(load_config(TrainConfig, None, [*SMALL, *settings]), run_dir)
    before = {name: [p.detach().clone() for p in trainer.team.parameters(name)] for name in trainer.team.learners}
    trainer.run()
    (line,) = (run_dir / "metrics.jsonl").read_text().splitlines()
    record = json.loads(line)
    moved = {
        name: any(not torch.equal(p, q) for p, q in zip(parameters, trainer.team.parameters(name), strict=True))
        for name, parameters in before.items()
    }
    # An agent whose few actions all got one score has nothing to learn from.
    assert moved == {name: record[f"grad_norm/{name}"] > 0 for name in before} and any(moved.values())
    return trainer, record


@pytest.mark.parametrize(
    ("settings", "learners"),
    [
        (["policy.kind=shared_lora"], ["team"]),
        (["policy.kind=full", "optim.lr=1e-5"], ["coder_0", "solver_0", "verifier_0"]),
        (["policy.frozen=[verifier]"], ["coder_0", "solver_0"]),
        (["policy.per_role.verifier.script=test_team_training:answer"], ["coder_0", "solver_0"]),
        (["policy.gradient_checkpointing=true", "policy.autocast=true"], ["coder_0", "solver_0", "verifier_0"]),
    ],
)
def test_each_kind_of_team_learns_and_writes_its_learners(
    settings: list[str], learners: list[str], tmp_path: Path
) -> None:
    trainer, record = train(tmp_path, *settings)
    assert sorted(trainer.team.learners) == learners
    assert sorted(key.split("/")[1] for key in record if key.startswith("grad_norm/")) == learners
    assert sorted(p.name for p in (tmp_path / "adapters").iterdir() if p.is_dir()) == learners


def answer(request: object) -> str:
    return "\\boxed{4}"


def test_a_run_in_which_nothing_learns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no agent learns"):
        train(tmp_path, "policy.frozen=[solver,coder,verifier]")


def test_ppo_trains_value_heads_that_are_kept_with_the_adapters(tmp_path: Path) -> None:
    trainer, record = train(tmp_path, "algorithm.name=ppo")
    assert record["value_error/solver_0"] > 0
    for learner in trainer.team.learners:
        kept = load_file(tmp_path / "adapters" / learner / "value_head.safetensors")
        assert kept["weight"].shape == (1, 128) and kept["weight"].abs().max() > 0
    again = Trainer(load_config(TrainConfig, None, [*SMALL, "algorithm.name=ppo"]), tmp_path, resume=True)
    for learner in trainer.team.learners:
        for one, two in zip(trainer.team.parameters(learner), again.team.parameters(learner), strict=True):
            assert torch.equal(one, two)
