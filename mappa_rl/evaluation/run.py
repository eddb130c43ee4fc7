"""What `mappa eval` does: measure a team on held-out tasks, going on where an interrupted run stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mappa_envs.render import render_transcript
from mappa_envs.team_env import TeamEnv
from mappa_rl.config import TrainConfig
from mappa_rl.errors import CheckpointError
from mappa_rl.evaluation.episode_log import EpisodeLog
from mappa_rl.evaluation.evaluate import Evaluation, OnProgress, compare, eval_specs, evaluate, summarise
from mappa_rl.evaluation.records import EpisodeRecord
from mappa_rl.evaluation.result import eval_settings, task_digest, write_result
from mappa_rl.evaluation.stats import PairedComparison
from mappa_rl.policy.base import Policy, Sampling
from mappa_rl.policy.make import make_team
from mappa_rl.rollout.collector import Collector, EpisodeSpec
from mappa_rl.training.build import make_env

BASE = "base"
"""Stands for the team before training, wherever a run folder may be given to compare with."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured team."""

    evaluation: Evaluation
    transcripts: tuple[str, ...]
    """The first transcripts as text."""
    file: Path
    """The result as JSON."""
    log: Path
    """All episodes, one a line."""
    found: int
    """Episodes that the log held already."""


@dataclass(frozen=True, slots=True)
class EvalRun:
    """The outcome of `mappa eval`."""

    policy: Measured
    baseline: Measured | None = None
    comparison: PairedComparison | None = None
    """Policy against baseline."""


def adapters_of(run: Path | None) -> Path | None:
    """Return the folder of a run's adapters.

    Raises:
        CheckpointError: If the run folder holds none.
    """
    if run is None:
        return None
    if not (run / "adapters").is_dir():
        raise CheckpointError(f"no adapters in {run}", expected="a finished run folder", fix="check the folder")
    return run / "adapters"


def load_team(config: TrainConfig, env: TeamEnv, run: Path | None) -> Policy:
    """Return the config's team, with the adapters of a run folder where one is given.

    Raises:
        CheckpointError: If the run folder holds no adapters.
    """
    adapters = adapters_of(run)
    team = make_team(config, env.possible_agents)
    if adapters is not None:
        team.load(adapters)
    return team


def run_evaluation(
    config: TrainConfig,
    *,
    run: Path | None = None,
    against: str | None = None,
    out: Path | None = None,
    fresh: bool = False,
    transcripts: int = 0,
    on_progress: OnProgress | None = None,
) -> EvalRun:
    """Measure the config's team on held-out tasks, and another one on the same tasks and seeds where asked.

    Args:
        config: Environment, model, tasks and samples; both teams get the same.
        run: Run folder whose adapters the team gets; None is the untrained team.
        against: Run folder of the team to compare with, or `base` for the untrained one.
        out: The result's file; the episodes go beside it, to `<stem>.episodes.jsonl`, and the other team's to
            `<stem>.against.json`. Default: a name made from the settings under `evals/`, in the run folder if any.
        fresh: Forget the episodes that are there.
        transcripts: How many transcripts to return.
        on_progress: Hears of episodes as they finish.

    Raises:
        CheckpointError: If a run folder holds no adapters.
        EvaluationError: If the file of episodes is of other settings, or damaged.
        TrainingError: If no episode came to its end.
    """
    other = None if against is None or against == BASE else Path(against)
    adapters_of(other)
    policy = _measure(config, run, out, fresh, transcripts, on_progress)
    if against is None:
        return EvalRun(policy)
    beside = out.with_name(f"{out.stem}.against.json") if out is not None else None
    baseline = _measure(config, other, beside, fresh, 0, on_progress)
    return EvalRun(policy, baseline, compare(policy.evaluation, baseline.evaluation))


def _measure(
    config: TrainConfig,
    run: Path | None,
    out: Path | None,
    fresh: bool,
    transcripts: int,
    on_progress: OnProgress | None,
) -> Measured:
    env = make_env(config, "eval")
    specs = eval_specs(config.eval.tasks, config.eval.samples, env.tasks.size)
    digest = task_digest(env.tasks, specs)
    settings = eval_settings(config, judge=env.judge.id, adapters=adapters_of(run), tasks_sha256=digest)
    file = out or (run or Path()) / "evals" / f"{_fingerprint(settings)}.json"
    log_file = file.with_name(f"{file.stem}.episodes.jsonl")
    if fresh:
        log_file.unlink(missing_ok=True)
    log = EpisodeLog(log_file, settings, specs=specs, chunk=config.rollout.concurrency)
    found = len(log.records)
    evaluation, records = play_rest(config, specs, log, lambda: load_team(config, env, run), on_progress)
    write_result(file, evaluation, {"tasks_sha256": digest, "settings": settings, "episodes": log_file.name})
    texts = tuple(record_text(env, record) for record in records[:transcripts])
    return Measured(evaluation, texts, file, log_file, found)


def play_rest(
    config: TrainConfig,
    specs: Sequence[EpisodeSpec],
    log: EpisodeLog,
    load_policy: Callable[[], Policy],
    on_progress: OnProgress | None = None,
) -> tuple[Evaluation, list[EpisodeRecord]]:
    """Play the held-out episodes that a log does not hold yet, and summarise all.

    Args:
        config: Environment and sampling.
        specs: All episodes of the evaluation.
        log: Gets the episodes as they finish.
        load_policy: Makes the player; not called if nothing is left to play.
        on_progress: Hears of episodes as they finish.

    Raises:
        TrainingError: If no episode came to its end.
    """
    found = len(log.records)
    if found and on_progress is not None:
        on_progress(found, len(specs))
    if found == len(specs):
        return summarise(log.records), log.records
    collector = Collector(lambda: make_env(config, "eval"), load_policy(), concurrency=config.rollout.concurrency)
    sampling = Sampling(temperature=config.eval.temperature, max_new_tokens=config.policy.max_new_tokens)
    try:
        return evaluate(collector, specs, sampling, seed=config.seed, log=log, on_progress=on_progress)
    finally:
        collector.close()


def record_text(env: TeamEnv, record: EpisodeRecord) -> str:
    """Return a played episode as text."""
    if record.transcript is None:
        return f"episode lost: {record.failure}"
    return render_transcript(record.transcript, env.tasks.task(record.task_index).prompt)


def _fingerprint(settings: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
