"""Results of evaluations as JSON files, and comparing two of them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mappa_envs.tasks.base import TaskSource
from mappa_rl.config import TrainConfig
from mappa_rl.errors import EvaluationError
from mappa_rl.evaluation.episode_log import differing_settings
from mappa_rl.evaluation.evaluate import Evaluation, compare
from mappa_rl.evaluation.stats import PairedComparison
from mappa_rl.rollout.collector import EpisodeSpec


@dataclass(frozen=True, slots=True)
class SavedResult:
    """A result with what it was measured on."""

    evaluation: Evaluation
    tasks_sha256: str
    settings: Mapping[str, Any]
    """As `eval_settings` gives them; empty for evaluations within a training run."""


def eval_settings(config: TrainConfig, *, judge: str, adapters: Path | None, tasks_sha256: str) -> dict[str, Any]:
    """Return all that the episodes of an evaluation depend on, as plain JSON.

    Args:
        config: The run.
        judge: Id of the judge.
        adapters: Folder of the team's adapters; None is the untrained team, which plays as the base model.
        tasks_sha256: See `task_digest`.
    """
    plain = config.model_dump(mode="json")
    model = ("model", "gguf_file", "dtype", "device", "attention", "max_prompt_tokens", "max_new_tokens")
    return {
        "seed": plain["seed"],
        "env": plain["env"],
        "reward": plain["reward"],
        "judge": judge,
        "policy": {key: plain["policy"][key] for key in model},
        "adapters_sha256": folder_digest(adapters) if adapters else None,
        "eval": {key: plain["eval"][key] for key in ("tasks", "samples", "temperature")},
        # Episodes that are played together are sampled together.
        "rollout": {"concurrency": plain["rollout"]["concurrency"]},
        "tasks_sha256": tasks_sha256,
    }


def task_digest(source: TaskSource, specs: Sequence[EpisodeSpec]) -> str:
    """Return the SHA-256 of the ids and statements of the tasks that are played, in order."""
    tasks = [source.task(index) for index in dict.fromkeys(spec.task_index for spec in specs)]
    text = json.dumps([[task.id, task.prompt] for task in tasks], ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def folder_digest(folder: Path) -> str:
    """Return the SHA-256 of the names and contents of all weights and configs (safetensors, JSON) in a folder."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in (".safetensors", ".json"):
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            total.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return total.hexdigest()


def write_result(path: Path, evaluation: Evaluation, about: Mapping[str, Any]) -> None:
    """Write a result and what it is about as JSON; the file is whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_text(
        json.dumps({**about, **evaluation.to_json()}, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    os.replace(unfinished, path)


def read_result(path: Path) -> SavedResult:
    """Read what `mappa eval` or a training run wrote.

    Raises:
        EvaluationError: If the file cannot be read or holds something else.
    """
    expected = "a JSON file that `mappa eval` wrote, or eval-NNNNNN.json of a run folder"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        got = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise EvaluationError(f"{path} cannot be read", expected=expected, got=got, fix="check the path") from error
    if not isinstance(data, dict) or not isinstance(data.get("tasks_sha256"), str):
        raise EvaluationError(f"{path} is no result of an evaluation", expected=expected, got="no tasks_sha256")
    settings = data.get("settings", {})
    return SavedResult(Evaluation.from_json(data), data["tasks_sha256"], settings if isinstance(settings, dict) else {})


def compare_results(policy: Path, baseline: Path) -> tuple[PairedComparison, list[tuple[str, str, str]]]:
    """Compare two saved results on the same tasks.

    Returns:
        The comparison, policy minus baseline, and the settings in which they differ (see `differing_settings`).

    Raises:
        EvaluationError: If a file is no result, or they are of different tasks.
        TrainingError: If they have no finished task in common.
    """
    mine, theirs = read_result(policy), read_result(baseline)
    if mine.tasks_sha256 != theirs.tasks_sha256:
        shared = len(set(mine.evaluation.by_task) & set(theirs.evaluation.by_task))
        raise EvaluationError(
            "the two results are of different tasks",
            expected="the same tasks with the same statements on both sides",
            got=f"{mine.evaluation.tasks} and {theirs.evaluation.tasks} tasks, {shared} ids in common",
            fix="evaluate both with the same env.kwargs.tasks and eval.tasks",
        )
    differing = differing_settings(mine.settings, theirs.settings) if mine.settings and theirs.settings else []
    return compare(mine.evaluation, theirs.evaluation), differing
