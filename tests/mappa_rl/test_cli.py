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
from mappa_rl.errors import CheckpointError, ContaminationError, EvaluationError, PolicyError

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


def episode_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(("train  ", "eval   "))]


def test_play_all_prints_a_line_for_every_task_of_both_splits(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    lines = [{"prompt": f"What is {i} + {i}?", "answer": 2 * i} for i in range(6)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    settings = ["env.kwargs.tasks.source=jsonl", f"env.kwargs.tasks.path={file}", "env.kwargs.tasks.eval_share=0.5"]
    text = run("play", "Mappa/MathChat-v0", *settings, "--episodes", "all")
    episodes = episode_lines(text)
    assert len(episodes) == 6 and all("  success  " in line and "verifier 10.0" in line for line in episodes)
    assert "all" in text.splitlines()[-1] and "1.000" in text.splitlines()[-1]


@pytest.mark.slow
def test_play_all_solves_tables_with_the_scripted_team() -> None:
    settings = ["env.kwargs.tasks.names=[iris,wine,diabetes_progression,penguins]", "env.kwargs.tasks.eval_share=0.5"]
    text = run("play", "Mappa/DataPipeline-v0", *settings, "--episodes", "all")
    episodes = episode_lines(text)
    assert len(episodes) == 4 and all("  success  " in line and "analyst" in line for line in episodes)


def test_train_then_eval_and_play_with_what_was_trained(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    text = run("train", f"run_dir={folder}", *SMALL)
    assert "held-out success before:" in text
    assert "held-out success after:" in text
    assert "after against before:" in text
    out = tmp_path / "eval.json"
    text = run("eval", "--run", str(folder), "--out", str(out))
    assert "3 held-out tasks x 1" in text
    result = json.loads(out.read_text())
    assert result["tasks"] == 3
    # The same adapters, tasks and seeds as in the evaluation at the end of the training: the same texts.
    lines = (tmp_path / "eval.episodes.jsonl").read_text().splitlines()[1:]
    after = (folder / "transcripts" / "eval-000001.jsonl").read_text().splitlines()
    assert [json.loads(line)["transcript"] for line in lines] == [json.loads(line) for line in after]
    assert "exact sign-flip test over 3 tasks" in run("compare", str(out), str(folder / "eval-000000.json"))
    assert "verifier_0" in run("play", "--policy", "model", "--run", str(folder))


def test_an_evaluation_is_compared_resumed_and_begun_anew(tmp_path: Path) -> None:
    out, log = tmp_path / "a.json", tmp_path / "a.episodes.jsonl"
    evaluate = [
        "eval",
        *SMALL,
        "eval.samples=2",
        "policy.max_new_tokens=48",
        "rollout.concurrency=3",
        "--transcripts",
        "0",
        "--out",
        str(out),
    ]
    text = run(*evaluate, "--against", "base")
    assert "majority@2" in text
    # The untrained team against itself, with the same seeds.
    assert "difference to base: +0.0 points" in text
    assert out.read_bytes() == (tmp_path / "a.against.json").read_bytes().replace(b"a.against.", b"a.")
    whole = out.read_bytes()
    log.write_bytes(log.read_bytes()[:-7])
    text = run(*evaluate)
    assert "3 of 6 episodes were in" in text
    assert out.read_bytes() == whole
    with pytest.raises(EvaluationError, match=r"other settings(.|\n)*eval\.temperature"):
        run(*evaluate, "eval.temperature=0.1")
    assert "were in" not in run(*evaluate, "--fresh")
    assert out.read_bytes() == whole


def test_overlapping_task_files_are_named_and_training_on_them_is_refused(tmp_path: Path) -> None:
    train, held_out = tmp_path / "train.jsonl", tmp_path / "held_out.jsonl"
    tasks = [{"id": f"t{i}", "prompt": f"What is the sum of {i} and {i}?", "answer": 2 * i} for i in range(1, 6)]
    train.write_text("".join(json.dumps(task) + "\n" for task in tasks), encoding="utf-8")
    copy = {**tasks[2], "id": "e1"}
    held_out.write_text(json.dumps(copy) + "\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["contamination", str(train), str(held_out)], catch_exceptions=False)
    assert result.exit_code == 1
    assert "e1 = t3" in result.output
    settings = ["env.kwargs.tasks.source=jsonl", f"env.kwargs.tasks.path={train}"]
    with pytest.raises(ContaminationError, match="e1"):
        run("train", f"run_dir={tmp_path / 'run'}", *SMALL, *settings, f"env.kwargs.tasks.eval_path={held_out}")
    held_out.write_text(json.dumps({"id": "e2", "prompt": "Factorise 91.", "answer": 91}) + "\n", encoding="utf-8")
    assert "0 of 1 evaluation problems" in run("contamination", str(train), str(held_out))


def test_a_task_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    lines = [{"prompt": f"What is {i} + {i}?", "answer": answer} for i, answer in ((1, 2), (2, 4.0), (3, "6"))]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    settings = ["env.kwargs.tasks.source=jsonl", f"env.kwargs.tasks.path={file}", "env.kwargs.tasks.eval_share=1"]
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
        (["play", "--episodes", "some"], ConfigError, "positive integer or 'all'"),
        (["play", "--episodes", "all"], ConfigError, "no end to these tasks"),
        (["eval", "--run", "/no/such/run"], ConfigError, "cannot be read"),
        (["eval", "--against", "/no/such/run"], CheckpointError, "no adapters"),
        (["compare", "/no/a.json", "/no/b.json"], EvaluationError, "cannot be read"),
        (["contamination", "/no/a.jsonl", "/no/b.jsonl"], TaskError, "cannot read"),
        (["eval", "env.kwargs.tasks.source=jsonl", "env.kwargs.tasks.path=/no/such.jsonl"], TaskError, "cannot read"),
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
