"""Making what a run's settings name: environments and the team."""

from __future__ import annotations

import envs_registry
from mappa_envs.judges.base import Judge
from mappa_envs.team_env import TeamEnv
from mappa_rl.config import TrainConfig
from mappa_rl.errors import ConfigError


def make_env(config: TrainConfig, split: str, *, judge: Judge | None = None) -> TeamEnv:
    """Make the config's environment on a split.

    Args:
        config: The run; with `reward=outcome` the outcome is the judge, and the one of `env.kwargs` is not asked.
        split: `train` or `eval`.
        judge: Takes the place of the environment's own, so that several environments share one.

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
    if judge is not None:
        env.judge = judge
    return env
