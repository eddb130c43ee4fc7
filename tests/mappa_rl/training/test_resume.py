"""Runs that are killed with SIGKILL and resumed write, byte for byte, what an uninterrupted run writes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from quick_team import written

HERE = Path(__file__).parent


def worker(*arguments: object) -> str:
    env = {**os.environ, "PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", str(HERE / "killed_run.py"), *map(str, arguments)]
    return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], list[str]]:
    folder = tmp_path_factory.mktemp("whole") / "run"
    events = json.loads(worker("count", folder).splitlines()[-1])
    return written(folder), events


@pytest.mark.timeout(1200)
def test_killed_before_and_after_the_first_checkpoint(
    whole: tuple[dict[str, bytes], list[str]], tmp_path: Path
) -> None:
    files, events = whole
    # The first dies while the first checkpoint is being written; the second, which starts anew, in the last step.
    first = next(i for i, event in enumerate(events) if "step-000001.unfinished/state.json" in event)
    second = [i for i, event in enumerate(events) if event == "forward"][-10]
    worker("kill", tmp_path / "run", first + 1, second + 1)
    assert written(tmp_path / "run") == files


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_killed_at_ten_random_places(whole: tuple[dict[str, bytes], list[str]], tmp_path: Path) -> None:
    files, events = whole
    for seed in range(10):
        place = random.Random(seed).randrange(1, len(events))
        worker("kill", tmp_path / str(seed), place)
        assert written(tmp_path / str(seed)) == files, f"killed at {place} of {len(events)}: {events[place - 1]}"
