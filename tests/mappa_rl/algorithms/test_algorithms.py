"""Advantages against slow, independent implementations and hand-computed numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from row_cases import ALGORITHMS, KLS, batches, make_row

from mappa_rl.algorithms import GRPO, RLOO, Algorithm, DrMAS, ReinforcePP, ReinforcePPBaseline, TokenBatch
from mappa_rl.algorithms.losses import KL
from mappa_rl.rollout.row import Row

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
    got = RLOO(kl="none", baseline_scope="group_agent").advantages(TokenBatch.from_rows(rows))
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
    got = ReinforcePP(kl="none", norm_scope=None, gamma=0.5).advantages(TokenBatch.from_rows([make_row(0.8, 3)]))
    assert got[0].tolist() == pytest.approx([0.2, 0.4, 0.8])


def test_the_agent_scope_does_not_reward_an_agent_for_having_the_kinder_judge() -> None:
    rows = [make_row(r, agent="solver_0") for r in (0.7, 0.9)]
    rows += [make_row(r, agent="coder_0") for r in (0.1, 0.3)]
    batch = TokenBatch.from_rows(rows)
    by_agent = ReinforcePP(kl="none").advantages(batch)[:, 0]
    by_team = ReinforcePP(kl="none", norm_scope="team").advantages(batch)[:, 0]
    assert by_agent.tolist() == pytest.approx([-1, 1, -1, 1], rel=1e-5)
    assert by_team[:2].min() > 0 > by_team[2:].max()


def test_rewards_can_be_the_outcome_instead_of_the_verdicts() -> None:
    rows = [make_row(0.3, outcome=1.0), make_row(0.9, outcome=0.0)]
    batch = TokenBatch.from_rows(rows, rewards=[row.outcome for row in rows])
    assert ReinforcePP(kl="none").advantages(batch)[:, 0].tolist() == pytest.approx([1, -1])


def test_grpo_compares_within_the_scope_that_is_set() -> None:
    # One task, two episodes; the solver got 0 and 1, the coder 0.5 twice. Within each agent the coder's differences
    # are 0; over the whole group the mean is 0.5, so they are 0 too, and the solver's 0.5 over std sqrt(0.5 / 3).
    rows = [make_row(r, episode=e, turn=0) for e, r in enumerate((0.0, 1.0))]
    rows += [make_row(0.5, episode=e, turn=1, agent="coder_0") for e in (0, 1)]
    batch = TokenBatch.from_rows(rows)
    for scope, std in (("group_agent", math.sqrt(0.5)), ("group", math.sqrt(0.5 / 3))):
        got = GRPO(kl="none", norm_scope=scope).advantages(batch)[:, 0].tolist()
        assert got == pytest.approx([-0.5 / std, 0.5 / std, 0, 0], rel=1e-4)
    agent_wise = GRPO(kl="none", norm_scope="group_agent").advantages(batch)
    assert torch.allclose(agent_wise, DrMAS(kl="none").advantages(batch))


def test_reinforce_pp_can_normalise_per_agent_and_task_kind() -> None:
    # A judge that is kinder to one kind of task teaches nothing about the others: rewards 0.8, 1.0 and 0.1, 0.3.
    rows = [make_row(r, kind="regression") for r in (0.8, 1.0)] + [make_row(r, kind="classes") for r in (0.1, 0.3)]
    batch = TokenBatch.from_rows(rows)
    by_kind = ReinforcePP(kl="none", norm_scope="agent_kind").advantages(batch)[:, 0].tolist()
    assert by_kind == pytest.approx([-1, 1, -1, 1], rel=1e-5)
    assert min(ReinforcePP(kl="none").advantages(batch)[:2, 0].tolist()) > 0
