"""REINFORCE++ with per-action rewards, as MAPPA trains."""

from __future__ import annotations

from pydantic import Field
from torch import Tensor

from mappa_rl.algorithms.advantages import Scope, normalise, returns_to_go, scope_keys, token_rewards
from mappa_rl.algorithms.base import Algorithm
from mappa_rl.algorithms.batch import TokenBatch


class ReinforcePP(Algorithm):
    """REINFORCE++ (arXiv 2501.03262) on one row per action, as in MAPPA (arXiv 2601.23228).

    For action i with reward r_i and sampled tokens t = 1..T:

        G_t = sum_{s >= t} gamma^(s - t) (r_i [s = T] - beta (log p_old(s) - log p_ref(s)))
        A_t = (G_t - mean(G)) / sqrt(max(var(G), 1e-8))

    Mean and population variance are over all sampled tokens of all trainable rows of the scope. Rewards of
    other actions do not enter G: each action is judged in context, on its own.
    """

    norm_scope: Scope | None = "agent"
    """Rows that are normalised together; null: no normalisation."""
    gamma: float = Field(default=1.0, ge=0, le=1, strict=True)
    """Discount per token within the action."""

    def advantages(self, batch: TokenBatch) -> Tensor:
        """Return normalised returns-to-go."""
        rewards = token_rewards(batch.rewards, batch.mask, self.token_penalty(batch))
        returns = returns_to_go(rewards, batch.mask, self.gamma)
        if self.norm_scope is not None:
            returns = normalise(returns, batch.mask, scope_keys(batch.rows, self.norm_scope), batch.reduce)
        return self.finish(returns, batch)
