from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from envs_registry.errors import ConfigError, MappaError
from mappa_envs.errors import TaskError
from mappa_rl.cli import app
from mappa_rl.errors import CheckpointError, PolicyError

SMALL = ["rollout.tasks_per_step=2", "rollout.samples_per_task=2", "eval.tasks=3", "policy.device=cpu", "steps=1"]


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_envs_lists_the_built_in_id() -> None:
    assert "Mappa/MathChat-v0" in run("envs")


def test_play_prints_a_transcript_with_scores() -> None:
    text = run("play", "--policy", "scripted", "--episodes", "2")
    assert text.count("outcome: success") == 2
    assert text.count("score 10.0/10") == 6


def test_train_then_eval_and_play_with_what_was_trained(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    text = run("train", f"run_dir={folder}", *SMALL)
    assert "held-out success before:" in text
    assert "held-out success after:" in text
    out = tmp_path / "eval.json"
    text = run("eval", "--run", str(folder), "--out", str(out))
    assert "3 held-out tasks x 1" in text
    assert json.loads(out.read_text())["tasks"] == 3
    assert "verifier_0" in run("play", "--policy", "model", "--run", str(folder))


def test_a_task_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    lines = [{"prompt": f"What is {i} + {i}?", "answer": answer} for i, answer in ((1, 2), (2, 4.0), (3, "6"))]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    settings = ["env.kwargs.tasks.source=jsonl", f"env.kwargs.tasks.path={file}"]
    text = run("play", "Mappa/MathChat-v0", *settings, "--episodes", "3")
    assert text.count("outcome: success") == 3


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["train", "optim.lrr=1"], ConfigError, "optim.lr"),
        (["train", "steps=many"], ConfigError, "steps"),
        (["train", "policy.model=/no/such/folder"], PolicyError, "no such model folder"),
        (["play", "Mappa/MathChatt-v0"], MappaError, "MathChat"),
        (["play", "--policy", "oracle"], ConfigError, "unknown policy"),
        (["eval", "--run", "/no/such/run"], ConfigError, "cannot be read"),
        (["eval", "env.kwargs.tasks.source=jsonl", "env.kwargs.tasks.path=/no/such.jsonl"], TaskError, "no such"),
    ],
)
def test_a_mistake_is_named(arguments: list[str], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_a_run_without_adapters_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("seed: 0\n", encoding="utf-8")
    with pytest.raises(CheckpointError, match="no adapters"):
        CliRunner().invoke(app, ["eval", "--run", str(tmp_path)], catch_exceptions=False)


def test_the_command_prints_an_error_without_a_traceback() -> None:
    code = "import sys; sys.argv = ['mappa', 'train', 'stepz=1']; from mappa_rl.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert result.returncode == 2
    assert "stepz" in result.stderr
    assert "steps" in result.stderr
    assert "Traceback" not in result.stderr
