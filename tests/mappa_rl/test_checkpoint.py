from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from mappa_rl.checkpoint import (
    checkpoint_folder,
    checkpoint_steps,
    load_checkpoint,
    load_newest,
    prune_checkpoints,
    save_checkpoint,
)
from mappa_rl.config import TrainConfig, load_config
from mappa_rl.errors import CheckpointError, CheckpointWarning
from mappa_rl.policy.make import make_team
from mappa_rl.policy.team import Team

Optimizers = dict[str, torch.optim.Optimizer]


@pytest.fixture(scope="module")
def team() -> Team:
    return make_team(load_config(TrainConfig, None, ["policy.device=cpu", "policy.lora_rank=1"]), ["a_0", "b_0"])


def adam(team: Team) -> Optimizers:
    return {learner: torch.optim.AdamW(team.parameters(learner), lr=0.1) for learner in team.learners}


def take_step(team: Team, optimizers: Optimizers) -> None:
    for learner, optimizer in optimizers.items():
        for parameter in team.parameters(learner):
            parameter.grad = torch.full_like(parameter, 0.5)
        optimizer.step()


def weights(team: Team) -> list[torch.Tensor]:
    return [p.detach().clone() for learner in team.learners for p in team.parameters(learner)]


def test_weights_and_optimisers_go_on_as_if_nothing_had_happened(team: Team, tmp_path: Path) -> None:
    optimizers = adam(team)
    take_step(team, optimizers)
    save_checkpoint(tmp_path / "c", team, optimizers, {"step": 1})
    take_step(team, optimizers)
    expected = weights(team)
    fresh = adam(team)
    assert load_checkpoint(tmp_path / "c", team, fresh) == {"step": 1}
    take_step(team, fresh)
    assert all(torch.equal(a, b) for a, b in zip(expected, weights(team), strict=True))


def cut(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def change(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


@pytest.mark.parametrize("damage", [cut, change, Path.unlink])
@pytest.mark.parametrize(
    "file", ["optimizers.pt", "state.json", "checksums.json", "adapters/b_0/adapter_model.safetensors"]
)
def test_any_damage_is_named_before_anything_is_loaded(
    file: str, damage: Callable[[Path], None], team: Team, tmp_path: Path
) -> None:
    optimizers = adam(team)
    for step in (1, 2):
        take_step(team, optimizers)
        save_checkpoint(checkpoint_folder(tmp_path, step), team, optimizers, {"step": step})
        if step == 1:
            good = weights(team)
    damage(checkpoint_folder(tmp_path, 2) / file)
    now = weights(team)
    with pytest.raises(CheckpointError, match="step-000002 is damaged") as refusal:
        load_checkpoint(checkpoint_folder(tmp_path, 2), team, optimizers)
    assert file in str(refusal.value)
    assert all(torch.equal(a, b) for a, b in zip(now, weights(team), strict=True))
    with pytest.warns(CheckpointWarning, match="step-000002 is damaged"):
        assert load_newest(tmp_path, team, optimizers) == {"step": 1}
    assert all(torch.equal(a, b) for a, b in zip(good, weights(team), strict=True))
    damage(checkpoint_folder(tmp_path, 1) / file)
    with pytest.raises(CheckpointError, match=r"all checkpoints of .* are damaged"):
        load_newest(tmp_path, team, optimizers)


def test_no_checkpoint_yet(team: Team, tmp_path: Path) -> None:
    assert load_newest(tmp_path, team, adam(team)) is None
    (tmp_path / "checkpoints" / "step-000004.unfinished").mkdir(parents=True)
    assert checkpoint_steps(tmp_path) == []
    assert load_newest(tmp_path, team, adam(team)) is None


def test_another_team_is_refused(team: Team, tmp_path: Path) -> None:
    optimizers = adam(team)
    save_checkpoint(checkpoint_folder(tmp_path, 1), team, optimizers, {"step": 1})
    del optimizers["b_0"]
    with pytest.raises(CheckpointError, match="of another team"):
        load_newest(tmp_path, team, optimizers)


def test_the_newest_and_the_best_are_kept(tmp_path: Path) -> None:
    for step in (1, 2, 3, 10, 1_000_000):
        checkpoint_folder(tmp_path, step).mkdir(parents=True)
        (checkpoint_folder(tmp_path, step) / "state.json").write_text(json.dumps({"step": step}))
    assert checkpoint_steps(tmp_path) == [1, 2, 3, 10, 1_000_000]
    prune_checkpoints(tmp_path, last=2, keep=(2,))
    assert checkpoint_steps(tmp_path) == [2, 10, 1_000_000]
    prune_checkpoints(tmp_path, last=5, keep=())
    assert checkpoint_steps(tmp_path) == [2, 10, 1_000_000]
