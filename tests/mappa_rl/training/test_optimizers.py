"""Optimisers by name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from mappa_rl.config import TrainConfig, load_config
from mappa_rl.errors import ConfigError
from mappa_rl.training.optimizers import make_optimizer

SHAPES = ((8, 1024), (1024, 8))


def settings(name: str) -> TrainConfig:
    return load_config(TrainConfig, None, [f"optim.name={name}", "optim.lr=1e-2", "optim.weight_decay=0.1"])


class Problem:
    """Weights that are to become those of a fixed target, from noisy gradients."""

    def __init__(self, name: str) -> None:
        torch.manual_seed(0)
        self.weights = [nn.Parameter(torch.randn(shape)) for shape in SHAPES]
        self.targets = [torch.randn(shape) for shape in SHAPES]
        self.optimizer = make_optimizer(self.weights, settings(name))

    def steps(self, numbers: range) -> None:
        for number in numbers:
            noise = torch.Generator().manual_seed(number)
            for weights, target in zip(self.weights, self.targets, strict=True):
                weights.grad = (weights - target).detach() + torch.randn(weights.shape, generator=noise)
            self.optimizer.step()

    def state_bytes(self) -> int:
        values = [v for state in self.optimizer.state.values() for v in state.values() if isinstance(v, torch.Tensor)]
        return sum(v.numel() * v.element_size() for v in {v.data_ptr(): v for v in values}.values())


@pytest.mark.parametrize(("name", "kind"), [("adamw", "AdamW"), ("adamw_8bit", "AdamW8bit")])
def test_the_named_optimiser_has_the_runs_settings(name: str, kind: str) -> None:
    made = Problem(name).optimizer
    assert type(made).__name__ == kind
    (group,) = made.param_groups
    assert (group["lr"], tuple(group["betas"]), group["weight_decay"]) == (1e-2, (0.9, 0.95), 0.1)


def test_eight_bits_learn_what_thirty_two_learn_in_a_quarter_of_the_memory() -> None:
    exact, small = Problem("adamw"), Problem("adamw_8bit")
    start = [weights.detach().clone() for weights in exact.weights]
    for problem in (exact, small):
        problem.steps(range(50))
    for a, b, before in zip(exact.weights, small.weights, start, strict=True):
        assert (a - b).norm() < 0.05 * (a - before).norm()
    assert small.state_bytes() < 0.3 * exact.state_bytes()


@pytest.mark.parametrize("name", ["adamw", "adamw_8bit"])
def test_a_run_that_was_interrupted_goes_on_bit_for_bit(name: str, tmp_path: Path) -> None:
    whole = Problem(name)
    whole.steps(range(20))
    first, second = Problem(name), Problem(name)
    first.steps(range(10))
    torch.save(first.optimizer.state_dict(), tmp_path / "optimizer.pt")
    with torch.no_grad():
        for into, from_ in zip(second.weights, first.weights, strict=True):
            into.copy_(from_)
    second.optimizer.load_state_dict(torch.load(tmp_path / "optimizer.pt", weights_only=True))
    second.steps(range(10, 20))
    for a, b in zip(second.weights, whole.weights, strict=True):
        assert torch.equal(a, b)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(ConfigError, match=r"mappa-gym\[8bit\]"):
        Problem("adamw_8bit")
