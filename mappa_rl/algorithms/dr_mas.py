"""Dr. MAS: GRPO with each agent's own statistics."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from mappa_rl.algorithms.advantages import scope_keys, spread
from mappa_rl.algorithms.base import Algorithm
from mappa_rl.algorithms.batch import TokenBatch
from mappa_rl.algorithms.groups import check_groups, episode_means, moments
from mappa_rl.algorithms.losses import KL


class DrMAS(Algorithm):
    """Dr. MAS, agent-wise normalisation (arXiv 2602.08847).

        A_i,t = (r_i - mean_a) / (std_a + epsilon)

    with mean and standard deviation (ddof 1) over all trainable actions of i's agent a on i's task. The paper
    gives every action the episode's reward; here it has its own, unless training runs on outcomes.
    """

    kl: KL = "k3_loss"
    """Where the KL penalty against the reference goes."""
    unit: Literal["action", "episode"] = "action"
    """What counts once: each action, or an episode's mean (then long episodes do not weigh more)."""
    epsilon: float = Field(default=1e-6, gt=0, strict=True)
    """Added to the standard deviation."""

    def advantages(self, batch: TokenBatch) -> Tensor:
        """Return rewards standardised per task and agent, the same for all tokens of an action."""
        check_groups(batch.rows, batch.reduce, algorithm="Dr. MAS")
        rewards, include = self.row_rewards(batch), batch.mask.any(1)
        keys = scope_keys(batch.rows, "group_agent")
        samples, counted = rewards, include
        if self.unit == "episode":
            samples = episode_means(rewards, include, batch.rows, keys)
            counted = ~samples.isnan()
        peers = moments(samples, counted, keys, batch.reduce)
        scaled = (rewards.double() - peers.mean) / (peers.std + self.epsilon)
        lone = peers.count < 2
        return self.finish(spread(torch.where(lone, 0.0, scaled), batch.mask), batch)
