"""The files and commands of the README, as a reader would copy them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
COMMAND = "import sys; from mappa_rl.cli import main; sys.argv[0] = 'mappa'; main()"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the README's files: blocks whose first line is a comment with the name."""
    files = re.findall(r"^```\w+\n# (\w+\.(?:py|yaml))\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert [name for name, _ in files] == ["my_env.py", "my_algorithm.py", "my_topology.py", "mine.yaml"]
    for name, text in files:
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def mappa(folder: Path, *arguments: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments], cwd=folder, capture_output=True, text=True, timeout=280
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_each_file_is_under_thirty_lines(folder: Path) -> None:
    for path in folder.glob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) < 30, path.name


@pytest.mark.slow
def test_an_environment_and_a_topology_of_ones_own_are_compared(folder: Path) -> None:
    text = mappa(
        folder,
        "bench",
        "mine.yaml",
        "topologies=['my_topology:TWO_PLANS']",
        "policies={oracle: {play: scripted}}",
        "seeds=[0]",
        "settings.eval.tasks=2",
    )
    assert "squares / my_topology:TWO_PLANS / oracle, seed 0: success 100.0 %" in text


@pytest.mark.slow
def test_the_commands_of_the_three_stories_run(folder: Path) -> None:
    assert "outcome: success" in mappa(folder, "play", "my_env:Mine/Squares-v0")
    assert "planner_1" in mappa(folder, "play", "Mappa/MathChat-v0", "env.kwargs.topology=my_topology:TWO_PLANS")
    small = ["steps=1", "rollout.tasks_per_step=2", "eval.tasks=2", "policy.max_new_tokens=64"]
    algorithm = ["algorithm.name=my_algorithm:MyReinforce", "algorithm.kwargs.baseline=0.4"]
    assert "held-out success after" in mappa(folder, "train", *small, *algorithm)
    settings = [f"settings.{setting}" for setting in small]
    text = mappa(folder, "bench", "mine.yaml", *settings)
    assert "18/18" in text
    assert "| algorithm | squares / chain / trained " in text
