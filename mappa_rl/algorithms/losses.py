"""Per-token losses: pure functions on tensors of one shape; callers pass sampled tokens only."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

KL = Literal["none", "k1_reward", "k2_loss", "k3_loss"]
"""Where the KL penalty against the reference goes.

`k1_reward`: beta * k1 is subtracted from the reward of each token; the policy gradient of that is the
gradient of the reverse KL. `k2_loss`: beta * k2 is added to the loss; its gradient on fresh samples is the
same reverse KL gradient. `k3_loss`: beta * k3 is added to the loss, as GRPO does; its *value* estimates the
reverse KL, its gradient on fresh samples is that of the forward KL. (k1 in the loss is no choice: its
gradient is 0 in expectation.)
"""

_MAX_LOG_RATIO = 20.0  # exp() of more is inf in float32 at 88, and inf * 0 is a NaN that kills the run


def log_ratio(logprobs: Tensor, other: Tensor) -> Tensor:
    """Return `log p - log q`, clamped to +-20 nats; beyond that its gradient is 0."""
    return (logprobs - other).clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO)


def ppo_clip(
    logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, clip_low: float, clip_high: float
) -> tuple[Tensor, Tensor]:
    """Return the clipped surrogate loss per token and where the clip is active.

    `-min(w A, clip(w, 1 - clip_low, 1 + clip_high) A)`, `w = p / p_old` (PPO, arXiv 1707.06347, equation 7;
    separate bounds as in DAPO, arXiv 2503.14476).
    """
    ratio = log_ratio(logprobs, old_logprobs).exp()
    plain = ratio * advantages
    clipped = ratio.clamp(1 - clip_low, 1 + clip_high) * advantages
    return -torch.minimum(plain, clipped), clipped < plain


def k1(logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """Return `log p - log q`, unbiased for KL(p || q) on samples of p.

    Source of k1, k2 and k3: J. Schulman, "Approximating KL Divergence", 2020.
    """
    return logprobs - ref_logprobs


def k2(logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """Return `(log p - log q)^2 / 2`: biased value, unbiased gradient of KL(p || q) on samples of p."""
    return (logprobs - ref_logprobs).square() / 2


def k3(logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """Return `q/p - 1 - log(q/p)`: unbiased for KL(p || q) on samples of p and never negative."""
    r = log_ratio(ref_logprobs, logprobs)
    return r.exp() - 1 - r
