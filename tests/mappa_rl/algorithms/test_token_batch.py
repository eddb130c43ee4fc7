from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from row_cases import make_row, team_batch, team_rows

from mappa_rl.algorithms import AlgorithmError, TokenBatch


def test_rows_are_padded_on_the_right_and_only_trainable_tokens_are_masked_in() -> None:
    failed, cut = make_row(0.1, 3, status="failed"), make_row(0.2, 1, truncated=True)
    batch = TokenBatch.from_rows([make_row(0.5, 2), failed, cut, make_row(1.0, 1)])
    assert batch.mask.tolist() == [[True, True, False], [False] * 3, [False] * 3, [True, False, False]]
    assert batch.old_logprobs[0].tolist() == [-0.5, -0.75, 0.0]
    assert batch.rewards.tolist() == pytest.approx([0.5, 0.1, 0.2, 1.0])
    assert batch.tokens == batch.total_tokens() == 3


def test_selecting_rows_cuts_every_tensor_to_their_longest_response() -> None:
    batch = team_batch([make_row(0.1, 4), make_row(0.2, 2), make_row(0.3, 1)])
    part = batch.select([2, 1])
    assert part.rows == (batch.rows[2], batch.rows[1])
    assert part.mask.tolist() == [[True, False], [True, True]]
    assert part.rewards.tolist() == pytest.approx([0.3, 0.2])
    assert part.ref_logprobs is not None and batch.ref_logprobs is not None
    assert torch.equal(part.ref_logprobs, batch.ref_logprobs[[2, 1], :2])
    assert torch.equal(batch.take(batch.old_logprobs, [2, 1]), part.old_logprobs)


def test_a_failed_row_may_hold_any_reward_and_a_trainable_one_may_not() -> None:
    failed = make_row(math.nan, status="failed")
    assert TokenBatch.from_rows([failed]).tokens == 0
    with pytest.raises(AlgorithmError, match=r"(?s)row 1 \(solver_0\) is not finite.*reward nan"):
        TokenBatch.from_rows([make_row(), replace(failed, status="ok")])
    with pytest.raises(AlgorithmError, match="lowest log-probability -inf"):
        TokenBatch.from_rows([make_row(logprobs=(-math.inf,))])


@pytest.mark.parametrize("row", [make_row(response_ids=()), make_row(tokens=2, logprobs=(-1.0,))])
def test_a_row_without_tokens_or_log_probabilities_is_refused(row: object) -> None:
    with pytest.raises(AlgorithmError, match=r"(?s)row 0.*cannot be trained on.*log-probabilities"):
        TokenBatch.from_rows([row])  # type: ignore[list-item]


def test_tensors_of_another_shape_are_refused() -> None:
    batch = TokenBatch.from_rows(team_rows())
    with pytest.raises(AlgorithmError, match="ref_logprobs does not fit"):
        batch.with_reference(torch.zeros(1, 1))
    with pytest.raises(AlgorithmError, match="old_logprobs does not fit"):
        replace(batch, old_logprobs=batch.old_logprobs.T)
    with pytest.raises(AlgorithmError, match="one reward per row"):
        TokenBatch.from_rows(team_rows(), rewards=[1.0])
