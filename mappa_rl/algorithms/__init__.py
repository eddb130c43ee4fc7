"""Learning algorithms: pure maths on rows, found by name.

Other distributions add algorithms through the entry-point group `mappa.algorithms`; one file can be used as
it is by the name `module:Class`.
"""

from mappa_rl.algorithms.base import Algorithm, LossOutput
from mappa_rl.algorithms.batch import TokenBatch
from mappa_rl.algorithms.dr_mas import DrMAS
from mappa_rl.algorithms.errors import AlgorithmError, GroupSizeError
from mappa_rl.algorithms.grpo import GRPO
from mappa_rl.algorithms.lookup import algorithm_names, make_algorithm
from mappa_rl.algorithms.ppo import PPO
from mappa_rl.algorithms.reduction import Reduce, one_process, over_processes
from mappa_rl.algorithms.reinforce_pp import ReinforcePP
from mappa_rl.algorithms.reinforce_pp_baseline import ReinforcePPBaseline
from mappa_rl.algorithms.rloo import RLOO

__all__ = [
    "GRPO",
    "PPO",
    "RLOO",
    "Algorithm",
    "AlgorithmError",
    "DrMAS",
    "GroupSizeError",
    "LossOutput",
    "Reduce",
    "ReinforcePP",
    "ReinforcePPBaseline",
    "TokenBatch",
    "algorithm_names",
    "make_algorithm",
    "one_process",
    "over_processes",
]
