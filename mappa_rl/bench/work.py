"""One run of a benchmark: train where asked, play the held-out tasks, write the result."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mappa_envs.team_env import TeamEnv
from mappa_rl.bench.cost import EpisodeCost, episode_cost
from mappa_rl.bench.grid import BenchRun
from mappa_rl.config import TrainConfig
from mappa_rl.errors import EvaluationError, TrainingError
from mappa_rl.evaluation.contamination import refuse_contamination
from mappa_rl.evaluation.episode_log import EpisodeLog
from mappa_rl.evaluation.evaluate import Evaluation, eval_specs
from mappa_rl.evaluation.result import read_result, write_result
from mappa_rl.evaluation.run import load_team, play_rest
from mappa_rl.policy.base import Policy
from mappa_rl.policy.oracle import scripted_policy
from mappa_rl.rollout.collector import EpisodeSpec
from mappa_rl.trainer import Trainer
from mappa_rl.training.build import make_env

RESULT = "result.json"


@dataclass(frozen=True, slots=True)
class RunResult:
    """A finished run."""

    run: BenchRun
    evaluation: Evaluation
    cost: EpisodeCost
    train_seconds: float | None
    """Wall time of the training; None where there was none, or it was interrupted."""


def finished(run: BenchRun, folder: Path) -> RunResult | None:
    """Return the result of a run that has finished, else None.

    Raises:
        EvaluationError: If its file is damaged.
    """
    path = folder / run.name / RESULT
    if not path.is_file():
        return None
    data = json.loads(path.read_text(encoding="utf-8"))
    try:
        return RunResult(run, read_result(path).evaluation, EpisodeCost(**data["cost"]), data["train_seconds"])
    except (KeyError, TypeError) as error:
        raise EvaluationError(
            f"{path} is damaged", expected="cost and train_seconds", got=repr(error), fix="delete its folder"
        ) from error


def work(run: BenchRun, folder: Path) -> RunResult:
    """Do a run, or what an interruption has left of it.

    Args:
        run: What to do.
        folder: Folder of all runs; this one writes to `folder/run.name/`: `result.json`, `episodes.jsonl`, and the
            training's run folder in `train/`.

    Raises:
        MappaError: If the training or the evaluation fails.
    """
    mine = folder / run.name
    env = make_env(run.config, "eval")
    train_seconds = _train(run.config, env, mine / "train") if run.train else None
    specs = eval_specs(run.config.eval.tasks, run.config.eval.samples, env.tasks.size)
    log = EpisodeLog(mine / "episodes.jsonl", {"run": run.name}, specs=specs, chunk=run.config.rollout.concurrency)
    left, started = len(specs) - len(log.records), 0.0

    def load() -> Policy:
        nonlocal started
        policy = _player(run, env, mine, specs)
        started = time.monotonic()  # loading is no part of what an episode costs
        return policy

    evaluation, records = play_rest(run.config, specs, log, load)
    cost = episode_cost(records, (time.monotonic() - started) / left if left else None)
    about = {
        "tasks_sha256": run.tasks_sha256,
        "settings": run.config.model_dump(mode="json"),
        "cost": cost.to_json(),
        "train_seconds": train_seconds,
    }
    write_result(mine / RESULT, evaluation, about)
    return RunResult(run, evaluation, cost, train_seconds)


def _train(config: TrainConfig, eval_env: TeamEnv, run_dir: Path) -> float | None:
    """Train unless that is done; an interrupted training goes on from its newest checkpoint."""
    summary = run_dir / "summary.json"
    if summary.is_file() and json.loads(summary.read_text(encoding="utf-8"))["stopped"] is None:
        return None
    refuse_contamination(
        make_env(config, "train").tasks,
        eval_env.tasks,
        train_tasks=config.steps * config.rollout.tasks_per_step,
        eval_tasks=config.eval.tasks,
        mode=config.eval.contamination,
    )
    # The benchmark measures the team itself, on the same tasks as all others.
    alone = config.model_copy(update={"eval": config.eval.model_copy(update={"tasks": 0})})
    resume = (run_dir / "config.yaml").is_file()
    result = Trainer(alone, run_dir, resume=resume).run()
    if result.stopped is not None:
        raise TrainingError("the training ended before its last step", got=result.stopped)
    return None if resume else result.seconds


def _player(run: BenchRun, env: TeamEnv, mine: Path, specs: Sequence[EpisodeSpec]) -> Policy:
    if run.play == "model":
        return load_team(run.config, env, mine / "train" if run.train else None)
    return scripted_policy([env.tasks.task(spec.task_index) for spec in specs], env.topology)
