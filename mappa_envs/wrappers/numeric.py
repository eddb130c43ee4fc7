"""What the numeric views of a text environment share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.spaces import Dict as DictSpace
from gymnasium.spaces import MultiDiscrete
from numpy.typing import NDArray

from mappa_envs.errors import ConfigError, EpisodeError
from mappa_envs.spaces import AnyText
from mappa_envs.wrappers.vocabulary import Vocabulary

Observation = NDArray[np.int64]


class NumericView(gymnasium.Env[Observation, np.int64]):
    """A Gymnasium view of text as arrays of tokens.

    An observation has one entry per place; an entry is a token, or `vocabulary.size` where the place is empty.

    Args:
        env: A Gymnasium environment of text, such as `RoleEnv` or `TeamAsGym`.
        vocabulary: Reads its texts.
        places: Length of an observation.

    Raises:
        ConfigError: If `env` is no environment of text.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "human"], "render_fps": 1}  # type: ignore[misc]

    def __init__(self, env: gymnasium.Env[dict[str, str], str], vocabulary: Vocabulary, places: int) -> None:
        space = getattr(env, "observation_space", None)
        if not (isinstance(space, DictSpace) and "prompt" in space.spaces and isinstance(env.action_space, AnyText)):
            raise ConfigError(
                f"{type(self).__name__} shows a Gymnasium environment of text",
                expected="a RoleEnv or a TeamAsGym",
                got=repr(env),
                fix="RoleEnv(make(id), agent, others), or make(id, face='gym')",
            )
        if not isinstance(vocabulary, Vocabulary):
            raise ConfigError("no vocabulary", expected="size, end, encode and decode", got=repr(vocabulary)[:200])
        self.env, self.vocabulary = env, vocabulary
        self.render_mode = env.render_mode
        self.observation_space = MultiDiscrete([vocabulary.size + 1] * places)
        self.prompt = ""
        """What the agent sees now, as text."""
        self._running = False

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; see the environment that is shown."""
        super().reset(seed=seed)
        observation, info = self.env.reset(seed=seed, options=None if options is None else dict(options))
        self._take(observation, info)
        self._running = True
        return self._observation(), self._info(info)

    def _act(self, text: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take a whole action."""
        observation, reward, terminated, truncated, info = self.env.step(text)
        self._running = not (terminated or truncated)
        self._take(observation, info)
        return self._observation(), float(reward), terminated, truncated, self._info({**info, "action": text})

    def _take(self, observation: dict[str, str], info: dict[str, Any]) -> None:
        """Remember what an observation of the text environment says."""
        self.prompt = observation["prompt"]

    def _observation(self) -> Observation:
        raise NotImplementedError

    def _info(self, info: dict[str, Any]) -> dict[str, Any]:
        return info

    def _check(self, action: object) -> int:
        if not self._running:
            raise EpisodeError(
                "step() without a running episode", expected="a running episode", fix="call reset() first"
            )
        if not self.action_space.contains(action):
            raise ConfigError("the action is not in the space", expected=repr(self.action_space), got=repr(action))
        return int(action)  # type: ignore[call-overload]

    def render(self) -> Any:
        """Return the transcript as text (`ansi`), or print what is new of it (`human`)."""
        return self.env.render()

    def close(self) -> None:
        """Close the environment that is shown."""
        self.env.close()
