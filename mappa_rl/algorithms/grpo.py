"""GRPO: rewards standardised within the samples of one task."""

from __future__ import annotations

from pydantic import Field
from torch import Tensor

from mappa_rl.algorithms.advantages import GroupScope, scope_keys, spread
from mappa_rl.algorithms.base import Algorithm
from mappa_rl.algorithms.batch import TokenBatch
from mappa_rl.algorithms.groups import check_groups, moments
from mappa_rl.algorithms.losses import KL


class GRPO(Algorithm):
    """Group Relative Policy Optimization (DeepSeekMath, arXiv 2402.03300, section 4.1).

        A_i,t = (r_i - mean(r_1..r_n)) / (std(r_1..r_n) + epsilon)

    over the n trainable actions of row i's scope (std with ddof 1, as the public implementations take it),
    and beta * k3 in the loss. With `scale_by_std=False` it is Dr. GRPO (arXiv 2503.20783), whose constant
    length divisor is, within one optimiser step, the same as the token mean taken here. The paper's mean per
    sequence is not taken: its gradient depends on how lengths fall into micro-batches.

    A lone sample (its peers failed or were cut off) has the advantage 0.
    """

    kl: KL = "k3_loss"
    """Where the KL penalty against the reference goes."""
    norm_scope: GroupScope = "group_agent_call"
    """Rows that are compared; by default an agent's n-th actions on the same task."""
    scale_by_std: bool = Field(default=True, strict=True)
    """Divide by the standard deviation; False is Dr. GRPO."""
    epsilon: float = Field(default=1e-6, gt=0, strict=True)
    """Added to the standard deviation."""

    def advantages(self, batch: TokenBatch) -> Tensor:
        """Return standardised rewards, the same for all tokens of an action."""
        check_groups(batch.rows, batch.reduce, algorithm="GRPO")
        rewards = self.row_rewards(batch)
        keys = scope_keys(batch.rows, self.norm_scope)
        peers = moments(rewards, batch.mask.any(1), keys, batch.reduce)
        centred = rewards.double() - peers.mean
        scaled = centred / (peers.std + self.epsilon) if self.scale_by_std else centred
        return self.finish(spread(scaled, batch.mask), batch)
