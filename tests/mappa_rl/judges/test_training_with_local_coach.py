from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from coaching import short_prompt

from mappa_envs.transcript import Transcript, Verdict
from mappa_rl.audit.stored import read_transcripts
from mappa_rl.config import TrainConfig
from mappa_rl.config.settings import validate
from mappa_rl.trainer import Trainer

SMOLLM2 = os.environ.get("MAPPA_TEST_GGUF", "")


def train(run_dir: Path, judge: dict[str, Any], *, steps: int = 2, **policy: Any) -> list[Transcript]:
    """Train the embedded team for a few steps and return the transcripts of all training episodes."""
    settings = {
        "steps": steps,
        "keep_transcripts": 8,
        "env": {"kwargs": {"topology": "solo", "judge": judge}},
        "policy": {"device": "cpu", "max_new_tokens": 48, **policy},
        "rollout": {"tasks_per_step": 2, "samples_per_task": 2},
        "eval": {"tasks": 0},
    }
    Trainer(validate(TrainConfig, settings), run_dir).run()
    return read_transcripts(sorted((run_dir / "transcripts").glob("train-*.jsonl")))


def verdicts(transcripts: list[Transcript]) -> list[Verdict]:
    return [one.verdict(turn.index) for one in transcripts for turn in one.turns]


def test_a_team_learns_from_a_local_coach_and_a_replay_asks_it_nothing(tmp_path: Path) -> None:
    judge = {
        "name": "local_coach",
        "device": "cpu",
        "min_mass": 0.0,
        "prompt": short_prompt(tmp_path / "short"),
        "folder": str(tmp_path / "kept"),
    }
    first = train(tmp_path / "first", judge)
    given = verdicts(first)
    assert {v.status for v in given} == {"ok"}
    assert len({v.score for v in given}) > 1
    assert sum(v.cost.calls for v in given) > 0
    again = train(tmp_path / "again", judge)
    assert sum(v.cost.calls for v in verdicts(again)) == 0
    assert again == first
    for name in ("adapter_model.safetensors",):
        weights = [next((tmp_path / run / "adapters").rglob(name)).read_bytes() for run in ("first", "again")]
        assert weights[0] == weights[1]


def test_a_coach_with_a_memory_is_committed_and_saved_with_the_checkpoint(tmp_path: Path) -> None:
    coach = {"name": "local_coach", "device": "cpu", "min_mass": 0.0, "prompt": short_prompt(tmp_path / "short")}
    judge = {"name": "stateful", "judge": coach, "reference": "rules", "enough": 1}
    given = verdicts(train(tmp_path / "run", judge))
    assert all("as given" not in v.reason for v in given[:4])
    states = list((tmp_path / "run" / "checkpoints").rglob("*.json"))
    assert any('"levels"' in path.read_text(encoding="utf-8") for path in states)


@pytest.mark.slow
@pytest.mark.skipif(not SMOLLM2, reason="set MAPPA_TEST_GGUF to a GGUF file of a small instruct model")
def test_an_instruct_model_coaches_a_team(tmp_path: Path) -> None:
    judge = {"name": "local_coach", "model": SMOLLM2, "device": "cpu", "folder": str(tmp_path / "kept")}
    given = verdicts(train(tmp_path / "first", judge, steps=1))
    assert {v.status for v in given} == {"ok"}
    assert len({v.score for v in given}) > 1
    again = verdicts(train(tmp_path / "again", judge, steps=1))
    assert (sum(v.cost.calls for v in again), [v.score for v in again]) == (0, [v.score for v in given])
