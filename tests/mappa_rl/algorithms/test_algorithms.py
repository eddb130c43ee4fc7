from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from row_cases import ALGORITHMS, batches, make_row, reference_for, team_batch, team_rows

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

KLS: list[KL] = ["none", "k1_reward", "k2_loss", "k3_loss"]


# --- slow, independent implementations: loops over rows, numpy statistics ---


def slow_rewards(algorithm: Algorithm, batch: TokenBatch) -> list[list[float]]:
    """Token rewards of every trainable row, [] for the others."""
    assert batch.ref_logprobs is not None
    beta = algorithm.kl_coef if algorithm.kl == "k1_reward" else 0.0
    result = []
    for i, row in enumerate(batch.rows):
        tokens = []
        for t in range(len(row.response_ids)) if row.status == "ok" and not row.truncated else ():
            tokens.append(-beta * (row.logprobs[t] - float(batch.ref_logprobs[i, t])))
        if tokens:
            tokens[-1] += row.reward
        result.append(tokens)
    return result


def slow_call(rows: tuple[Row, ...], i: int) -> int:
    row = rows[i]
    return sum(r.episode == row.episode and r.agent == row.agent and r.turn < row.turn for r in rows)


def peers_of(rows: tuple[Row, ...], i: int, used: list[bool], *, calls: bool) -> list[int]:
    return [
        j
        for j in range(len(rows))
        if used[j]
        and (rows[j].group, rows[j].agent) == (rows[i].group, rows[i].agent)
        and (not calls or slow_call(rows, j) == slow_call(rows, i))
    ]


def slow_whiten(tokens: list[list[float]], rows: tuple[Row, ...]) -> list[list[float]]:
    result = []
    for i, values in enumerate(tokens):
        pool = np.array([v for j, vs in enumerate(tokens) if rows[j].agent == rows[i].agent for v in vs])
        result.append([(v - pool.mean()) / math.sqrt(max(pool.var(), 1e-8)) for v in values])
    return result


def slow_reinforce_pp(algorithm: Algorithm, batch: TokenBatch) -> list[list[float]]:
    rewards = slow_rewards(algorithm, batch)
    returns = [[sum(tokens[t:]) for t in range(len(tokens))] for tokens in rewards]
    return slow_whiten(returns, batch.rows)


def per_row(
    advantage: Callable[[tuple[Row, ...], int, list[float], list[bool]], float],
) -> Callable[..., list[list[float]]]:
    def slow(algorithm: Algorithm, batch: TokenBatch) -> list[list[float]]:
        rewards = slow_rewards(algorithm, batch)
        used = [bool(tokens) for tokens in rewards]
        sums = [sum(tokens) for tokens in rewards]
        return [
            [advantage(batch.rows, i, sums, used)] * len(tokens) if tokens else [] for i, tokens in enumerate(rewards)
        ]

    return slow


def grpo_row(rows: tuple[Row, ...], i: int, sums: list[float], used: list[bool]) -> float:
    group = [sums[j] for j in peers_of(rows, i, used, calls=True)]
    return 0.0 if len(group) < 2 else float((sums[i] - np.mean(group)) / (np.std(group, ddof=1) + 1e-6))


def dr_mas_row(rows: tuple[Row, ...], i: int, sums: list[float], used: list[bool]) -> float:
    group = [sums[j] for j in peers_of(rows, i, used, calls=False)]
    return 0.0 if len(group) < 2 else float((sums[i] - np.mean(group)) / (np.std(group, ddof=1) + 1e-6))


def rloo_row(rows: tuple[Row, ...], i: int, sums: list[float], used: list[bool]) -> float:
    group = [sums[j] for j in peers_of(rows, i, used, calls=True) if j != i]
    return sums[i] - float(np.mean(group)) if group else 0.0


def slow_baseline(algorithm: Algorithm, batch: TokenBatch) -> list[list[float]]:
    rewards = slow_rewards(algorithm, batch)
    used, sums = [bool(tokens) for tokens in rewards], [sum(tokens) for tokens in rewards]
    centred = []
    for i, tokens in enumerate(rewards):
        group = [sums[j] for j in peers_of(batch.rows, i, used, calls=True)]
        centred.append([sums[i] - float(np.mean(group))] * len(tokens) if tokens else [])
    return slow_whiten(centred, batch.rows)


SLOW: dict[type[Algorithm], Callable[..., list[list[float]]]] = {
    ReinforcePP: slow_reinforce_pp,
    ReinforcePPBaseline: slow_baseline,
    GRPO: per_row(grpo_row),
    RLOO: per_row(rloo_row),
    DrMAS: per_row(dr_mas_row),
}


@pytest.mark.parametrize("kind", ALGORITHMS)
@settings(max_examples=40)
@given(batch=batches(), kl=st.sampled_from(KLS))
def test_advantages_equal_the_slow_implementation(kind: type[Algorithm], batch: TokenBatch, kl: KL) -> None:
    algorithm = kind(kl=kl, kl_coef=0.1)
    got = algorithm.advantages(batch)
    for i, expected in enumerate(SLOW[kind](algorithm, batch)):
        # Scores differ by 0.1 or are equal; where they are equal the slow loops leave rounding errors of 1e-16,
        # divided by the floors 1e-4 and 1e-6.
        assert got[i, : len(expected)].tolist() == pytest.approx(expected, rel=1e-3, abs=1e-3)
        assert (got[i, len(expected) :] == 0).all()


# --- hand-computed numbers ---


def test_reinforce_pp_gives_the_hand_computed_numbers() -> None:
    # beta 0.1. Row 0: log-ratios 1 and 2, reward 1: token rewards -0.1, 1 - 0.2 = 0.8, returns 0.7, 0.8.
    # Row 1: log-ratio 0, reward 0: return 0. Mean (0.7 + 0.8 + 0) / 3 = 0.5,
    # variance (0.04 + 0.09 + 0.25) / 3 = 0.38 / 3.
    rows = [make_row(1.0, logprobs=(-1.0, -1.0), tokens=2), make_row(0.0, logprobs=(-1.0,))]
    batch = TokenBatch.from_rows(rows, ref_logprobs=torch.tensor([[-2.0, -3.0], [-1.0, 50.0]]))
    got = ReinforcePP(kl_coef=0.1).advantages(batch)
    std = math.sqrt(0.38 / 3)
    assert got[0].tolist() == pytest.approx([0.2 / std, 0.3 / std], rel=1e-5)
    assert got[1].tolist() == pytest.approx([-0.5 / std, 0.0], rel=1e-5)


def test_group_algorithms_give_the_hand_computed_numbers() -> None:
    # One task, one agent, rewards 0.2, 0.4, 0.9: mean 0.5, sample variance (0.09 + 0.01 + 0.16) / 2 = 0.13.
    batch = TokenBatch.from_rows([make_row(r, episode=i) for i, r in enumerate((0.2, 0.4, 0.9))])

    def numbers(algorithm: Algorithm) -> list[float]:
        return algorithm.advantages(batch)[:, 0].tolist()

    std = math.sqrt(0.13)
    assert numbers(GRPO(kl="none")) == pytest.approx([-0.3 / std, -0.1 / std, 0.4 / std], rel=1e-4)
    assert numbers(DrMAS(kl="none")) == pytest.approx([-0.3 / std, -0.1 / std, 0.4 / std], rel=1e-4)
    assert numbers(GRPO(kl="none", scale_by_std=False)) == pytest.approx([-0.3, -0.1, 0.4], rel=1e-5)
    # Others' means 0.65, 0.55, 0.3.
    assert numbers(RLOO(kl="none")) == pytest.approx([-0.45, -0.15, 0.6], rel=1e-5)
    # Population variance 0.26 / 3.
    std = math.sqrt(0.26 / 3)
    assert numbers(ReinforcePPBaseline(kl="none")) == pytest.approx([-0.3 / std, -0.1 / std, 0.4 / std], rel=1e-4)


def test_rloo_keeps_later_actions_of_the_same_episode_out_of_the_baseline() -> None:
    # Episode 0 acts twice (0.0, 1.0), episode 1 once (0.5). Baselines: 0.5, 0.5 and (0 + 1) / 2.
    rows = [make_row(0.0, turn=0), make_row(1.0, turn=1), make_row(0.5, turn=0, episode=1)]
    got = RLOO(kl="none", scope="group_agent").advantages(TokenBatch.from_rows(rows))
    assert got[:, 0].tolist() == pytest.approx([-0.5, 0.5, 0.0])


def test_dr_mas_can_count_each_episode_once() -> None:
    # Episode 0: 0.0 and 0.2 (mean 0.1), episode 1: 0.7.
    # By action: mean 0.3, variance (0.09 + 0.01 + 0.16) / 2. By episode: mean 0.4, variance (0.09 + 0.09) / 1.
    rows = [make_row(0.0, turn=0), make_row(0.2, turn=1), make_row(0.7, turn=0, episode=1)]
    batch = TokenBatch.from_rows(rows)
    by_action = DrMAS(kl="none").advantages(batch)[:, 0].tolist()
    by_episode = DrMAS(kl="none", unit="episode").advantages(batch)[:, 0].tolist()
    std = math.sqrt(0.13)
    assert by_action == pytest.approx([-0.3 / std, -0.1 / std, 0.4 / std], rel=1e-4)
    std = math.sqrt(0.18)
    assert by_episode == pytest.approx([-0.4 / std, -0.2 / std, 0.3 / std], rel=1e-4)


def test_dr_mas_by_episode_leaves_failed_actions_out_and_needs_two_episodes() -> None:
    # Task 0 as above, with a failed first action in episode 1. Task 1: all actions of its second episode failed.
    rows = [
        make_row(0.0, turn=0),
        make_row(0.2, turn=1),
        make_row(1.0, turn=0, episode=1, status="failed"),
        make_row(0.7, turn=1, episode=1),
        *(make_row(reward, turn=turn, episode=2, group=1) for turn, reward in enumerate((0.1, 0.9))),
        make_row(0.5, episode=3, group=1, status="failed"),
    ]
    got = DrMAS(kl="none", unit="episode").advantages(TokenBatch.from_rows(rows))[:, 0].tolist()
    std = math.sqrt(0.18)
    assert got == pytest.approx([-0.4 / std, -0.2 / std, 0, 0.3 / std, 0, 0, 0], rel=1e-4)


def test_reinforce_pp_discounts_within_the_action() -> None:
    got = ReinforcePP(kl="none", scope=None, gamma=0.5).advantages(TokenBatch.from_rows([make_row(0.8, 3)]))
    assert got[0].tolist() == pytest.approx([0.2, 0.4, 0.8])


def test_the_agent_scope_does_not_reward_an_agent_for_having_the_kinder_judge() -> None:
    rows = [make_row(r, agent="solver_0") for r in (0.7, 0.9)]
    rows += [make_row(r, agent="coder_0") for r in (0.1, 0.3)]
    batch = TokenBatch.from_rows(rows)
    by_agent = ReinforcePP(kl="none").advantages(batch)[:, 0]
    by_team = ReinforcePP(kl="none", scope="team").advantages(batch)[:, 0]
    assert by_agent.tolist() == pytest.approx([-1, 1, -1, 1], rel=1e-5)
    assert by_team[:2].min() > 0 > by_team[2:].max()


def test_rewards_can_be_the_outcome_instead_of_the_verdicts() -> None:
    rows = [make_row(0.3, outcome=1.0), make_row(0.9, outcome=0.0)]
    batch = TokenBatch.from_rows(rows, rewards=[row.outcome for row in rows])
    assert ReinforcePP(kl="none").advantages(batch)[:, 0].tolist() == pytest.approx([1, -1])


# --- what must hold for every algorithm ---


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
        (ReinforcePP, {"scope": "agents"}, r"(?s)'scope' is wrong.*got: 'agents'.*did you mean 'agent'"),
        (ReinforcePP, {"kl_coef": -1}, r"(?s)'kl_coef'.*greater than or equal to 0"),
        (ReinforcePP, {"kl_coef": True}, r"(?s)'kl_coef'.*valid number"),
        (ReinforcePP, {"clip": 0}, r"(?s)'clip'.*greater than 0"),
        (GRPO, {"scope": "agent"}, r"(?s)'scope'.*'group_agent_call'"),
        (DrMAS, {"unit": "turn"}, r"(?s)'unit'.*'action' or 'episode'"),
        (ReinforcePP, {"kl_coef": math.nan}, r"(?s)'kl_coef'.*finite"),
    ],
)
def test_wrong_settings_are_named(kind: type[Algorithm], settings_: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        kind(**settings_)
