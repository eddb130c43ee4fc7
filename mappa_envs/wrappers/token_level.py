"""One token per step, for any learner that takes discrete actions."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete

from mappa_envs.checks import at_least
from mappa_envs.wrappers.numeric import NumericView, Observation
from mappa_envs.wrappers.vocabulary import Vocabulary, characters, first_tokens, last_tokens


class TokenLevelEnv(NumericView):
    """A text environment in which each step writes one token.

    The action ends with the vocabulary's `end` token or after `max_tokens` tokens. It is then taken as a whole, and its
    score is the reward of that last step; other steps have reward 0.

    An observation is the last `prompt_tokens` tokens of the prompt, right-aligned, and then the tokens written so far,
    left-aligned in `max_tokens` places; see `NumericView`. `info` is that of the text environment when an action was
    taken, with the whole `action`; else it is empty.

    Args:
        env: A Gymnasium environment of text, such as `RoleEnv` or `TeamAsGym`.
        vocabulary: The tokens; by default the printable characters.
        max_tokens: Longest action.
        prompt_tokens: How much of the prompt's end is shown.

    Raises:
        ConfigError: If `env` is no environment of text, or a number is too small.
    """

    def __init__(
        self,
        env: gymnasium.Env[dict[str, str], str],
        vocabulary: Vocabulary | None = None,
        *,
        max_tokens: int = 64,
        prompt_tokens: int = 128,
    ) -> None:
        at_least(1, max_tokens=max_tokens, prompt_tokens=prompt_tokens)
        super().__init__(env, vocabulary or characters(), prompt_tokens + max_tokens)
        self.max_tokens, self.prompt_tokens = max_tokens, prompt_tokens
        self.action_space: Discrete = Discrete(self.vocabulary.size)
        self._written: list[int] = []

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Write a token; take the action if that ends it.

        Raises:
            ConfigError: If it is no token.
            EpisodeError: If there is no running episode.
        """
        token = self._check(action)
        ended = token == self.vocabulary.end
        if not ended:
            self._written.append(token)
        if ended or len(self._written) == self.max_tokens:
            return self._act(self.vocabulary.decode(self._written))
        return self._observation(), 0.0, False, False, {}

    def _take(self, observation: dict[str, str], info: dict[str, Any]) -> None:
        super()._take(observation, info)
        self._written = []

    def _observation(self) -> Observation:
        padding = self.vocabulary.size
        prompt = last_tokens(self.vocabulary.encode(self.prompt), self.prompt_tokens, padding)
        return np.concatenate([prompt, first_tokens(self._written, self.max_tokens, padding)])
