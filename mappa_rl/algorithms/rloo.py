"""RLOO: each action against the mean of the other samples."""

from __future__ import annotations

from torch import Tensor

from mappa_rl.algorithms.advantages import GroupScope, scope_keys, spread
from mappa_rl.algorithms.base import Algorithm
from mappa_rl.algorithms.batch import TokenBatch
from mappa_rl.algorithms.groups import check_groups, others_mean


class RLOO(Algorithm):
    """REINFORCE leave-one-out (arXiv 2402.14740, section 2.3).

        A_i,t = r_i - 1/(n - 1) sum_{j != i} r_j

    where r is the judge's reward minus beta times the summed k1 KL, and j runs over the trainable actions of
    row i's scope in *other episodes*: with one action per episode that is the paper's sum, with several it
    keeps a later action of the same episode, which depends on action i, out of the baseline. No
    normalisation. A lone sample (its peers failed or were cut off) has the advantage 0.
    """

    baseline_scope: GroupScope = "group_agent_call"
    """Rows that are compared; by default an agent's n-th actions on the same task."""

    def advantages(self, batch: TokenBatch) -> Tensor:
        """Return rewards minus leave-one-out baselines, the same for all tokens of an action."""
        check_groups(batch.rows, batch.reduce, algorithm="RLOO")
        rewards, include = self.row_rewards(batch), batch.mask.any(1)
        keys = scope_keys(batch.rows, self.baseline_scope)
        baseline, some = others_mean(rewards, include, batch.rows, keys, batch.reduce)
        return self.finish(spread((rewards.double() - baseline) * some, batch.mask), batch)
