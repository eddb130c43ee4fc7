"""Making what a run's settings name: environments and the team."""

from __future__ import annotations

import envs_registry
from mappa_envs.team_env import TeamEnv
from mappa_rl.config import TrainConfig
from mappa_rl.errors import ConfigError


def make_env(config: TrainConfig, split: str) -> TeamEnv:
    """Make the config's environment on a split.

    Raises:
        ConfigError: If the id does not name an environment of this project's kind.
    """
    kwargs = {**config.env.kwargs, "split": split}
    if config.reward == "outcome":
        kwargs["judge"] = "outcome"
    env = envs_registry.make(config.env.id, **kwargs)
    if not isinstance(env, TeamEnv):
        raise ConfigError(
            f"environment {config.env.id!r} cannot be trained on",
            expected="a mappa_envs.team_env.TeamEnv",
            got=type(env).__name__,
        )
    return env
