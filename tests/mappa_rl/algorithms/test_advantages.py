from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from row_cases import make_row, team_rows
from torch import Tensor

from mappa_rl.algorithms.advantages import (
    Scope,
    normalise,
    returns_to_go,
    scope_keys,
    spread,
    token_rewards,
)


def bools(*rows: list[int]) -> Tensor:
    return torch.tensor(rows, dtype=torch.bool)


@st.composite
def masked_values(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    rows, tokens = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    size = rows * tokens
    values = draw(st.lists(st.floats(-10, 10, width=32), min_size=size, max_size=size))
    mask = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    return torch.tensor(values).view(rows, tokens), torch.tensor(mask).view(rows, tokens)


def test_the_reward_lands_on_the_last_sampled_token_not_on_the_last_position() -> None:
    mask = bools([1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0])
    placed = token_rewards(torch.tensor([0.5, 1.0, 9.0]), mask)
    assert placed.tolist() == [[0, 0.5, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]


def test_the_penalty_is_subtracted_from_every_sampled_token() -> None:
    mask = bools([1, 1, 0])
    placed = token_rewards(torch.tensor([1.0]), mask, torch.tensor([[0.25, 0.5, math.nan]]))
    assert placed.tolist() == [[-0.25, 0.5, 0]]


def test_returns_pass_over_tokens_that_were_not_sampled() -> None:
    # verl 7278: the sum was reset at every mask=0 token, so that actions before an observation got 0.
    mask = bools([1, 1, 0, 0, 1, 1])
    rewards = token_rewards(torch.tensor([1.0]), mask)
    assert returns_to_go(rewards, mask).tolist() == [[1, 1, 0, 0, 1, 1]]


def test_gamma_ticks_on_sampled_tokens_only() -> None:
    mask = bools([1, 0, 1])
    # The token before the gap is one sampled token away from the reward: 0.5 ^ 1.
    assert returns_to_go(torch.tensor([[0.0, 0.0, 1.0]]), mask, gamma=0.5).tolist() == [[0.5, 0, 1]]


def test_padding_does_not_leak_into_the_discounted_sum() -> None:
    # trl 7024: rewards 1.5 and 1 on sampled tokens, 2 and 2 on padding.
    rewards, mask = torch.tensor([[1.5, 1.0, 2.0, 2.0]]), bools([1, 1, 0, 0])
    assert returns_to_go(rewards, mask).tolist() == [[2.5, 1, 0, 0]]
    # 1.5 + 0.5 * 1
    assert returns_to_go(rewards, mask, gamma=0.5).tolist() == [[2, 1, 0, 0]]


@given(masked_values(), st.sampled_from([1.0, 0.9, 0.0]))
def test_returns_equal_the_double_loop_over_sampled_tokens(case: tuple[Tensor, Tensor], gamma: float) -> None:
    rewards, mask = case
    got = returns_to_go(rewards, mask, gamma)
    for i in range(len(mask)):
        at = [t for t in range(mask.shape[1]) if mask[i, t]]
        for n, t in enumerate(at):
            expected = sum(gamma**k * float(rewards[i, s]) for k, s in enumerate(at[n:]))
            assert float(got[i, t]) == pytest.approx(expected, abs=1e-5)
    assert (got[~mask] == 0).all()


def test_normalise_gives_the_hand_computed_numbers() -> None:
    # Key a holds 1, 3, 5 and 7: mean 4, population variance (9 + 1 + 1 + 9) / 4 = 5.
    # Key b holds 2 and 4: mean 3, population variance 1.
    values = torch.tensor([[1.0, 3.0, 99.0], [2.0, 4.0, 99.0], [5.0, 7.0, 99.0]])
    mask = bools([1, 1, 0], [1, 1, 0], [1, 1, 0])
    got = normalise(values, mask, ["a", "b", "a"])
    root = math.sqrt(5)
    expected = [[-3 / root, -1 / root, 0], [-1, 1, 0], [1 / root, 3 / root, 0]]
    assert got.numpy() == pytest.approx(torch.tensor(expected).numpy(), abs=1e-6)


def test_a_tiny_variance_is_floored_and_not_blown_up() -> None:
    # Deviation 1e-5, variance 1e-10 < 1e-8: 1e-5 / sqrt(1e-8) = 0.1.
    values = torch.tensor([[0.0, 2e-5]])
    assert normalise(values, bools([1, 1]), ["a"])[0].tolist() == pytest.approx([-0.1, 0.1], rel=1e-4)


@given(masked_values())
def test_normalised_tokens_have_mean_0_and_std_1(case: tuple[Tensor, Tensor]) -> None:
    values, mask = case
    inside = normalise(values, mask, ["all"] * len(mask))[mask].double()
    if len(inside) == 0:
        return
    assert float(inside.mean()) == pytest.approx(0, abs=1e-5)
    variance = float(values[mask].double().var(correction=0))
    expected = math.sqrt(variance / max(variance, 1e-8))
    assert float(inside.std(correction=0)) == pytest.approx(expected, abs=1e-4)


@given(masked_values())
def test_normalising_twice_changes_nothing_and_garbage_in_padding_neither(
    case: tuple[Tensor, Tensor],
) -> None:
    values, mask = case
    keys = ["all"] * len(mask)
    clean = normalise(values, mask, keys)
    for garbage in (0.0, 1e30, math.nan, math.inf):
        dirty = torch.where(mask, values, torch.tensor(garbage))
        wide = torch.cat([dirty, torch.full((len(mask), 2), garbage)], dim=1)
        wide_mask = torch.cat([mask, torch.zeros(len(mask), 2, dtype=torch.bool)], dim=1)
        assert torch.equal(normalise(dirty, mask, keys), clean)
        assert torch.equal(normalise(wide, wide_mask, keys)[:, : mask.shape[1]], clean)
    if mask.any() and float(values[mask].double().var(correction=0)) > 1e-4:
        again = normalise(torch.where(mask, clean, math.nan), mask, keys)
        assert torch.allclose(again, clean, atol=1e-4)


@given(st.floats(-10, 10), st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_equal_values_normalise_to_exactly_0(value: float, lengths: list[int]) -> None:
    mask = torch.arange(max(lengths) or 1)[None] < torch.tensor(lengths)[:, None]
    got = normalise(torch.full(mask.shape, value), mask, ["all"] * len(lengths))
    assert (got == 0).all()


def test_a_single_token_and_an_empty_batch_normalise_to_0() -> None:
    assert normalise(torch.tensor([[5.0, math.nan]]), bools([1, 0]), ["a"]).tolist() == [[0, 0]]
    nothing = torch.zeros(2, 3, dtype=torch.bool)
    assert normalise(torch.zeros(2, 3), nothing, ["a", "b"]).tolist() == [[0] * 3] * 2
    assert normalise(torch.zeros(0, 3), nothing[:0], []).shape == (0, 3)


def test_rows_and_tokens_are_not_mixed_up_when_their_numbers_differ() -> None:
    # OpenRLHF 1250: statistics were broadcast along the wrong axis. 2 rows x 3 tokens, one key per row:
    # row 0 is 1, 2, 3 (variance 2/3), row 1 is constant.
    values = torch.tensor([[1.0, 2.0, 3.0], [7.0, 7.0, 7.0]])
    got = normalise(values, bools([1, 1, 1], [1, 1, 1]), [0, 1])
    step = math.sqrt(3 / 2)
    assert got[0].tolist() == pytest.approx([-step, 0, step]) and got[1].tolist() == [0, 0, 0]


def test_spread_gives_a_row_its_value_on_every_sampled_token() -> None:
    assert spread(torch.tensor([2.0, math.nan]), bools([1, 1, 0], [0, 0, 0])).tolist() == [[2, 2, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("agent", ["s", "c", "c"]),
        ("team", ["team"] * 3),
        ("agent_kind", [("s", "algebra"), ("c", "algebra"), ("c", "algebra")]),
        ("group", [4, 4, 4]),
        ("group_agent", [(4, "s"), (4, "c"), (4, "c")]),
        ("group_agent_call", [(4, "s", 0), (4, "c", 0), (4, "c", 1)]),
    ],
)
def test_each_scope_keys_rows_as_documented(scope: Scope, expected: list[object]) -> None:
    rows = [make_row(agent="s", turn=0, group=4), *(make_row(agent="c", turn=t, group=4) for t in (1, 2))]
    assert scope_keys(rows, scope) == expected


def test_calls_are_numbered_per_agent_and_episode_whatever_the_order_of_rows() -> None:
    rows = team_rows()
    forward = scope_keys(rows, "group_agent_call")
    assert scope_keys(rows[::-1], "group_agent_call") == forward[::-1]
    # The verifier of an episode with a longer way to it still has its first call.
    late = [make_row(agent="verifier_0", turn=3, episode=0), make_row(agent="verifier_0", turn=2, episode=1)]
    assert scope_keys(late, "group_agent_call") == [(0, "verifier_0", 0)] * 2
