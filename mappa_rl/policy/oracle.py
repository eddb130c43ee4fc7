"""The scripted policy for any tasks."""

from __future__ import annotations

from collections.abc import Sequence

from mappa_envs.tasks.base import Task
from mappa_envs.tasks.math.base import MathTask
from mappa_envs.tasks.tabular.base import TabularTask
from mappa_envs.topology import Topology
from mappa_rl.policy.base import Policy
from mappa_rl.policy.data_team import data_team
from mappa_rl.policy.scripted import math_oracle


def scripted_policy(tasks: Sequence[Task], topology: Topology) -> Policy:
    """Return the policy that needs no model: plain code that solves tables, or an oracle that knows maths answers.

    Args:
        tasks: All tasks that it will meet.
        topology: Whose roles it plays.

    Raises:
        PolicyError: If it cannot play the topology.
    """
    tables = [task for task in tasks if isinstance(task, TabularTask)]
    return data_team(tables) if tables else math_oracle([t for t in tasks if isinstance(t, MathTask)], topology)
