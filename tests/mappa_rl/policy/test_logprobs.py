from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from team_cases import model_team_of, rows_by, shake
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from mappa_rl.errors import PolicyError
from mappa_rl.policy import logprobs
from mappa_rl.policy.base import Sampling
from mappa_rl.policy.loading import load_base
from mappa_rl.policy.model_team import ModelTeam
from mappa_rl.rollout.row import Row

KINDS = ["lora", "full"]


def case(kind: str, **policy: object) -> tuple[ModelTeam, list[Row]]:
    team = model_team_of(kind=kind, **policy)
    shake(team, "solver_0", 0.01 if kind == "full" else 0.05)
    return team, rows_by(team, "solver_0", Sampling(max_new_tokens=20))


def plain(team: ModelTeam, rows: Sequence[Row], temperature: float) -> list[Tensor]:
    """The rows one by one, with the model's own logits."""
    made = []
    with team.weights.playing("solver_0") as model:
        for row in rows:
            ids = torch.tensor([[*row.prompt_ids, *row.response_ids]])
            scores = (model(input_ids=ids).logits[0] / temperature).log_softmax(-1)
            made.append(scores[len(row.prompt_ids) - 1 : -1].gather(-1, ids[0, len(row.prompt_ids) :, None])[:, 0])
    return made


def gradient(team: ModelTeam) -> Tensor:
    parts = []
    for parameter in team.parameters("solver_0"):
        assert parameter.grad is not None
        parts.append(parameter.grad.flatten())
        parameter.grad = None
    return torch.cat(parts)


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_values_and_gradients_are_those_of_the_models_own_logits(
    kind: str, checkpointing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logprobs, "_CHUNK_NUMBERS", 7 * 640)  # several chunks
    team, rows = case(kind, gradient_checkpointing=checkpointing)
    weights = [torch.linspace(-1, 2, len(row.response_ids)) for row in rows]
    got = team.forward("solver_0", rows, temperature=0.5).logprobs
    sum((got[i, : len(w)] * w).sum() for i, w in enumerate(weights)).backward()  # type: ignore[union-attr]
    ours = gradient(team)
    expected = plain(team, rows, 0.5)
    for i, one in enumerate(expected):
        torch.testing.assert_close(got[i, : len(one)], one, atol=1e-4, rtol=1e-4)
    sum((one * w).sum() for one, w in zip(expected, weights, strict=True)).backward()  # type: ignore[union-attr]
    theirs = gradient(team)
    assert theirs.abs().max() > 1e-3
    torch.testing.assert_close(ours, theirs, atol=2e-4, rtol=2e-3)


class Largest(TorchDispatchMode):
    """Notes the largest tensor that any operation makes."""

    numel = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for one in result if isinstance(result, tuple | list) else (result,):
            if isinstance(one, Tensor):
                self.numel = max(self.numel, one.numel())
        return result


@pytest.mark.parametrize("kind", KINDS)
def test_logits_of_the_whole_batch_are_never_held(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    team, rows = case(kind)
    rows = rows * 20
    tokens, vocabulary = sum(len(row.response_ids) for row in rows), 640
    chunk = 8
    monkeypatch.setattr(logprobs, "_CHUNK_NUMBERS", chunk * vocabulary)
    states = torch.randn(tokens, 128, requires_grad=True)
    targets = torch.randint(vocabulary, (tokens,))
    with team.weights.playing("solver_0") as model, Largest() as largest:
        logprobs.token_logprobs(model, states, targets, 1.0).sum().backward()
    assert largest.numel <= max(chunk * vocabulary, vocabulary * 128, tokens * 128) < tokens * vocabulary / 3
    monkeypatch.setattr(logprobs, "_CHUNK_NUMBERS", tokens * vocabulary)
    with team.weights.playing("solver_0") as model, Largest() as whole:
        logprobs.token_logprobs(model, states, targets, 1.0)
    assert whole.numel >= tokens * vocabulary  # the measure sees them where they are


def saved_bytes(team: ModelTeam, rows: Sequence[Row]) -> int:
    """Bytes that the forward pass keeps for the backward pass, parameters aside."""
    held = {p.untyped_storage().data_ptr() for p in team.base.model.parameters()}
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in held:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        output = team.forward("solver_0", rows, temperature=1.0)
    assert output.logprobs.requires_grad
    return sum(kept.values())


def test_gradient_checkpointing_really_drops_activations() -> None:
    # transformers checkpoints layers in training mode only; the team is in evaluation mode.
    (with_it, rows), (without, _) = case("lora", gradient_checkpointing=True), case("lora")
    assert saved_bytes(with_it, rows) < 0.3 * saved_bytes(without, rows)
    assert not any(module.training for module in with_it.base.model.modules())


@pytest.mark.parametrize(
    ("key", "value"), [("logit_scale", 0.5), ("logits_scaling", 8.0), ("final_logit_softcapping", 5.0)]
)
def test_scaled_and_capped_logits_are_those_that_the_config_names(key: str, value: float) -> None:
    model = load_base("tiny", device="cpu").model
    states = torch.randn(3, 128)
    raw = model.lm_head(states)
    setattr(model.config, key, value)
    expected = {"logit_scale": raw * 0.5, "logits_scaling": raw / 8, "final_logit_softcapping": 5 * (raw / 5).tanh()}
    torch.testing.assert_close(logprobs.final_logits(model, states), expected[key])


def test_a_model_whose_logits_are_made_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    real = logprobs.final_logits
    monkeypatch.setattr("mappa_rl.policy.loading.final_logits", lambda model, states: 2 * real(model, states))
    with pytest.raises(PolicyError, match="makes its logits in a way that training does not know"):
        load_base("tiny", device="cpu")
