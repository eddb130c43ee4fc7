from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from playing import env, episodes

from mappa_envs.envs.math_chat import MathChat
from mappa_envs.tasks.math.finite import FiniteSource
from mappa_rl.audit.stored import TaskLookup, cases_of, newest_evaluation, read_transcripts
from mappa_rl.errors import EvaluationError
from mappa_rl.evaluation.episode_log import EpisodeLog
from mappa_rl.evaluation.records import EpisodeRecord
from mappa_rl.rollout.collector import EpisodeSpec


def write(path: Path, *lines: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_transcripts_and_episode_logs_are_read(tmp_path: Path) -> None:
    played = episodes(2)
    plain = write(tmp_path / "train-000001.jsonl", *(one.to_json() for one in played))
    specs = [EpisodeSpec(i, i) for i in range(3)]
    log = EpisodeLog(tmp_path / "e.episodes.jsonl", {"seed": 0}, specs=specs, chunk=3)
    records = [EpisodeRecord(i, 0, one, (False,) * 4, (0,) * 4, (0,) * 4) for i, one in enumerate(played)]
    log.append([*records, EpisodeRecord(2, 0, None, failure="sandbox")])
    assert read_transcripts([plain]) == played
    assert read_transcripts([plain, log.path]) == [*played, *played]


def test_what_is_no_episode_is_named(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="cannot be read"):
        read_transcripts([tmp_path / "none.jsonl"])
    bad = write(tmp_path / "bad.jsonl", episodes(1)[0].to_json(), {"turns": 3})
    with pytest.raises(EvaluationError, match=r"bad\.jsonl, line 2: not an episode"):
        read_transcripts([bad])
    with pytest.raises(EvaluationError, match="line 1: not an episode"):
        read_transcripts([write(tmp_path / "list.jsonl", [1, 2])])
    unfinished = replace(episodes(1)[0], outcome=None)
    with pytest.raises(EvaluationError, match="none of them finished"):
        read_transcripts([write(tmp_path / "unfinished.jsonl", unfinished.to_json())])


def test_the_newest_evaluation_of_a_run_is_found(tmp_path: Path) -> None:
    for name in ("eval-000000", "eval-000012", "train-000013"):
        write(tmp_path / "transcripts" / f"{name}.jsonl")
    assert newest_evaluation(tmp_path).name == "eval-000012.jsonl"
    for run in (None, tmp_path / "transcripts"):
        with pytest.raises(EvaluationError, match="which episodes"):
            newest_evaluation(run)


def test_requests_are_those_of_the_task_that_was_played() -> None:
    played = episodes(3, first=5)
    made = cases_of(played, [MathChat(split="train"), env()])
    tasks = [env().tasks.task(index) for index in (5, 6, 7)]
    assert [case.requests[0].truth for case in made] == tasks
    assert [case.success for case in made] == [False, True, False]
    assert [request.action for request in made[0].requests] == [turn.action for turn in played[0].turns]


def test_tasks_are_found_by_id_in_finite_sources_too() -> None:
    endless = env().tasks
    picked = [endless.task(index) for index in (30, 4, 17)]
    finite = FiniteSource("picked", picked)  # type: ignore[arg-type]
    lookup = TaskLookup([finite])
    assert [lookup.task(task.id) for task in reversed(picked)] == picked[::-1]
    with pytest.raises(EvaluationError, match="no task 'else-3'"):
        lookup.task("else-3")


def test_episodes_of_other_settings_are_refused() -> None:
    (played,) = episodes(1)
    with pytest.raises(EvaluationError, match="another environment than the settings"):
        cases_of([replace(played, topology="solo")], [env()])
    with pytest.raises(EvaluationError, match="no task"):
        cases_of([played], [MathChat(split="train")])
    other = MathChat(split="eval", tasks={"seed": 0, "levels": (3,)})
    with pytest.raises(EvaluationError, match="is not the one that was played"):
        cases_of([played], [other])
