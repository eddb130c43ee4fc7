"""Choosing among candidate actions, for any learner that takes discrete actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete

from mappa_envs.checks import at_least
from mappa_envs.errors import ConfigError
from mappa_envs.transcript import Message
from mappa_envs.wrappers.numeric import NumericView, Observation
from mappa_envs.wrappers.vocabulary import Vocabulary, characters, first_tokens, last_tokens

Propose = Callable[[str, Sequence[Message]], Sequence[str]]
"""Proposes the candidates of a turn: `propose(agent, messages)`, the same ones for the same arguments."""


class ChoiceEnv(NumericView):
    """A text environment in which each step picks one of `count` candidate actions.

    An observation is the last `prompt_tokens` tokens of the prompt, right-aligned, and then the first
    `candidate_tokens` tokens of each candidate; see `NumericView`. `info` is that of the text environment, with the
    `candidates` of the next turn, and after a step the `action` that was picked.

    Args:
        env: A Gymnasium environment of text, such as `RoleEnv` or `TeamAsGym`.
        candidates: The same actions for every turn, or a function that proposes `count` of them.
        count: Number of candidates; taken from a list, needed with a function.
        vocabulary: Encodes the observation; by default characters.
        prompt_tokens: How much of the prompt's end is shown.
        candidate_tokens: How much of each candidate is shown; 0 is enough where they are always the same.

    Raises:
        ConfigError: If `env` is no environment of text, there are fewer than two candidates, or a number is too small.
    """

    def __init__(
        self,
        env: gymnasium.Env[dict[str, str], str],
        candidates: Sequence[str] | Propose,
        *,
        count: int | None = None,
        vocabulary: Vocabulary | None = None,
        prompt_tokens: int = 128,
        candidate_tokens: int = 0,
    ) -> None:
        if callable(candidates):
            at_least(2, count=count)
            self._propose: Propose = candidates
        else:
            fixed = _texts(candidates)
            count = len(fixed) if count is None else count
            self._propose = lambda agent, messages: fixed
        self.count = count or 0
        at_least(2, count=self.count)
        at_least(1, prompt_tokens=prompt_tokens)
        at_least(0, candidate_tokens=candidate_tokens)
        super().__init__(env, vocabulary or characters(), prompt_tokens + self.count * candidate_tokens)
        self.prompt_tokens, self.candidate_tokens = prompt_tokens, candidate_tokens
        self.action_space: Discrete = Discrete(self.count)
        self.candidates: tuple[str, ...] = ()
        """The candidates of the next turn; empty when the episode is over."""

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take a candidate.

        Raises:
            ConfigError: If it is no index of one, or the function proposes too few or too many.
            EpisodeError: If there is no running episode.
        """
        return self._act(self.candidates[self._check(action)])

    def _take(self, observation: dict[str, str], info: dict[str, Any]) -> None:
        super()._take(observation, info)
        if info["agent"] is None:
            self.candidates = ()
            return
        self.candidates = _texts(self._propose(info["agent"], info["messages"]))
        if len(self.candidates) != self.count:
            raise ConfigError("a wrong number of candidates", expected=f"{self.count}", got=f"{len(self.candidates)}")

    def _observation(self) -> Observation:
        padding, encode = self.vocabulary.size, self.vocabulary.encode
        shown = self.candidates or ("",) * self.count
        parts = [last_tokens(encode(self.prompt), self.prompt_tokens, padding)]
        parts += [first_tokens(encode(text), self.candidate_tokens, padding) for text in shown]
        return np.concatenate(parts)

    def _info(self, info: dict[str, Any]) -> dict[str, Any]:
        return {**info, "candidates": list(self.candidates)}


def _texts(candidates: object) -> tuple[str, ...]:
    if isinstance(candidates, str) or not isinstance(candidates, Sequence):
        raise ConfigError("bad candidates", expected="a list of texts", got=repr(candidates)[:200])
    if not all(isinstance(text, str) for text in candidates):
        raise ConfigError("bad candidates", expected="a list of texts", got=repr(candidates)[:200])
    return tuple(candidates)
