"""Other views of a `TeamEnv`: PettingZoo's parallel API and Gymnasium's."""

from mappa_envs.wrappers.parallel import TeamParallelEnv, parallel_face
from mappa_envs.wrappers.team_as_gym import TeamAsGym, gym_face

__all__ = ["TeamAsGym", "TeamParallelEnv", "gym_face", "parallel_face"]
