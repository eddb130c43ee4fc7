from __future__ import annotations

import math

import pytest
import torch
from row_cases import make_row
from torch import Tensor

from mappa_rl.algorithms import ReinforcePP, TokenBatch
from mappa_rl.algorithms.losses import KL, k1, k2, k3, ppo_clip
from mappa_rl.rollout.row import Row


def logs(*probabilities: float) -> Tensor:
    return torch.tensor(probabilities).log()


def test_ppo_clip_gives_the_hand_computed_numbers() -> None:
    # Ratios 1.5, 0.5, 1.5, 0.5, 1.1 with advantages 2, 2, -2, -2, 1 and bounds 0.8, 1.2:
    # A > 0: min(3, 2.4) = 2.4 clipped, min(1, 1.6) = 1; A < 0: min(-3, -2.4) = -3, min(-1, -1.6) = -1.6 clipped.
    old = logs(0.4, 0.4, 0.4, 0.4, 0.5)
    new = logs(0.6, 0.2, 0.6, 0.2, 0.55)
    loss, clipped = ppo_clip(new, old, torch.tensor([2.0, 2.0, -2.0, -2.0, 1.0]), 0.2, 0.2)
    assert loss.tolist() == pytest.approx([-2.4, -1.0, 3.0, 1.6, -1.1], rel=1e-5)
    assert clipped.tolist() == [True, False, False, True, False]


def test_the_upper_clip_bound_is_its_own() -> None:
    loss, _ = ppo_clip(logs(0.6), logs(0.4), torch.tensor([1.0]), 0.2, 0.28)
    assert loss.tolist() == pytest.approx([-1.28])


def test_clipped_tokens_have_no_gradient_and_the_others_minus_ratio_times_advantage() -> None:
    new = logs(0.6, 0.44).requires_grad_()
    loss, _ = ppo_clip(new, logs(0.4, 0.4), torch.tensor([2.0, 2.0]), 0.2, 0.2)
    (gradient,) = torch.autograd.grad(loss.sum(), new)
    assert gradient.tolist() == pytest.approx([0.0, -1.1 * 2])


def test_a_huge_ratio_stays_finite() -> None:
    new = torch.tensor([0.0, -500.0], requires_grad=True)
    old = torch.tensor([-500.0, 0.0])
    loss, _ = ppo_clip(new, old, torch.tensor([-1.0, 0.0]), 0.2, 0.2)
    (gradient,) = torch.autograd.grad((loss + k3(new, old)).sum(), new)
    assert loss.isfinite().all() and gradient.isfinite().all()


def test_the_estimators_give_the_hand_computed_numbers() -> None:
    # p = 0.5, q = 0.25: log p/q = ln 2; k2 = ln^2 2 / 2; k3 = 1/2 - 1 + ln 2.
    p, q, ln2 = logs(0.5), logs(0.25), math.log(2)
    assert k1(p, q).item() == pytest.approx(ln2)
    assert k2(p, q).item() == pytest.approx(ln2**2 / 2)
    assert k3(p, q).item() == pytest.approx(ln2 - 0.5, rel=1e-5)


def test_k1_and_k3_have_the_kl_as_their_mean() -> None:
    p, q = torch.tensor([0.7, 0.3]), torch.tensor([0.4, 0.6])
    exact = float((p * (p / q).log()).sum())
    for estimator in (k1, k3):
        assert float((p * estimator(p.log(), q.log())).sum()) == pytest.approx(exact, rel=1e-5)


# A policy that writes two tokens of a vocabulary of two; the second depends on the first. Its probabilities are
# multiples of 1/16 so that 16 responses hold each of the 4 texts exactly as often as it is likely: means over them are
# exact expectations.
THETA = [math.log(3.0), 0.0, -math.log(3.0)]  # logits of token 0: first, second after 0, second after 1
COUNTS = {(0, 0): 6, (0, 1): 6, (1, 0): 1, (1, 1): 3}
REFERENCE = {0: (0.3, 0.7), 1: (0.6, 0.4), 2: (0.2, 0.8)}  # state -> probabilities


def step_logprobs(theta: Tensor, text: tuple[int, int]) -> Tensor:
    states = (0, 1 + text[0])
    return torch.stack(
        [torch.nn.functional.logsigmoid(theta[s] * (1 - 2 * t)) for s, t in zip(states, text, strict=True)]
    )


def reference_logprobs(text: tuple[int, int]) -> list[float]:
    return [math.log(REFERENCE[0][text[0]]), math.log(REFERENCE[1 + text[0]][text[1]])]


def toy_gradient(kl: KL, beta: float) -> list[float]:
    theta = torch.tensor(THETA, requires_grad=True)
    texts = [text for text, count in COUNTS.items() for _ in range(count)]
    rows: list[Row] = [
        make_row(0.0, response_ids=text, logprobs=tuple(step_logprobs(theta.detach(), text).tolist())) for text in texts
    ]
    reference = torch.tensor([reference_logprobs(text) for text in texts])
    batch = TokenBatch.from_rows(rows, ref_logprobs=reference)
    algorithm = ReinforcePP(kl=kl, kl_coef=beta, norm_scope=None)
    current = torch.stack([step_logprobs(theta, text) for text in texts])
    output = algorithm.loss(current, batch, algorithm.advantages(batch), total_tokens=batch.total_tokens())
    output.loss.backward()
    assert theta.grad is not None
    return theta.grad.tolist()


def exact_gradient(beta: float) -> list[float]:
    """Gradient of beta * KL(policy || reference) over whole texts, per token (2 per text)."""
    theta = torch.tensor(THETA, dtype=torch.float64, requires_grad=True)
    divergence = torch.zeros((), dtype=torch.float64)
    for text in COUNTS:
        logp = step_logprobs(theta, text).sum()
        divergence = divergence + logp.exp() * (logp - sum(reference_logprobs(text)))
    (beta * divergence / 2).backward()
    assert theta.grad is not None
    return theta.grad.tolist()


def test_k1_in_the_reward_has_the_gradient_of_the_reverse_kl() -> None:
    assert toy_gradient("k1_reward", 0.5) == pytest.approx(exact_gradient(0.5), rel=1e-4, abs=1e-6)


def test_k2_in_the_loss_has_the_per_token_gradient_of_the_reverse_kl() -> None:
    # A loss on each token holds the texts so far fixed: of the exact gradient it has
    # p(state) * d/dtheta KL(state), for one logit p0 p1 (log p0/q0 - log p1/q1).
    expected = []
    for state, reach in ((0, 1.0), (1, 0.75), (2, 0.25)):
        p = 1 / (1 + math.exp(-THETA[state]))
        q = REFERENCE[state][0]
        expected.append(0.5 * reach * p * (1 - p) * (math.log(p / q) - math.log((1 - p) / (1 - q))) / 2)
    assert toy_gradient("k2_loss", 0.5) == pytest.approx(expected, rel=1e-4)


def test_k3_in_the_loss_has_the_gradient_of_the_forward_kl() -> None:
    # d/dtheta KL(q || p) = p0 - q0 for the logit of token 0.
    expected = []
    for state, reach in ((0, 1.0), (1, 0.75), (2, 0.25)):
        p = 1 / (1 + math.exp(-THETA[state]))
        expected.append(0.5 * reach * (p - REFERENCE[state][0]) / 2)
    assert toy_gradient("k3_loss", 0.5) == pytest.approx(expected, rel=1e-4)


def test_without_kl_and_reward_there_is_no_gradient() -> None:
    assert toy_gradient("none", 0.5) == [0, 0, 0] == toy_gradient("k1_reward", 0.0)
