"""What a policy is: texts for chats, with the exact tokens behind them where there are tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from mappa_envs.transcript import Message


@dataclass(frozen=True, slots=True)
class PolicyRequest:
    """One turn to take."""

    agent: str
    messages: tuple[Message, ...]
    """The chat that the agent sees."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One action. Policies without tokens leave the token fields empty; such samples cannot be trained on."""

    text: str
    prompt_ids: tuple[int, ...] = ()
    """The ids that the model read."""
    response_ids: tuple[int, ...] = ()
    """The ids that it wrote, the end-of-turn id included where it was sampled."""
    logprobs: tuple[float, ...] = ()
    """Log-probability of each response id, temperature included."""
    truncated: bool = False
    """The token limit was hit before the end-of-turn id."""
    prompt_cut: int = 0
    """Prompt tokens left out of the middle because the prompt was over its limit."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample.

    Raises:
        ValueError: If a value is out of range.
    """

    temperature: float = 1.0
    """0 is greedy."""
    top_p: float = 1.0
    max_new_tokens: int = 512

    def __post_init__(self) -> None:
        if self.temperature < 0 or not 0 < self.top_p <= 1 or self.max_new_tokens < 1:
            raise ValueError(f"sampling needs temperature >= 0, 0 < top_p <= 1 and max_new_tokens >= 1; got {self}")


class Policy(ABC):
    """Plays all agents of a team."""

    @abstractmethod
    def act(self, requests: Sequence[PolicyRequest], sampling: Sampling, *, seed: int) -> list[Sample]:
        """Take one turn for each request, in order.

        Args:
            requests: Turns of any agents.
            sampling: Temperature, top-p and length limit.
            seed: The same requests and seed give the same samples on the same machine.
        """
