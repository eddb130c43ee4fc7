"""`Mappa/DataPipeline-v0`: data analysis on real tables for a team of agents."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from envs_registry.errors import ConfigError
from mappa_envs.errors import TaskError
from mappa_envs.inspection import FileWork
from mappa_envs.judges import JudgeConfig, get_judge
from mappa_envs.judges.data_rules import DataInspector, DataRules
from mappa_envs.judges.requests import GroundTruth
from mappa_envs.sandbox.base import SandboxConfig
from mappa_envs.tasks.base import Task, TaskSource
from mappa_envs.tasks.tabular.base import TabularTask
from mappa_envs.tasks.tabular.sources import TabularConfig, build_tabular_source
from mappa_envs.team_env import TeamEnv
from mappa_envs.topologies import get_topology
from mappa_envs.topologies.pipeline import tables
from mappa_envs.topology import Topology
from mappa_envs.wrappers.parallel import parallel_face
from mappa_envs.wrappers.team_as_gym import gym_face

ENV_ID = "Mappa/DataPipeline-v0"

DEFAULT_SANDBOX = {"timeout": 60.0, "memory_mb": 3072, "disk_mb": 512, "output_chars": 4000, "seed": 0}
"""Fitting models takes longer than arithmetic; the seed makes unseeded estimators repeatable."""


class DataPipeline(TeamEnv):
    """Data analysis for a team: Data Engineer -> Modeler -> Analyst.

    ## Description
    The team is to predict a column of a real table. The Data Engineer makes features, the Modeler fits a model, the
    Analyst hands in the predictions (MAPPA, section 4, DSBench). Each writes Python that runs in a kernel of its own;
    all share one workspace, through which the work is handed on.

    ## Roles
    | agent | turns | leaves |
    |---|---|---|
    | `engineer_0` | 1 to 4 | `X_train.csv`, `X_test.csv`, `y_train.csv` |
    | `modeler_0` | 1 to 4 | `model.joblib`, `validation.json` |
    | `analyst_0` | 1 to 4 | `submission.csv` |

    A turn without a code block ends a role's part; `docs/data_judge.md` describes the files.

    ## Visibility
    Everyone sees the problem, the files of the workspace (name, size, who wrote them in which turn), and its own turns
    with their output. The Modeler also sees the Engineer's last turn, the Analyst the last turns of both. Nobody sees
    verdicts.

    ## Action Space
    `AnyText`: the text of the turn.

    ## Observation Space
    `Dict(role, prompt)` of `AnyText`; the same chat as a list of messages is in `infos[agent]["messages"]`.

    ## Starting State
    A task drawn from the task source by the seed; `options={"task_index": i}` plays task `i`. The workspace holds
    `train.csv`, `test.csv` and `sample_submission.csv`.

    ## Rewards
    The judge's score of the action just taken, divided by 10, in `rewards[agent]` when `step` returns.

    ## Process reward
    The default judge is `rules` (`DataRules`): facts about the artefacts of the role that acted. A role is not
    punished for what an earlier role left missing or broken. `outcome` gives all actions the episode's result at its
    end. A judge's failure has reward 0, `verdict["status"] == "failed"`, and is not trained on.

    ## Ground truth
    The target of the test rows. It is never written where agent code can read. `ground_truth` says which roles'
    verdicts may use it. The outcome is success when `submission.csv` is valid and its normalised score (0: trivial
    predictor, 1: reference model) is above `success_above`; its score is the normalised one between 0 and 1.

    ## Episode End
    All agents terminate when the flow is over; nothing truncates.

    ## Information
    `messages` for agents that act next; `verdict` and `tools` for the agent that acted; `outcome` at the end.

    ## Arguments
    `topology`: a name, a mapping of `name` and parameters, or a `Topology`; by default the team of three. `turns`: most
    turns in a row of whoever codes. `judge`: `"rules"`, `"outcome"`, another judge's name or config, or a `Judge`.
    `tasks`: a `TabularConfig`, a dict of its fields, or a `TaskSource`. `split`: `"train"` or `"eval"`. `sandbox`: a
    `SandboxConfig` or a dict of what is to differ from `DEFAULT_SANDBOX`. `ground_truth`: `"all"`, `"answer"` or
    `"none"`. `success_above`: a number. `render_mode`: `"ansi"`, `"human"` or None.

    ## Data and licence
    The default tasks are tables out of installed packages (extra `tables`); `docs/tables.md` gives the licence of
    each. Task folders keep their own.

    ## References
    MAPPA, arXiv 2601.23228. DSBench, arXiv 2409.07703.

    ## Version History
    v0: first version.
    """

    def __init__(
        self,
        *,
        topology: str | Mapping[str, Any] | Topology = "chain",
        turns: int = 4,
        judge: JudgeConfig = "rules",
        tasks: TabularConfig | TaskSource | Mapping[str, Any] | None = None,
        split: str = "train",
        sandbox: SandboxConfig | Mapping[str, Any] | None = None,
        ground_truth: GroundTruth = "all",
        success_above: float = 0.0,
        render_mode: str | None = None,
    ) -> None:
        if split not in ("train", "eval"):
            raise ConfigError("split", expected="'train' or 'eval'", got=repr(split))
        if isinstance(success_above, bool) or not isinstance(success_above, int | float):
            raise ConfigError("success_above", expected="a number", got=repr(success_above))
        super().__init__(
            env_id=ENV_ID,
            topology=get_topology(topology, tables(turns)),
            tasks=build_tabular_source(tasks, "eval" if split == "eval" else "train"),
            judge=get_judge(judge, rules=DataRules),
            work=FileWork(lay_out, partial(DataInspector, success_above=float(success_above))),
            sandbox=sandbox
            if isinstance(sandbox, SandboxConfig)
            else SandboxConfig(**{**DEFAULT_SANDBOX, **(sandbox or {})}),
            ground_truth=ground_truth,
            render_mode=render_mode,
        )


def _sandbox(value: SandboxConfig | Mapping[str, Any] | None) -> SandboxConfig:
    return value if isinstance(value, SandboxConfig) else SandboxConfig(**{**DEFAULT_SANDBOX, **(value or {})})


def lay_out(task: Task) -> Mapping[str, bytes]:
    """Return the public files of a table task.

    Raises:
        TaskError: If it is no task on tables.
    """
    if not isinstance(task, TabularTask):
        raise TaskError("DataPipeline plays tasks on tables", expected="a TabularTask", got=type(task).__name__)
    return task.files()


parallel = parallel_face(DataPipeline)
gym = gym_face(DataPipeline)
