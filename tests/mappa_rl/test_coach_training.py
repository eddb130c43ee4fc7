"""Training with a coach behind HTTP: failed verdicts leave the batch, and the cache repeats a run without a call."""

from __future__ import annotations

import json
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from mappa_envs import background
from mappa_envs.judges.coach import asker
from mappa_rl.config import TrainConfig
from mappa_rl.errors import TrainingError
from mappa_rl.trainer import Trainer

sys.path.append(str(Path(__file__).parents[1] / "mappa_envs" / "judges" / "coach"))
from coach_servers import Http, HttpServer, completion


def train(url: str, run_dir: Path, **settings: Any) -> Path:
    judge = {"name": "coach", "model": "m", "base_url": url, "api_key_env": None, "tries": 1, **settings}
    config = TrainConfig.model_validate(
        {
            "steps": 2,
            "env": {"kwargs": {"judge": judge, "topology": "solo", "tasks": {"size": 64}}},
            "policy": {"max_new_tokens": 24},
            "rollout": {"tasks_per_step": 4, "samples_per_task": 2, "concurrency": 8, "max_failed_share": 0.5},
            "optim": {"minibatches": 1},
            "eval": {"tasks": 0},
        }
    )
    try:
        Trainer(config, run_dir).run()
    finally:
        background.run(asker.close_askers())
    return run_dir


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def records(run_dir: Path) -> list[dict[str, Any]]:
    return read(run_dir / "metrics.jsonl")


def steps(run_dir: Path) -> list[list[dict[str, Any]]]:
    """The turns of each training step."""
    paths = sorted((run_dir / "transcripts").glob("train-*"))
    return [[turn for episode in read(path) for turn in episode["turns"]] for path in paths]


def turns(run_dir: Path) -> list[dict[str, Any]]:
    return [turn for step in steps(run_dir) for turn in step]


def test_failed_verdicts_are_counted_and_leave_the_scores(tmp_path: Path) -> None:
    numbers = count()

    def now_and_then(body: dict[str, Any]) -> Http:
        n = next(numbers)
        return Http(b"oops", 500) if n % 4 == 3 else completion(f"SCORE: {n % 11}")

    with HttpServer(now_and_then) as server:
        first = train(server.url, tmp_path / "first", folder=str(tmp_path / "coach"))
    for record, step in zip(records(first), steps(first), strict=True):
        failed = [turn["verdict"] for turn in step if turn["verdict"]["status"] == "failed"]
        assert 0 < len(failed) < len(step)
        assert {v["score"] for v in failed} == {None}
        assert all("HTTP 500" in v["reason"] for v in failed)
        assert record["failed/soloist_0"] == pytest.approx(len(failed) / len(step))
        scores = [turn["verdict"]["score"] for turn in step if turn["verdict"]["status"] == "ok"]
        assert record["score/soloist_0"] == pytest.approx(sum(scores) / len(scores))


def test_a_repeated_run_has_the_same_rewards_and_no_calls(tmp_path: Path) -> None:
    numbers = count()
    with HttpServer(lambda body: completion(f"SCORE: {next(numbers) % 11}")) as server:
        runs = [train(server.url, tmp_path / name, folder=str(tmp_path / "coach")) for name in ("first", "second")]
        assert len(server.seen) == next(numbers)
    first, second = ([(t["action"], t["verdict"]["score"]) for t in turns(run)] for run in runs)
    assert first == second
    assert len({score for _, score in first}) > 1
    assert sum(t["verdict"]["cost"]["calls"] for t in turns(runs[1])) == 0


def test_too_many_failed_verdicts_stop_the_run(tmp_path: Path) -> None:
    with HttpServer(lambda body: Http(b"oops", 500)) as server:
        with pytest.raises(TrainingError, match=r"(?s)verdicts failed.*HTTP 500"):
            train(server.url, tmp_path / "run")
