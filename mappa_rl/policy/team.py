"""What updates and checkpoints need of a team that learns, whatever its weights are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from mappa_rl.policy.base import Policy
from mappa_rl.rollout.row import Row


@dataclass(frozen=True, eq=False, slots=True)
class TokenOutput:
    """What a model says of the tokens of some rows' responses."""

    logprobs: Tensor
    """`[rows, longest response]` float32, differentiable in the learner's parameters; 0 after a row's end."""
    values: Tensor | None = None
    """The same of the value head, before each token is written; None without value heads."""


class Team(Policy):
    """A policy with learners: sets of weights, each with an optimiser of its own."""

    agents: tuple[str, ...]
    """PettingZoo agent ids."""
    learners: Mapping[str, tuple[str, ...]]
    """Each learner's name, which is an agent id unless agents share weights, and the agents that play with it.
    Agents of no learner play and never learn."""
    device: torch.device
    """Where batches go."""

    def learner_of(self, agent: str) -> str | None:
        """Return the learner that an agent plays with, or None if it never learns."""
        return next((name for name, agents in self.learners.items() if agent in agents), None)

    @abstractmethod
    def parameters(self, learner: str) -> list[nn.Parameter]:
        """Return what a learner's optimiser moves.

        Raises:
            PolicyError: If the team has no such learner.
        """

    @abstractmethod
    def forward(self, learner: str, rows: Sequence[Row], *, temperature: float) -> TokenOutput:
        """Return log-probabilities of rows that the learner's agents wrote, and values, with gradients.

        Args:
            learner: Whose weights.
            rows: At least one.
            temperature: The sampling temperature.
        """

    @abstractmethod
    def reference_logprobs(self, rows: Sequence[Row], *, temperature: float, micro_tokens: int) -> Tensor:
        """Return log-probabilities `[rows, longest response]` under the weights that training started from.

        Args:
            rows: Of any agents.
            temperature: The sampling temperature.
            micro_tokens: Padded tokens per forward pass.
        """

    @abstractmethod
    def values(self, rows: Sequence[Row], *, micro_tokens: int) -> Tensor:
        """Return the value heads' values `[rows, longest response]`, without gradients.

        Args:
            rows: Of agents that learn.
            micro_tokens: Padded tokens per forward pass.

        Raises:
            PolicyError: If the team has no value heads.
        """

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write each learner's weights to `folder/<learner>/`."""

    @abstractmethod
    def load(self, folder: Path) -> None:
        """Replace the learners' weights by those that `save` wrote.

        Raises:
            CheckpointError: If a learner's weights are missing or do not fit.
        """
