"""Stored episodes, made ready to be judged again."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mappa_envs.errors import TaskError
from mappa_envs.judges.base import Judge, JudgeRequest, checked
from mappa_envs.judges.requests import requests_of
from mappa_envs.tasks.base import Task, TaskSource
from mappa_envs.team_env import TeamEnv
from mappa_envs.transcript import Transcript, Verdict
from mappa_rl.errors import EvaluationError, MappaError
from mappa_rl.evaluation.records import EpisodeRecord


@dataclass(frozen=True, slots=True)
class Case:
    """A finished episode with what its judge was asked."""

    transcript: Transcript
    requests: tuple[JudgeRequest, ...]
    """One per turn."""

    @property
    def success(self) -> bool | None:
        """Whether the team succeeded; None where that is undecided."""
        return self.transcript.outcome.success if self.transcript.outcome is not None else None


def newest_evaluation(run: Path | None) -> Path:
    """Return the file of a run's newest evaluation.

    Raises:
        EvaluationError: If there is no run, or it has none.
    """
    found = sorted((run / "transcripts").glob("eval-*.jsonl")) if run is not None else []
    if not found:
        raise EvaluationError(
            "which episodes?",
            expected="a run folder with an evaluation, or files",
            got="neither" if run is None else f"no transcripts/eval-*.jsonl in {run}",
            fix="give --run, or --episodes",
        )
    return found[-1]


def read_transcripts(paths: Sequence[Path]) -> list[Transcript]:
    """Read the finished episodes of JSONL files: transcripts of a training run, or episodes of `mappa eval`.

    Raises:
        EvaluationError: If a file is missing or a line is neither, or there is no finished episode.
    """
    found = [one for path in paths for one in _read(path)]
    finished = [one for one in found if one.outcome is not None]
    if not finished:
        raise EvaluationError(
            "there is nothing to judge",
            expected="finished episodes",
            got=f"{len(found)} episodes in {', '.join(map(str, paths))}, none of them finished",
        )
    return finished


def cases_of(transcripts: Sequence[Transcript], envs: Sequence[TeamEnv]) -> list[Case]:
    """Return episodes with the requests of their turns.

    Args:
        transcripts: Finished episodes.
        envs: The environments that they may come from, alike but for their tasks (the splits of a run).

    Raises:
        EvaluationError: If an episode was played in another environment, with another topology, or on a task that
            the environments do not have.
    """
    lookup = TaskLookup([env.tasks for env in envs])
    env = envs[0]
    cases = []
    for one in transcripts:
        if (one.env_id, one.topology) != (env.env_id, env.topology.name):
            raise EvaluationError(
                "the episodes are of another environment than the settings",
                expected=f"{env.env_id} with topology {env.topology.name!r}",
                got=f"{one.env_id} with topology {one.topology!r}",
                fix="give the run's settings with --run, or set env.id and env.kwargs.topology",
            )
        task = lookup.task(one.task_id)
        if not any(task.prompt in message["content"] for turn in one.turns for message in turn.messages):
            raise EvaluationError(
                f"task {one.task_id!r} of the settings is not the one that was played",
                expected="the same statement",
                got=task.prompt[:80],
                fix="give the run's settings with --run, or set env.kwargs.tasks",
            )
        cases.append(Case(one, tuple(requests_of(one, env.topology, task, env.ground_truth))))
    return cases


async def judge_case(judge: Judge, case: Case) -> list[Verdict]:
    """Return a judge's verdicts on all turns of an episode, whether it scores turns or whole episodes."""
    if judge.scope == "episode":
        verdicts = await judge.score_episode(case.transcript, case.requests)
    else:
        verdicts = await judge.score(case.requests)
    return checked(judge, verdicts, len(case.requests))


class TaskLookup:
    """Finds tasks by their ids.

    Args:
        sources: Where they may come from.
    """

    def __init__(self, sources: Sequence[TaskSource]) -> None:
        self._sources = sources
        self._by_id: dict[str, Task] | None = None

    def task(self, task_id: str) -> Task:
        """Return the task of an id.

        Raises:
            EvaluationError: If no source has it.
        """
        for source in self._sources:
            task = _by_number(source, task_id)
            if task is not None:
                return task
        if self._by_id is None:
            finite = [(source, source.size) for source in self._sources if source.size is not None]
            self._by_id = {task.id: task for source, size in finite for task in map(source.task, range(size))}
        if task_id not in self._by_id:
            raise EvaluationError(
                f"no task {task_id!r}",
                expected=f"a task of {', '.join(sorted({source.name for source in self._sources}))}",
                fix="give the run's settings with --run, or set env.kwargs.tasks",
            )
        return self._by_id[task_id]


def _by_number(source: TaskSource, task_id: str) -> Task | None:
    """Return the task whose index ends its id, as endless sources number theirs."""
    number = re.search(r"(\d{1,9})$", task_id)
    if number is None:
        return None
    try:
        task = source.task(int(number[1]))
    except TaskError:
        return None
    return task if task.id == task_id else None


def _read(path: Path) -> list[Transcript]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(
            f"{path} cannot be read",
            expected="transcripts/*.jsonl of a run, or *.episodes.jsonl of `mappa eval`",
            got=str(error),
            fix="check the path",
        ) from error
    found = []
    for number, line in enumerate(lines, 1):
        try:
            one = _transcript(json.loads(line))
        except (ValueError, TypeError, MappaError) as error:
            raise EvaluationError(
                f"{path}, line {number}: not an episode",
                expected="a transcript, or the record of an episode",
                got=str(error).split("\n")[0],
            ) from error
        found += [one] if one is not None else []
    return found


def _transcript(data: Mapping[str, Any]) -> Transcript | None:
    """Return the transcript of a line; None for the head of an episode log and for lost episodes."""
    if set(data) == {"format", "settings"}:
        return None
    return EpisodeRecord.from_json(data).transcript if "transcript" in data else Transcript.from_json(data)
