"""The rows of one update as padded tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mappa_rl.algorithms.errors import AlgorithmError
from mappa_rl.algorithms.reduction import Reduce, one_process
from mappa_rl.rollout.row import Row


@dataclass(frozen=True, eq=False)
class TokenBatch:
    """Rows of one batch, right-padded over response tokens. All tensors are on one device.

    Raises:
        AlgorithmError: If a tensor has another shape than the mask.
    """

    rows: tuple[Row, ...]
    mask: Tensor
    """`[rows, tokens]` bool: response tokens of trainable rows. Cells outside are never read."""
    old_logprobs: Tensor
    """`[rows, tokens]` float32: log-probabilities under the sampling distribution."""
    rewards: Tensor
    """`[rows]` float32."""
    ref_logprobs: Tensor | None = None
    """`[rows, tokens]` float32 of the reference (adapter off), at the sampling temperature."""
    values: Tensor | None = None
    """`[rows, tokens]` float32 of the value heads before the update."""
    reduce: Reduce = one_process
    """Sums over the training processes. Episodes stay on one process; group ids are the same on all."""

    def __post_init__(self) -> None:
        shape = tuple(self.mask.shape)
        check_shape("rewards", self.rewards, (len(self.rows),))
        check_shape("mask", self.mask, (len(self.rows), *shape[1:]))
        check_shape("old_logprobs", self.old_logprobs, shape)
        if self.ref_logprobs is not None:
            check_shape("ref_logprobs", self.ref_logprobs, shape)
        if self.values is not None:
            check_shape("values", self.values, shape)

    @classmethod
    def from_rows(
        cls,
        rows: Sequence[Row],
        *,
        rewards: Sequence[float] | None = None,
        ref_logprobs: Tensor | None = None,
        device: torch.device | str = "cpu",
        reduce: Reduce = one_process,
    ) -> TokenBatch:
        """Pad rows into a batch.

        Args:
            rows: All rows of whole episodes, the ones that are not trained on too.
            rewards: One per row in place of `row.reward`, e.g. the episode's outcome.
            ref_logprobs: `[rows, longest response]`.
            device: Where the tensors go.
            reduce: Sums over the training processes.

        Raises:
            AlgorithmError: If a row has no response, not one log-probability per token, or is trainable with
                a non-finite reward or log-probability.
        """
        values = [row.reward for row in rows] if rewards is None else list(rewards)
        if len(values) != len(rows):
            raise AlgorithmError("one reward per row is needed", expected=str(len(rows)), got=str(len(values)))
        for i, (row, reward) in enumerate(zip(rows, values, strict=True)):
            _check_row(i, row, reward)
        width = max((len(row.response_ids) for row in rows), default=0)
        mask = torch.zeros((len(rows), width), dtype=torch.bool)
        old = torch.zeros((len(rows), width), dtype=torch.float32)
        for i, row in enumerate(rows):
            mask[i, : len(row.response_ids)] = row.trainable
            old[i, : len(row.logprobs)] = torch.tensor(row.logprobs, dtype=torch.float32)
        return cls(
            tuple(rows),
            mask.to(device),
            old.to(device),
            torch.tensor(values, dtype=torch.float32, device=device),
            None if ref_logprobs is None else ref_logprobs.detach().float().to(device),
            reduce=reduce,
        )

    @property
    def tokens(self) -> int:
        """Tokens that enter the loss, in this process."""
        return int(self.mask.sum())

    def total_tokens(self) -> int:
        """Return the tokens that enter the loss, over all processes (a collective call)."""
        return int(self.reduce({"tokens": (float(self.tokens),)})["tokens"][0])

    def with_reference(self, ref_logprobs: Tensor) -> TokenBatch:
        """Return the batch with reference log-probabilities `[rows, tokens]`."""
        return replace(self, ref_logprobs=ref_logprobs.detach().float().to(self.mask.device))

    def with_values(self, values: Tensor) -> TokenBatch:
        """Return the batch with values `[rows, tokens]`."""
        return replace(self, values=values.detach().float().to(self.mask.device))

    def select(self, indices: Sequence[int]) -> TokenBatch:
        """Return the batch of some rows, cut to their longest response."""
        return replace(
            self,
            rows=tuple(self.rows[i] for i in indices),
            mask=self.take(self.mask, indices),
            old_logprobs=self.take(self.old_logprobs, indices),
            rewards=self.rewards[list(indices)],
            ref_logprobs=None if self.ref_logprobs is None else self.take(self.ref_logprobs, indices),
            values=None if self.values is None else self.take(self.values, indices),
        )

    def take(self, values: Tensor, indices: Sequence[int]) -> Tensor:
        """Cut any `[rows, tokens]` tensor as `select` does."""
        width = max((len(self.rows[i].response_ids) for i in indices), default=0)
        return values[list(indices), :width]


def check_shape(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    """Refuse a tensor of another shape: broadcasting would hide the mistake.

    Raises:
        AlgorithmError: If the shape differs.
    """
    if tuple(tensor.shape) != shape:
        raise AlgorithmError(
            f"{name} does not fit the batch", expected=f"shape {shape}", got=f"shape {tuple(tensor.shape)}"
        )


def _check_row(index: int, row: Row, reward: float) -> None:
    if not row.response_ids or len(row.logprobs) != len(row.response_ids):
        raise AlgorithmError(
            f"row {index} ({row.agent}) cannot be trained on",
            expected="at least one response id and one sampling log-probability per id",
            got=f"{len(row.response_ids)} ids, {len(row.logprobs)} log-probabilities",
            fix="sample with a policy that returns tokens",
        )
    if row.trainable and not (math.isfinite(reward) and all(map(math.isfinite, row.logprobs))):
        raise AlgorithmError(
            f"row {index} ({row.agent}) is not finite",
            expected="a finite reward and finite log-probabilities",
            got=f"reward {reward}, lowest log-probability {min(row.logprobs)}",
            fix="a judge that cannot score gives the status 'failed', not a NaN",
        )
