"""What an algorithm is: advantages for a batch, and a loss for any part of it.

```python
class Reinforce(Algorithm):
    baseline: float = 0.5

    def advantages(self, batch):
        return self.finish(spread(batch.rewards - self.baseline, batch.mask), batch)
```
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from mappa_rl.algorithms.batch import TokenBatch, check_shape
from mappa_rl.algorithms.errors import AlgorithmError
from mappa_rl.algorithms.losses import KL, k1, k2, k3, ppo_clip
from mappa_rl.config.errors import explain


@dataclass(frozen=True, eq=False)
class LossOutput:
    """The loss of a part of a batch."""

    loss: Tensor
    """Scalar. Summed over the parts and the processes it is the loss of the optimiser step."""
    metrics: dict[str, float]
    """Sums over tokens; add them up over parts and divide by `tokens`."""


class Algorithm(BaseModel, ABC):
    """Settings plus two methods. A subclass declares its settings as fields and gives `advantages`.

    Raises:
        ConfigError: If a setting is unknown or out of range.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    kl: KL = "k1_reward"
    """Where the KL penalty against the reference goes; see `mappa_rl.algorithms.losses.KL`."""
    kl_coef: float = Field(default=0.01, ge=0, strict=True)
    """Weight of the KL penalty (beta)."""
    clip: float = Field(default=0.2, gt=0, lt=1, strict=True)
    """The ratio to the sampling policy is clipped at 1 - clip."""
    clip_high: float | None = Field(default=None, gt=0, strict=True)
    """The ratio is clipped at 1 + clip_high; null: the same as `clip`."""

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise explain(error, type(self), settings, what=type(self).__name__) from None

    @property
    def needs_reference(self) -> bool:
        """Whether the batch must carry reference log-probabilities."""
        return self.kl != "none" and self.kl_coef > 0

    @property
    def needs_values(self) -> bool:
        """Whether learners need value heads and the batch their values."""
        return False

    @abstractmethod
    def advantages(self, batch: TokenBatch) -> Tensor:
        """Return advantages `[rows, tokens]`: float32, batch's device, exactly 0 where not `batch.mask`.

        Called once per batch, before any update, with all rows of whole episodes; equally often on every
        process.

        Args:
            batch: All rows of one agent or of the whole team.

        Raises:
            AlgorithmError: If the batch does not fit, e.g. lacks the reference or group members.
        """

    def loss(self, logprobs: Tensor, batch_slice: TokenBatch, advantages: Tensor, *, total_tokens: int) -> LossOutput:
        """Return the clipped policy loss plus a KL loss: the sum over tokens divided by `total_tokens`.

        Dividing by the tokens of the whole optimiser step makes the gradient independent of how the step is
        cut into micro-batches and spread over processes (gradients are to be summed over both, not averaged).

        Args:
            logprobs: `[rows, tokens]` of the policy, with gradient.
            batch_slice: The rows, e.g. `batch.select(indices)`.
            advantages: `[rows, tokens]`, e.g. `batch.take(advantages, indices)`.
            total_tokens: `total_tokens()` of all rows of the optimiser step.

        Raises:
            AlgorithmError: If shapes differ, the reference is missing or `total_tokens` is below the slice's.
        """
        mask = batch_slice.mask
        check_shape("logprobs", logprobs, tuple(mask.shape))
        check_shape("advantages", advantages, tuple(mask.shape))
        current, old = logprobs[mask].float(), batch_slice.old_logprobs[mask]
        if total_tokens < max(1, current.numel()):
            raise AlgorithmError(
                "total_tokens is too small",
                expected=f"the tokens of the whole optimiser step, at least {max(1, current.numel())}",
                got=str(total_tokens),
                fix="pass total_tokens() of the batch that holds all rows of the step",
            )
        high = self.clip if self.clip_high is None else self.clip_high
        policy_loss, clipped = ppo_clip(current, old, advantages[mask], self.clip, high)
        per_token, sums = policy_loss, {"policy_loss": policy_loss, "clipped": clipped}
        sums["kl_old"] = k3(old, current)
        if batch_slice.ref_logprobs is not None:
            reference = batch_slice.ref_logprobs[mask]
            sums["kl_reference"] = k1(current, reference)
        if self.needs_reference and self.kl in ("k2_loss", "k3_loss"):
            reference = self.reference(batch_slice)[mask]
            kl_loss = self.kl_coef * (k2 if self.kl == "k2_loss" else k3)(current, reference)
            per_token, sums["kl_loss"] = per_token + kl_loss, kl_loss
        numbers = torch.stack([value.detach().float().sum() for value in sums.values()]).tolist()
        metrics = {"tokens": float(current.numel()), **dict(zip(sums, numbers, strict=True))}
        return LossOutput(per_token.sum() / total_tokens, metrics)

    def value_loss(self, values: Tensor, batch_slice: TokenBatch, *, total_tokens: int) -> LossOutput:
        """Return the loss of the value heads, to be added to `loss`; called only where `needs_values`.

        Args:
            values: `[rows, tokens]` of the value head, with gradient.
            batch_slice: The rows; `batch_slice.values` are those from before the update.
            total_tokens: `total_tokens()` of all rows of the optimiser step.
        """
        raise NotImplementedError(f"{type(self).__name__} needs values and has no value_loss")

    def reference(self, batch: TokenBatch) -> Tensor:
        """Return the batch's reference log-probabilities.

        Raises:
            AlgorithmError: If it has none.
        """
        if batch.ref_logprobs is None:
            raise AlgorithmError(
                f"{type(self).__name__} needs the reference's log-probabilities",
                expected="batch.ref_logprobs, because needs_reference is True",
                got="None",
                fix="use batch.with_reference(...), or set kl to 'none'",
            )
        return batch.ref_logprobs

    def token_penalty(self, batch: TokenBatch) -> Tensor | None:
        """Return beta * k1 `[rows, tokens]` (float64, CPU) where the KL is part of the reward, else None."""
        if self.kl != "k1_reward" or not self.needs_reference:
            return None
        reference = self.reference(batch).cpu().double()
        return self.kl_coef * k1(batch.old_logprobs.cpu().double(), reference)

    def row_rewards(self, batch: TokenBatch) -> Tensor:
        """Return rewards `[rows]` (float32, CPU), less beta * k1 over the response for `k1_reward`."""
        penalty, rewards = self.token_penalty(batch), batch.rewards.cpu()
        if penalty is None:
            return rewards
        return (rewards.double() - torch.where(batch.mask.cpu(), penalty, 0.0).sum(1)).float()

    def finish(self, advantages: Tensor, batch: TokenBatch) -> Tensor:
        """Return advantages as float32 on the batch's device, 0 where masked.

        Raises:
            AlgorithmError: If one is not finite.
        """
        result = advantages.detach().float().to(batch.mask.device)
        result = torch.where(batch.mask, result, torch.zeros((), device=batch.mask.device))
        if not bool(result.isfinite().all()):
            rows = sorted({int(i) for i in (~result.isfinite()).nonzero()[:, 0]})
            raise AlgorithmError(
                f"{type(self).__name__} gave advantages that are not finite",
                expected="finite numbers",
                got=f"NaN or infinity in rows {rows[:8]}",
                fix="check rewards and reference log-probabilities of those rows",
            )
        return result
