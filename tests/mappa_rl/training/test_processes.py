"""Two real processes (gloo, CPU) against one: each with the whole model, or with a half of its layers (FSDP)."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

sys.path.insert(0, str(Path(__file__).parent))
from process_worker import CASES
from quick_team import quick_config

from mappa_rl.errors import ConfigError
from mappa_rl.policy.make import make_team
from mappa_rl.policy.sharding import Sharding
from mappa_rl.trainer import Trainer
from mappa_rl.training.playing import chunks
from mappa_rl.training.processes import Processes, launched_processes

HERE = Path(__file__).parent


pytestmark = pytest.mark.timeout(1200)


FSDP = {"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2"}
"""What `accelerate launch --use_fsdp --fsdp_version 2` sets."""
ZERO3 = {"ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_ZERO_STAGE": "3"}
"""What `accelerate launch --use_deepspeed --zero_stage 3` sets."""
HAVE_DEEPSPEED = importlib.util.find_spec("deepspeed") is not None


@pytest.fixture(
    scope="module",
    params=[
        pytest.param({}, id="whole"),
        pytest.param(FSDP, id="fsdp"),
        pytest.param(
            ZERO3, id="zero3", marks=pytest.mark.skipif(not HAVE_DEEPSPEED, reason="DeepSpeed is not installed")
        ),
    ],
)
def two(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("two")
    env = {**os.environ, "PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1", **request.param}
    launch = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run([*launch, str(HERE / "process_worker.py"), str(out)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads((out / "report.json").read_text())
    for share in report["held"]:
        assert (share == 1) if not request.param else (0.5 < share < 0.65)  # embeddings and norms stay whole
    return out, report


def records(run_dir: Path, name: str = "metrics.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run_dir / name).read_text().splitlines()]


@pytest.mark.parametrize("case", sorted(CASES))
def test_the_numbers_are_those_of_one_process(case: str, two: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    out, report = two
    config = quick_config(*CASES[case])
    Trainer(config, tmp_path / "one").run()
    together, alone = records(out / case), records(tmp_path / "one")
    assert len(together) == len(alone) > 0
    for ours, theirs in zip(together, alone, strict=True):
        assert ours.keys() == theirs.keys()
        for key, value in theirs.items():
            assert ours[key] == pytest.approx(value, rel=1e-4, abs=1e-5), key
    if config.eval.tasks:
        assert records(out / case, "evaluations.jsonl") == records(tmp_path / "one", "evaluations.jsonl")
    for agent in ("solver_0", "verifier_0"):
        file = Path("adapters") / agent / "adapter_model.safetensors"
        ours, theirs = load_file(out / case / file), load_file(tmp_path / "one" / file)
        for name, weights in theirs.items():
            # AdamW divides by the size of a gradient, which blows up the last bits of one near zero. A lora_B starts
            # at zero, so that its norm is only what was learned.
            limit = 1e-3 if "lora_B" in name else 1e-4
            assert (ours[name] - weights).norm() <= limit * weights.norm(), name
    first, second = report[case]
    assert first == second, "the processes' adapters differ"


def test_checkpoints_are_read_again(two: tuple[Path, dict[str, Any]]) -> None:
    report = two[1]
    assert report["resumed"] == report["uneven"]


def test_a_stop_in_one_process_stops_both(two: tuple[Path, dict[str, Any]]) -> None:
    out, report = two
    assert report["paid"] == ["the budget is used up; raise budget"] * 2
    assert [record["step"] for record in records(out / "paid")] == [1]
    assert (out / "paid" / "checkpoints" / "step-000001" / "state.json").is_file()
    assert report["caught"] == ["mine", "mine"]


def test_gradients_are_added_up_and_missing_ones_count_as_zero(two: tuple[Path, dict[str, Any]]) -> None:
    assert two[1]["gradients"] == [[[11.0, 22.0], [5.0]]] * 2


@pytest.mark.parametrize(("total", "concurrency", "count"), [(7, 2, 3), (3, 64, 2), (1, 4, 2), (8, 4, 2), (5, 1, 2)])
def test_every_episode_is_played_once(total: int, concurrency: int, count: int) -> None:
    shares = [chunks(total, concurrency, Processes(rank, count)) for rank in range(count)]
    assert sorted(i for share in shares for part in share for i in part) == list(range(total))
    assert all(len(part) <= concurrency for share in shares for part in share)
    if total >= count:
        assert all(shares), "a process is idle"


def test_small_chunks_are_those_of_one_process() -> None:
    alone = chunks(10, 3, Processes())
    assert chunks(10, 3, Processes(0, 2)) == alone[::2]
    assert chunks(10, 3, Processes(1, 2)) == alone[1::2]


def test_a_plain_start_is_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert launched_processes("cpu").count == 1


@pytest.mark.parametrize(
    ("told", "error"),
    [
        ({**ZERO3, "ACCELERATE_DEEPSPEED_ZERO_STAGE": "2"}, "only stage 3"),
        ({"ACCELERATE_USE_MEGATRON_LM": "true"}, "configured for Megatron"),
        ({**FSDP, "FSDP_VERSION": "1"}, "only version 2"),
        ({**FSDP, "FSDP_ACTIVATION_CHECKPOINTING": "true"}, r"policy\.gradient_checkpointing"),
    ],
)
def test_other_ways_to_split_a_model_are_refused(
    told: dict[str, str], error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"WORLD_SIZE": "2", **told}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=error):
        launched_processes("cpu")


def test_a_model_that_learns_is_not_split() -> None:
    config = quick_config("policy.kind=full")
    with pytest.raises(ConfigError, match=r"policy\.kind=full cannot be split"):
        make_team(config, ["solver_0", "verifier_0"], sharding=Sharding())
