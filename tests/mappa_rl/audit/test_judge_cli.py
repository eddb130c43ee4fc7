from __future__ import annotations

import json
from pathlib import Path

import pytest
from playing import episodes
from typer.testing import CliRunner

from mappa_envs.errors import ConfigError
from mappa_rl.audit.stored import read_transcripts
from mappa_rl.cli import app
from mappa_rl.config import TrainConfig, dump_config
from mappa_rl.errors import EvaluationError

PLAYED = episodes(4)


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    (folder / "transcripts").mkdir(parents=True)
    (folder / "config.yaml").write_text(dump_config(TrainConfig(reward="outcome")), encoding="utf-8")
    lines = [json.dumps(one.to_json()) + "\n" for one in PLAYED]
    (folder / "transcripts" / "eval-000003.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


def command(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False, env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return result.output


def test_an_audit_prints_tables_and_writes_the_report(run_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit.json"
    text = command("judge", "audit", "--run", run_folder, "--rescores", 2, "--injections", 3, "--out", out)
    assert "judge: math_rules" in text.replace("-", "_")
    assert "4 episodes on 4 tasks, 2 successes, each turn scored 2 times" in text
    assert "AUC of success" in text and "score line" in text
    report = json.loads(out.read_text(encoding="utf-8"))
    assert report["roles"]["verifier"]["agreement"]["value"] == 1.0
    assert report["roles"]["all"]["spread"] == 0.0
    # The rule judge reads no scores: nothing that an action asks for moves it upward.
    assert all(one["shift"]["value"] <= 0 for one in report["injections"] if one["place"] == "appended")


def test_rescoring_writes_new_episodes_and_the_comparison(run_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "new.jsonl"
    text = command(
        "rescore", "--run", run_folder, "--judge", "{name: hindsight, judge: rules}", "--limit", 3, "--out", out
    )
    assert "judge: hindsight-1(" in text
    assert "AUC after" in text
    written = read_transcripts([out])
    assert [one.turns for one in written] == [one.turns for one in PLAYED[:3]]
    assert all(one.final_verdicts is not None for one in written)
    comparison = json.loads((tmp_path / "new.json").read_text(encoding="utf-8"))
    assert comparison["roles"]["verifier"]["before"] == 5.0


def test_files_and_settings_may_be_given_without_a_run(run_folder: Path, tmp_path: Path) -> None:
    file = run_folder / "transcripts" / "eval-000003.jsonl"
    text = command("rescore", "--episodes", file, "--judge", "outcome", "--out", tmp_path / "new.jsonl")
    assert "judge: outcome-1" in text


def test_what_is_missing_is_named(run_folder: Path) -> None:
    with pytest.raises(EvaluationError, match="which episodes"):
        command("judge", "audit")
    with pytest.raises(ConfigError, match="did you mean 'outcome'"):
        command("rescore", "--judge", "outcom", "--run", run_folder)
