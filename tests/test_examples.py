from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@dataclass(frozen=True)
class Run:
    """How an example is run, where it needs more than its file."""

    needs: str
    """A package; the example is skipped without it."""
    slow: bool = False
    quiet: bool = True
    """Whether it may neither warn nor print to stderr."""


PARTICULAR = {
    "openai_server": Run("torch", slow=True),
    "rllib_pettingzoo": Run("ray", slow=True, quiet=False),
    "trl_grpo_one_role": Run("trl", slow=True, quiet=False),
}

LEARNING = ("sb3_choice", "sb3_token_level")
"""Examples that are run by a test of what they print."""


def run(example: Path, folder: Path, *, quiet: bool = True) -> str:
    flags = ["-W", "error"] if quiet else []
    result = subprocess.run(
        [sys.executable, *flags, str(example)], cwd=folder, capture_output=True, text=True, timeout=280
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert not quiet or not result.stderr.strip()
    return result.stdout


def _cases() -> list[object]:
    slow = [pytest.mark.slow]
    marks = {name: slow for name, particular in PARTICULAR.items() if particular.slow}
    others = [example for example in EXAMPLES if example.stem not in LEARNING]
    return [pytest.param(example, id=example.stem, marks=marks.get(example.stem, ())) for example in others]


@pytest.mark.parametrize("example", _cases())
def test_the_example_runs(example: Path, tmp_path: Path) -> None:
    particular = PARTICULAR.get(example.stem)
    if particular is None:
        assert run(example, tmp_path).strip()
        return
    if importlib.util.find_spec(particular.needs) is None:
        pytest.skip(f"{particular.needs} is not installed")
    assert run(example, tmp_path, quiet=particular.quiet).strip()


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNING)
def test_the_return_rises_for_three_seeds(name: str, tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    (example,) = (path for path in EXAMPLES if path.stem == name)
    lines = run(example, tmp_path).splitlines()
    gains = [float(after) - float(before) for before, after in (numbers(line) for line in lines)]
    assert len(gains) == 3
    assert min(gains) >= 0.29  # the example's margin is 0.3, of numbers that it prints rounded


def numbers(line: str) -> tuple[str, str]:
    before, after = line.partition("mean return ")[2].split(" before, ")
    return before, after.removesuffix(" after")
