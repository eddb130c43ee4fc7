"""What must hold for every algorithm."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from row_cases import ALGORITHMS, KLS, batches, make_row, reference_for, team_batch, team_rows

from envs_registry.errors import ConfigError
from mappa_rl.algorithms import (
    GRPO,
    RLOO,
    Algorithm,
    AlgorithmError,
    DrMAS,
    GroupSizeError,
    ReinforcePP,
    ReinforcePPBaseline,
    TokenBatch,
)
from mappa_rl.algorithms.losses import KL
from mappa_rl.rollout.row import Row


@pytest.mark.parametrize("kind", ALGORITHMS)
@settings(max_examples=25)
@given(batch=batches())
def test_garbage_in_padding_changes_neither_advantages_nor_gradients(kind: type[Algorithm], batch: TokenBatch) -> None:
    algorithm = kind(kl_coef=0.1)
    clean = algorithm.advantages(batch)

    def soil(tensor: torch.Tensor) -> torch.Tensor:
        inside = torch.where(batch.mask, tensor, math.nan)
        return torch.cat([inside, torch.full((len(batch.rows), 2), math.inf)], dim=1)

    assert batch.ref_logprobs is not None
    wide_mask = torch.cat([batch.mask, torch.zeros(len(batch.rows), 2, dtype=torch.bool)], dim=1)
    included = batch.mask.any(1)
    dirty = replace(
        batch,
        mask=wide_mask,
        old_logprobs=soil(batch.old_logprobs),
        ref_logprobs=soil(batch.ref_logprobs),
        rewards=torch.where(included, batch.rewards, math.nan),
    )
    got = algorithm.advantages(dirty)
    assert torch.equal(got[:, : batch.mask.shape[1]], clean) and (got[~wide_mask] == 0).all()

    total = max(1, batch.tokens)
    current = (batch.old_logprobs + 0.1).requires_grad_()
    soiled = soil(batch.old_logprobs + 0.1).requires_grad_()
    one = algorithm.loss(current, batch, clean, total_tokens=total)
    two = algorithm.loss(soiled, dirty, got, total_tokens=total)
    (gradient,) = torch.autograd.grad(one.loss, current)
    (soiled_gradient,) = torch.autograd.grad(two.loss, soiled)
    assert torch.equal(soiled_gradient[:, : batch.mask.shape[1]], gradient)
    assert (soiled_gradient[~wide_mask] == 0).all() and one.metrics == two.metrics


@pytest.mark.parametrize("kind", ALGORITHMS)
@settings(max_examples=25)
@given(data=st.data(), batch=batches())
def test_the_order_of_rows_does_not_matter(kind: type[Algorithm], data: st.DataObject, batch: TokenBatch) -> None:
    order = data.draw(st.permutations(range(len(batch.rows))))
    algorithm = kind(kl_coef=0.1)
    shuffled = algorithm.advantages(batch.select(order))
    width = shuffled.shape[1]
    # Sums in another order round differently in float64; the floors enlarge that.
    assert torch.allclose(shuffled, algorithm.advantages(batch)[order][:, :width], atol=1e-4)


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_failed_and_truncated_rows_are_out_of_the_statistics_and_of_the_loss(kind: type[Algorithm]) -> None:
    # A failed row keeps its place in its episode (it numbers later calls) but its values are never read.
    rows = team_rows()
    algorithm = kind(kl="none")
    batch = TokenBatch.from_rows(rows)
    advantages = algorithm.advantages(batch)
    out = [i for i, row in enumerate(rows) if not row.trainable]
    assert len(out) == 2 and (advantages[out] == 0).all() and not batch.mask[out].any()
    changed = [replace(row, reward=0.77) if i in out else row for i, row in enumerate(rows)]
    assert torch.equal(algorithm.advantages(TokenBatch.from_rows(changed)), advantages)
    counted = [replace(row, status="ok", truncated=False) for row in changed]
    assert not torch.equal(algorithm.advantages(TokenBatch.from_rows(counted)), advantages)


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_rows_that_only_fill_up_a_batch_have_no_weight(kind: type[Algorithm]) -> None:
    # DrMAS adjust_batch copied rows to make batches divisible; the copies changed the gradient.
    algorithm, rows = kind(kl="k2_loss", kl_coef=0.1), team_rows()
    filled = [*rows, *(replace(row, status="skipped", episode=row.episode) for row in rows[:3])]

    def gradient(these: list[Row]) -> torch.Tensor:
        batch = TokenBatch.from_rows(these)
        batch = batch.with_reference(batch.old_logprobs - 0.2)
        current = (batch.old_logprobs + 0.1).requires_grad_()
        advantages = algorithm.advantages(batch)
        output = algorithm.loss(current, batch, advantages, total_tokens=batch.total_tokens())
        return torch.autograd.grad(output.loss, current)[0]

    plain, with_fill = gradient(rows), gradient(filled)
    assert torch.equal(with_fill[: len(rows)], plain) and (with_fill[len(rows) :] == 0).all()
    assert (plain != 0).any()


@pytest.mark.parametrize("kind", ALGORITHMS)
@pytest.mark.parametrize("reward", [0.0, 0.1, 0.7, 1.0])
def test_equal_rewards_without_kl_give_exactly_0(kind: type[Algorithm], reward: float) -> None:
    batch = TokenBatch.from_rows([replace(row, reward=reward) for row in team_rows()])
    assert (kind(kl="none").advantages(batch) == 0).all()


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_with_rewards_all_0_the_kl_still_shapes_finite_advantages(kind: type[Algorithm]) -> None:
    rows = [replace(row, reward=0.0) for row in team_rows()]
    advantages = kind(kl="k1_reward", kl_coef=0.1).advantages(team_batch(rows))
    assert advantages.isfinite().all() and (advantages != 0).any()


@pytest.mark.parametrize("kind", ALGORITHMS)
@pytest.mark.parametrize("kl", KLS[1:])
def test_the_kl_weight_changes_the_gradient_of_every_algorithm(kind: type[Algorithm], kl: KL) -> None:
    batch = team_batch()
    gradients = []
    for coefficient in (0.0, 0.1, 0.5):
        algorithm = kind(kl=kl, kl_coef=coefficient)
        current = (batch.old_logprobs + 0.05).requires_grad_()
        advantages = algorithm.advantages(batch)
        output = algorithm.loss(current, batch, advantages, total_tokens=batch.total_tokens())
        gradients.append(torch.autograd.grad(output.loss, current)[0])
    for one, two in itertools.combinations(gradients, 2):
        assert not torch.allclose(one, two)


@pytest.mark.parametrize("kind", [GRPO, RLOO, ReinforcePPBaseline, DrMAS])
def test_group_algorithms_refuse_tasks_that_were_played_once(kind: type[Algorithm]) -> None:
    rows = [make_row(i / 4, group=i, episode=i, turn=t) for i in range(4) for t in range(2)]
    with pytest.raises(GroupSizeError, match=r"(?s)at least 2 episodes.*got: 1 episode.*samples_per_task"):
        kind(kl="none").advantages(TokenBatch.from_rows(rows))


@pytest.mark.parametrize("kind", [GRPO, RLOO, DrMAS])
def test_a_sample_whose_peers_failed_has_the_advantage_0_and_stops_nothing(kind: type[Algorithm]) -> None:
    rows = [
        make_row(0.9, group=0, episode=0),
        make_row(0.0, group=0, episode=1, status="failed"),
        make_row(0.2, group=1, episode=2),
        make_row(0.8, group=1, episode=3),
    ]
    got = kind(kl="none").advantages(TokenBatch.from_rows(rows))[:, 0].tolist()
    assert got[:2] == [0, 0] and got[2] == -got[3] != 0


def test_reinforce_pp_needs_no_group() -> None:
    rows = [make_row(i / 4, group=i, episode=i) for i in range(4)]
    assert (ReinforcePP(kl="none").advantages(TokenBatch.from_rows(rows))[:, 0].abs() > 0.1).all()


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_an_empty_or_wholly_failed_batch_gives_zeros_and_a_loss_of_0(kind: type[Algorithm]) -> None:
    rows = [replace(row, status="failed") for row in team_rows()]
    batch = team_batch(rows)
    algorithm = kind()
    advantages = algorithm.advantages(batch)
    assert (advantages == 0).all()
    current = torch.full(batch.mask.shape, math.nan, requires_grad=True)
    output = algorithm.loss(current, batch, advantages, total_tokens=5)
    output.loss.backward()
    assert output.loss.item() == 0 and current.grad is not None and (current.grad == 0).all()
    assert output.metrics["tokens"] == 0
    assert algorithm.advantages(team_batch([])).shape == (0, 0)


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_results_are_float32_on_the_batchs_device(kind: type[Algorithm]) -> None:
    batch = team_batch()
    algorithm = kind()
    advantages = algorithm.advantages(batch)
    assert advantages.dtype == torch.float32 and advantages.device == batch.mask.device
    half = batch.old_logprobs.bfloat16().requires_grad_()
    output = algorithm.loss(half, batch, advantages, total_tokens=batch.total_tokens())
    assert output.loss.dtype == torch.float32


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kind", ALGORITHMS)
@pytest.mark.parametrize("kl", KLS)
def test_a_cuda_batch_gives_the_numbers_of_the_cpu(kind: type[Algorithm], kl: KL) -> None:
    algorithm = kind(kl=kl, kl_coef=0.1)
    results = []
    for device in ("cpu", "cuda"):
        batch = TokenBatch.from_rows(team_rows(), device=device)
        batch = batch.with_reference(batch.old_logprobs - 0.2)
        advantages = algorithm.advantages(batch)
        assert advantages.device.type == device
        current = (batch.old_logprobs + 0.1).requires_grad_()
        output = algorithm.loss(current, batch, advantages, total_tokens=batch.total_tokens())
        (gradient,) = torch.autograd.grad(output.loss, current)
        results.append((advantages.cpu(), gradient.cpu(), output.metrics))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.allclose(results[0][1], results[1][1], rtol=1e-5, atol=1e-7)
    assert results[0][2] == pytest.approx(results[1][2], rel=1e-4, abs=1e-6)


# --- errors ---


@pytest.mark.parametrize("kl", KLS[1:])
def test_a_missing_reference_is_named(kl: KL) -> None:
    algorithm, batch = ReinforcePP(kl=kl), TokenBatch.from_rows(team_rows())
    with pytest.raises(AlgorithmError, match="needs the reference"):
        advantages = algorithm.advantages(batch)
        algorithm.loss(batch.old_logprobs, batch, advantages, total_tokens=batch.total_tokens())
    assert algorithm.needs_reference and not ReinforcePP(kl=kl, kl_coef=0.0).needs_reference


def test_a_reference_that_is_not_finite_is_named_with_its_rows() -> None:
    batch = team_batch()
    broken = reference_for(batch)
    broken[2, 0] = -math.inf
    with pytest.raises(AlgorithmError, match=r"(?s)not finite.*rows"):
        ReinforcePP().advantages(batch.with_reference(broken))


def test_tensors_of_another_shape_are_refused_rather_than_broadcast() -> None:
    batch, algorithm = team_batch(), ReinforcePP()
    advantages = algorithm.advantages(batch)
    with pytest.raises(AlgorithmError, match="logprobs does not fit"):
        algorithm.loss(batch.old_logprobs[:, :1], batch, advantages, total_tokens=batch.total_tokens())
    with pytest.raises(AlgorithmError, match="advantages does not fit"):
        algorithm.loss(batch.old_logprobs, batch, advantages[:1], total_tokens=batch.total_tokens())


@pytest.mark.parametrize("total", [0, 3])
def test_a_total_below_the_tokens_of_the_slice_is_refused(total: int) -> None:
    batch, algorithm = team_batch(), ReinforcePP()
    with pytest.raises(AlgorithmError, match="total_tokens is too small"):
        algorithm.loss(batch.old_logprobs, batch, algorithm.advantages(batch), total_tokens=total)


@pytest.mark.parametrize(
    ("kind", "settings_", "message"),
    [
        (ReinforcePP, {"kl_coeff": 0.1}, r"(?s)'kl_coeff' is wrong.*did you mean 'kl_coef'"),
        (ReinforcePP, {"norm_scope": "agents"}, r"(?s)'norm_scope' is wrong.*got: 'agents'.*did you mean 'agent'"),
        (ReinforcePP, {"kl_coef": -1}, r"(?s)'kl_coef'.*greater than or equal to 0"),
        (ReinforcePP, {"kl_coef": True}, r"(?s)'kl_coef'.*valid number"),
        (ReinforcePP, {"clip": 0}, r"(?s)'clip'.*greater than 0"),
        (GRPO, {"norm_scope": "agent"}, r"(?s)'norm_scope'.*'group_agent_call'"),
        (DrMAS, {"unit": "turn"}, r"(?s)'unit'.*'action' or 'episode'"),
        (ReinforcePP, {"kl_coef": math.nan}, r"(?s)'kl_coef'.*finite"),
    ],
)
def test_wrong_settings_are_named(kind: type[Algorithm], settings_: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        kind(**settings_)
