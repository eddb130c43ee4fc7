"""Other views of a `TeamEnv`: PettingZoo's parallel API, Gymnasium's for a team or a role, and numeric ones."""

from mappa_envs.wrappers.choice import ChoiceEnv
from mappa_envs.wrappers.parallel import TeamParallelEnv, parallel_face
from mappa_envs.wrappers.role_as_gym import RoleEnv
from mappa_envs.wrappers.team_as_gym import TeamAsGym, gym_face
from mappa_envs.wrappers.token_level import TokenLevelEnv
from mappa_envs.wrappers.vocabulary import PieceVocabulary, TokenizerVocabulary, characters

__all__ = [
    "ChoiceEnv",
    "PieceVocabulary",
    "RoleEnv",
    "TeamAsGym",
    "TeamParallelEnv",
    "TokenLevelEnv",
    "TokenizerVocabulary",
    "characters",
    "gym_face",
    "parallel_face",
]
