"""PPO with a value head on the learner's own model."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from mappa_rl.algorithms.advantages import Scope, gae, normalise, scope_keys, token_rewards
from mappa_rl.algorithms.base import Algorithm, LossOutput
from mappa_rl.algorithms.batch import TokenBatch, check_shape
from mappa_rl.algorithms.errors import AlgorithmError


class PPO(Algorithm):
    """PPO (arXiv 1707.06347) with generalised advantage estimation (arXiv 1506.02438) within each action.

    For action i with reward r_i, sampled tokens t = 1..T and V_t the value head's value of the state before token t
    (V_{T+1} = 0: an action is judged in context, on its own, and so is an episode of its own):

        rho_t   = r_i [t = T] - beta (log p_old(t) - log p_ref(t))
        delta_t = rho_t + gamma V_{t+1} - V_t
        A_t     = sum_{k >= 0} (gamma lambda)^k delta_{t+k}            (GAE, equation 16)
        R_t     = A_t + V_t

    A is normalised over the tokens of the scope. With V' the values during the update (equation 9 without the entropy
    term; the value clip is that of the public implementations):

        L = L_clip + c / 2 * max((V'_t - R_t)^2, (clip(V'_t, V_t - e, V_t + e) - R_t)^2)

    The value head is a linear map from the last hidden state under the learner's own weights and starts at 0, so at
    the first step A is the discounted return-to-go.
    """

    norm_scope: Scope | None = "agent"
    """Rows that are normalised together; null: no normalisation."""
    gamma: float = Field(default=1.0, ge=0, le=1, strict=True)
    """Discount per token within the action."""
    gae_lambda: float = Field(default=0.95, ge=0, le=1, strict=True)
    """Weight of later errors: 1 trusts the reward, 0 the value head."""
    value_coef: float = Field(default=0.1, ge=0, strict=True)
    """Weight of the value loss (c)."""
    value_clip: float | None = Field(default=0.2, gt=0, strict=True)
    """Values move at most so far per training step (e); null: freely."""

    @property
    def needs_values(self) -> bool:
        """Whether learners need value heads: they do."""
        return True

    def advantages(self, batch: TokenBatch) -> Tensor:
        """Return normalised generalised advantages."""
        result = self._gae(batch)
        if self.norm_scope is not None:
            result = normalise(result, batch.mask, scope_keys(batch.rows, self.norm_scope), batch.reduce)
        return self.finish(result, batch)

    def value_loss(self, values: Tensor, batch_slice: TokenBatch, *, total_tokens: int) -> LossOutput:
        """Return the clipped squared error of the values: the sum over tokens divided by `total_tokens`.

        Args:
            values: `[rows, tokens]` of the value head, with gradient.
            batch_slice: The rows, with their values from before the update.
            total_tokens: `total_tokens()` of all rows of the optimiser step.

        Raises:
            AlgorithmError: If shapes differ or the batch has no values.
        """
        mask = batch_slice.mask
        check_shape("values", values, tuple(mask.shape))
        before = self._values(batch_slice)[mask]
        target = self._gae(batch_slice).to(mask.device)[mask] + before
        current = values[mask].float()
        error = (current - target).square()
        if self.value_clip is not None:
            clipped = before + (current - before).clamp(-self.value_clip, self.value_clip)
            error = torch.maximum(error, (clipped - target).square())
        loss = self.value_coef / 2 * error.sum() / total_tokens
        sums = {"value_error": (current - target).square(), "value": current}
        return LossOutput(loss, {name: float(number.detach().sum()) for name, number in sums.items()})

    def _gae(self, batch: TokenBatch) -> Tensor:
        rewards = token_rewards(batch.rewards, batch.mask, self.token_penalty(batch))
        return gae(rewards, self._values(batch), batch.mask, self.gamma, self.gae_lambda)

    def _values(self, batch: TokenBatch) -> Tensor:
        if batch.values is None:
            raise AlgorithmError(
                "PPO needs the values of the value heads",
                expected="batch.values, because needs_values is True",
                got="None",
                fix="use batch.with_values(...), and a team with value heads",
            )
        return batch.values
