"""REINFORCE++ with a group-mean baseline."""

from __future__ import annotations

from pydantic import Field
from torch import Tensor

from mappa_rl.algorithms.advantages import GroupScope, Scope, normalise, scope_keys, spread
from mappa_rl.algorithms.base import Algorithm
from mappa_rl.algorithms.batch import TokenBatch
from mappa_rl.algorithms.groups import check_groups, moments
from mappa_rl.algorithms.losses import KL


class ReinforcePPBaseline(Algorithm):
    """REINFORCE++-baseline (arXiv 2501.03262, section on multiple samples per prompt).

        A'_i = r_i - mean(r of i's baseline scope)
        A_i,t = (A'_i - mean(A')) / sqrt(max(var(A'), 1e-8))

    with the second mean and population variance over all sampled tokens of i's normalisation scope, and beta
    * k2 in the loss. A lone sample (its peers failed or were cut off) has A' = 0.
    """

    kl: KL = "k2_loss"
    """Where the KL penalty against the reference goes."""
    kl_coef: float = Field(default=1e-3, ge=0, strict=True)
    """Weight of the KL penalty (beta)."""
    baseline_scope: GroupScope = "group_agent_call"
    """Rows whose mean is subtracted."""
    norm_scope: Scope = "agent"
    """Rows that are normalised together."""

    def advantages(self, batch: TokenBatch) -> Tensor:
        """Return normalised centred rewards."""
        check_groups(batch.rows, batch.reduce, algorithm="REINFORCE++-baseline")
        rewards = self.row_rewards(batch)
        peers = moments(rewards, batch.mask.any(1), scope_keys(batch.rows, self.baseline_scope), batch.reduce)
        centred = spread(rewards.double() - peers.mean, batch.mask)
        keys = scope_keys(batch.rows, self.norm_scope)
        return self.finish(normalise(centred, batch.mask, keys, batch.reduce), batch)
