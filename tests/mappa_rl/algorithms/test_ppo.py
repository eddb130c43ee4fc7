from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from row_cases import batches, make_row, team_batch, team_rows
from torch import Tensor

from mappa_rl.algorithms import PPO, AlgorithmError, ReinforcePP, TokenBatch
from mappa_rl.algorithms.advantages import gae


def values_for(batch: TokenBatch, seed: int = 1) -> Tensor:
    return torch.rand(batch.mask.shape, generator=torch.Generator().manual_seed(seed))


def test_gae_gives_the_hand_computed_numbers() -> None:
    # Rewards 0, 0, 1, values 0.2, 0.5, 0.4, gamma 0.9, lambda 0.5:
    # delta_3 = 1 - 0.4 = 0.6; delta_2 = 0.9 * 0.4 - 0.5 = -0.14; delta_1 = 0.9 * 0.5 - 0.2 = 0.25.
    # A_3 = 0.6; A_2 = -0.14 + 0.45 * 0.6 = 0.13; A_1 = 0.25 + 0.45 * 0.13 = 0.3085.
    rewards, values = torch.tensor([[0.0, 0.0, 1.0]]), torch.tensor([[0.2, 0.5, 0.4]])
    got = gae(rewards, values, torch.ones(1, 3, dtype=torch.bool), 0.9, 0.5)
    assert got[0].tolist() == pytest.approx([0.3085, 0.13, 0.6])


def test_gae_passes_over_tokens_that_were_not_sampled() -> None:
    mask = torch.tensor([[True, False, True, False]])
    rewards, values = torch.tensor([[0.0, 9.0, 1.0, 9.0]]), torch.tensor([[0.25, math.nan, 0.5, math.inf]])
    # As a row of two tokens: A_2 = 1 - 0.5, A_1 = 0.9 * 0.5 - 0.25 + 0.9 * 0.8 * 0.5.
    got = gae(rewards, values, mask, 0.9, 0.8)
    assert got[0].tolist() == pytest.approx([0.56, 0, 0.5, 0])


@settings(max_examples=40)
@given(
    batch=batches(),
    gamma=st.sampled_from([1.0, 0.9]),
    lam=st.sampled_from([0.0, 0.5, 1.0]),
    kl=st.sampled_from(["none", "k1_reward"]),
)
def test_advantages_equal_the_double_sum_over_errors(batch: TokenBatch, gamma: float, lam: float, kl: str) -> None:
    values = values_for(batch)
    algorithm = PPO(kl=kl, kl_coef=0.1, gamma=gamma, gae_lambda=lam, norm_scope=None)
    got = algorithm.advantages(batch.with_values(values))
    assert batch.ref_logprobs is not None
    for i, row in enumerate(batch.rows):
        if not row.trainable:
            assert (got[i] == 0).all()
            continue
        size = len(row.response_ids)
        beta = 0.1 if kl == "k1_reward" else 0.0
        rewards = [-beta * (row.logprobs[t] - float(batch.ref_logprobs[i, t])) for t in range(size)]
        rewards[-1] += row.reward
        v = [*values[i, :size].tolist(), 0.0]
        errors = [rewards[t] + gamma * v[t + 1] - v[t] for t in range(size)]
        expected = [sum((gamma * lam) ** k * e for k, e in enumerate(errors[t:])) for t in range(size)]
        assert got[i, :size].tolist() == pytest.approx(expected, abs=1e-5)


def test_with_values_of_0_and_lambda_1_it_is_reinforce_pp() -> None:
    batch = team_batch()
    zeros = batch.with_values(torch.zeros(batch.mask.shape))
    got = PPO(gae_lambda=1.0, kl_coef=0.1).advantages(zeros)
    assert torch.allclose(got, ReinforcePP(kl_coef=0.1).advantages(batch), atol=1e-6)


def test_the_value_loss_gives_the_hand_computed_numbers() -> None:
    # One token, reward 1, old value 0.2, so the target is 1 whatever lambda is. Value now 0.6, clip 0.1:
    # plain (0.6 - 1)^2 = 0.16, clipped (0.3 - 1)^2 = 0.49; c / 2 * 0.49 / 4 tokens.
    batch = TokenBatch.from_rows([make_row(1.0)]).with_values(torch.tensor([[0.2]]))
    now = torch.tensor([[0.6]], requires_grad=True)
    output = PPO(kl="none", value_coef=0.5, value_clip=0.1).value_loss(now, batch, total_tokens=4)
    assert output.loss.item() == pytest.approx(0.25 * 0.49 / 4)
    assert output.metrics == pytest.approx({"value_error": 0.16, "value": 0.6})
    output.loss.backward()
    assert now.grad is not None and now.grad.item() == 0  # it has moved far enough
    free = PPO(kl="none", value_coef=0.5, value_clip=None).value_loss(now, batch, total_tokens=4)
    (gradient,) = torch.autograd.grad(free.loss, now)
    assert gradient.item() == pytest.approx(0.25 * 2 * (0.6 - 1) / 4)


def test_the_value_loss_does_not_depend_on_micro_batches_and_skips_rows_that_are_out() -> None:
    batch = team_batch()
    batch = batch.with_values(values_for(batch))
    algorithm, now = PPO(kl_coef=0.1), values_for(batch, 2)
    total = batch.total_tokens()
    whole = algorithm.value_loss(now, batch, total_tokens=total)
    parts = [
        algorithm.value_loss(batch.take(now, [i]), batch.select([i]), total_tokens=total)
        for i in range(len(batch.rows))
    ]
    assert float(sum(part.loss for part in parts)) == pytest.approx(float(whole.loss), rel=1e-5)
    out = [i for i, row in enumerate(batch.rows) if not row.trainable]
    assert len(out) == 2 and all(parts[i].loss == 0 for i in out)


def test_garbage_in_padding_and_in_rows_that_are_out_is_never_read() -> None:
    rows = team_rows()
    batch = team_batch(rows)
    batch = batch.with_values(values_for(batch))
    assert batch.values is not None and batch.ref_logprobs is not None
    algorithm = PPO(kl_coef=0.1)
    nan = torch.tensor(math.nan)
    dirty = replace(
        batch,
        values=torch.where(batch.mask, batch.values, nan),
        ref_logprobs=torch.where(batch.mask, batch.ref_logprobs, nan),
    )
    assert torch.equal(algorithm.advantages(dirty), algorithm.advantages(batch))
    now = torch.where(batch.mask, batch.values + 0.1, nan).requires_grad_()
    output = algorithm.value_loss(now, dirty, total_tokens=batch.tokens)
    (gradient,) = torch.autograd.grad(output.loss, now)
    assert output.loss.isfinite() and (gradient[~batch.mask] == 0).all() and (gradient[batch.mask] != 0).any()


def test_a_batch_without_values_and_values_of_another_shape_are_named() -> None:
    batch = team_batch()
    with pytest.raises(AlgorithmError, match=r"(?s)needs the values of the value heads.*with_values"):
        PPO().advantages(batch)
    with pytest.raises(AlgorithmError, match="values does not fit"):
        batch.with_values(torch.zeros(1, 1))
    good = batch.with_values(values_for(batch))
    with pytest.raises(AlgorithmError, match="values does not fit"):
        PPO().value_loss(torch.zeros(1, 1), good, total_tokens=batch.tokens)
    assert PPO().needs_values and not ReinforcePP().needs_values
