from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from typer.testing import CliRunner

from envs_registry.errors import ConfigError, MappaError
from mappa_rl.bench.config import BenchConfig
from mappa_rl.bench.grid import runs_of
from mappa_rl.bench.report import Report, read_cells
from mappa_rl.bench.run import run_bench
from mappa_rl.bench.work import work
from mappa_rl.cli import app
from mappa_rl.config import validate

SETTINGS = {
    "steps": 1,
    "policy": {"device": "cpu", "max_new_tokens": 64},
    "rollout": {"tasks_per_step": 2, "concurrency": 2},
    "eval": {"tasks": 3},
}
POLICIES = {"oracle": {"play": "scripted"}, "base": {}, "trained": {"train": True}}


def bench(**settings: Any) -> BenchConfig:
    data: dict[str, Any] = {"policies": POLICIES, "settings": SETTINGS, **settings}
    return validate(BenchConfig, json.loads(json.dumps(data)))


def tasks_of(report: Report) -> dict[str, Mapping[str, tuple[int, int]]]:
    return {str(cell.cell): cell.by_task for cell in report.cells}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report]:
    out = tmp_path_factory.mktemp("bench") / "out"
    return out, run_bench(bench(), out)


def test_a_benchmark_plays_all_cells_on_the_same_tasks_and_reports(done: tuple[Path, Report]) -> None:
    out, report = done
    cells = {cell.cell.policy: cell for cell in report.cells}
    assert list(cells) == ["oracle", "base", "trained"]
    assert [cells[name].cell.algorithm for name in cells] == [None, None, "reinforce_pp"]
    assert len({tuple(cell.by_task) for cell in report.cells}) == 1
    assert len({cell.tasks_sha256 for cell in report.cells}) == 1
    assert cells["oracle"].success.mean == 1.0
    assert cells["oracle"].cost.tokens == 0
    assert cells["base"].cost.actions >= 3
    assert cells["base"].cost.prompt_tokens > cells["base"].cost.response_tokens > 0
    assert cells["trained"].train_seconds is not None
    assert cells["base"].train_seconds is None
    assert [(c.what, {c.first, c.second}) for c in report.contrasts] == [("policy", {"base", "trained / reinforce_pp"})]
    assert {"bench.json", "table.md", "success.png", "runs"} == {path.name for path in out.iterdir()}
    assert read_cells(out / "bench.json") == list(report.cells)
    assert "| oracle " in (out / "table.md").read_text()


def test_finished_runs_are_kept_and_changed_ones_played_anew(done: tuple[Path, Report]) -> None:
    out, report = done
    again = run_bench(bench(), out, lambda *_: pytest.fail("nothing was left to do"))
    assert again.kept == 3
    assert again.cells == report.cells
    other = bench(policies={"oracle": POLICIES["oracle"]}, settings={**SETTINGS, "eval": {"tasks": 2}})
    changed = run_bench(other, out)
    assert changed.kept == 0
    assert [len(cell.by_task) for cell in changed.cells] == [2]


def test_what_an_interruption_has_left_is_finished_to_the_same_result(done: tuple[Path, Report]) -> None:
    out, report = done
    (run,) = (run for run in runs_of(bench()) if run.train)
    mine = out / "runs" / run.name
    # Killed in the third episode: the second chunk is torn.
    (mine / "result.json").unlink()
    log = mine / "episodes.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole[:-20])
    result = work(run, out / "runs")
    assert log.read_bytes() == whole
    assert result.train_seconds is None
    # Killed in the training.
    for gone in ("result.json", "episodes.jsonl", "train/summary.json"):
        (mine / gone).unlink()
    assert work(run, out / "runs").evaluation == result.evaluation
    assert log.read_bytes() == whole
    again = run_bench(bench(), out)
    assert tasks_of(again) == tasks_of(report)


def test_a_run_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    policies = {"oracle": POLICIES["oracle"], "gone": {"settings": {"policy": {"model": "/no/such/model"}}}}
    file = tmp_path / "failing.yaml"
    file.write_text(json.dumps({"policies": policies, "settings": {"eval": {"tasks": 1}}}))
    result = CliRunner().invoke(app, ["bench", str(file), f"out={tmp_path / 'out'}"], catch_exceptions=False)
    assert result.exit_code == 1
    assert "FAILED: no such model folder" in result.output
    assert "oracle, seed 0: success 100.0 %" in result.output
    data = json.loads((tmp_path / "out" / "bench.json").read_text())
    assert [name.split("-seed0-")[0] for name in data["failed"]] == ["Mappa-MathChat-v0-own-gone"]
    against = CliRunner().invoke(
        app,
        ["bench", str(file), f"out={tmp_path / 'out'}", "--against", str(tmp_path / "out" / "bench.json")],
        catch_exceptions=False,
    )
    assert "| benchmark | Mappa/MathChat-v0 / own / oracle | new " in against.output


def test_a_token_budget_bounds_every_episode(tmp_path: Path) -> None:
    chosen = bench(policies={"base": {}}, max_tokens_per_episode=42)
    (run,) = runs_of(chosen)
    assert run.config.policy.max_new_tokens == 10  # the chain has up to 4 turns
    run_bench(chosen, tmp_path)
    lines = (tmp_path / "runs" / run.name / "episodes.jsonl").read_text().splitlines()[1:]
    assert len(lines) == 3
    assert all(sum(json.loads(line)["response_tokens"]) <= 42 for line in lines)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"topologies": ["chian"]}, "chain"),
        ({"environments": ["Mappa/MathChatt-v0"]}, "MathChat"),
        ({"algorithms": ["grop"]}, "grpo"),
        ({"algorithms": {"mine": {"name": "reinforce_pp", "kwargs": {"klcoef": 1}}}}, "kl_coef"),
        ({"settings": {"seed": 3}}, r"seed(.|\n)*seeds"),
        ({"settings": {"env": {"id": "Mappa/MathChat-v0"}}}, "environments and topologies"),
        ({"settings": {"eval": {"tasks": 0}}}, "held-out tasks"),
        ({"environments": {"m": {"id": "Mappa/MathChat-v0", "kwargs": {"topology": "chain"}}}}, "use topologies"),
        ({"policies": {"a": {"settings": {"algorithm": {"name": "grpo"}}}}}, r"policies\.a\.settings(.|\n)*algorithms"),
        ({"policies": {"a": {"settings": {"policy": {"modell": "tiny"}}}}}, "policy.model"),
        ({"policies": {"a": {"play": "scripted", "train": True}}}, "scripted and trained"),
        ({"policies": {"a": {}, "b": {"settings": {"eval": {"tasks": 2}}}}}, "not played on the same tasks"),
        ({"max_tokens_per_episode": 3}, "at least 4"),
        ({"polices": {}}, "policies"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [1, 1]}, "occurs twice"),
        ({"topologies": []}, "topologies is empty"),
        ({"algorithms": {}}, "algorithms is empty"),
    ],
)
def test_a_mistake_is_named_before_anything_runs(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(MappaError, match=message):
        run_bench(bench(**settings), tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_axis_is_a_list_of_names_or_a_mapping_of_labels() -> None:
    chosen = bench(
        environments={"maths": {"id": "Mappa/MathChat-v0", "kwargs": {"ground_truth": "none"}}},
        topologies={"team": "chain"},
        policies={"trained": {"train": True}},
        algorithms={"pp": {"name": "reinforce_pp", "kwargs": {"kl_coef": 0.0}}, "grpo": "grpo"},
        seeds=[3, 4],
    )
    runs = runs_of(chosen)
    assert [(str(run.cell), run.config.seed) for run in runs] == [
        ("maths / team / trained / pp", 3),
        ("maths / team / trained / pp", 4),
        ("maths / team / trained / grpo", 3),
        ("maths / team / trained / grpo", 4),
    ]
    assert runs[0].config.env.kwargs == {"ground_truth": "none", "topology": "chain"}
    assert runs[0].config.algorithm.kwargs == {"kl_coef": 0.0}
    assert len({run.name for run in runs}) == 4
    with pytest.raises(ConfigError, match="seeds"):
        bench(seeds=["a"])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_killed_benchmark_leaves_no_process_and_goes_on_to_the_same_numbers(tmp_path: Path) -> None:
    file = tmp_path / "b.yaml"
    file.write_text(json.dumps({"policies": POLICIES, "settings": SETTINGS, "seeds": [0, 1], "jobs": 2, "threads": 1}))

    def start(out: Path) -> subprocess.Popen[str]:
        code = (
            f"import sys; sys.argv = ['mappa', 'bench', {str(file)!r}, {f'out={out}'!r}]; from mappa_rl.cli import main"
        )
        return subprocess.Popen(
            [sys.executable, "-c", f"{code}; main()"], stdout=subprocess.PIPE, text=True, cwd=tmp_path
        )

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    with start(whole) as process:
        process.communicate()
    assert process.returncode == 0
    with start(killed) as process:
        while not list(killed.rglob("result.json")):
            assert process.poll() is None
            time.sleep(0.05)
        workers = psutil.Process(process.pid).children(recursive=True)
        os.kill(process.pid, signal.SIGKILL)
        _, alive = psutil.wait_procs(workers, timeout=60)
    assert not alive
    finished_before = len(list(killed.rglob("result.json")))
    assert 1 <= finished_before < 6
    with start(killed) as process:
        text, _ = process.communicate()
    assert process.returncode == 0
    assert f"{finished_before} runs were finished before" in text

    def numbers(out: Path) -> list[dict[str, Any]]:
        return [{**cell.to_json(), "cost": None, "train_seconds": None} for cell in read_cells(out / "bench.json")]

    assert numbers(killed) == numbers(whole)
