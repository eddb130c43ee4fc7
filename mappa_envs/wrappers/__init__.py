"""Other views of a `TeamEnv`: PettingZoo's parallel API and Gymnasium's."""

from mappa_envs.wrappers.parallel import TeamParallelEnv
from mappa_envs.wrappers.team_as_gym import TeamAsGym

__all__ = ["TeamAsGym", "TeamParallelEnv"]
