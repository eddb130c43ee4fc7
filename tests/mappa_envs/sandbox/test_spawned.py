"""Level 0: no isolation, but the same protocol, deadlines and bounds."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import CANARY, LIMITS, SLACK, Box, eventually, processes_with

from mappa_envs import background
from mappa_envs.errors import SandboxError
from mappa_envs.sandbox import Level, SandboxConfig, open_sandbox
from mappa_envs.sandbox.doctor import LACKS
from mappa_envs.sandbox.spawned import describe_exit


@pytest.fixture(scope="module")
def plain(_canary: None) -> Iterator[Box]:
    config = SandboxConfig(**{**LIMITS, "max_level": 0, "allow_unsafe": True})
    box = Box(background.run(open_sandbox(config)))  # type: ignore[arg-type]
    yield box
    background.run(box.sandbox.close())


def test_cells_share_a_workspace_but_no_variables(plain: Box) -> None:
    with plain.episode(agents=2) as (space, first, second):
        background.run(space.write("a.txt", b"given"))
        assert background.run(first.execute("x = 1; open('a.txt').read()")).output == "'given'\n"
        assert background.run(second.execute("x")).error_name == "NameError"
        assert os.environ["MAPPA_TEST_SECRET"] == CANARY
        assert background.run(first.execute(f"import os; {CANARY!r} in str(os.environ)")).output == "False\n"


def test_the_deadline_holds_and_the_workspace_survives(plain: Box) -> None:
    with plain.episode() as (space, kernel):
        assert background.run(kernel.execute("x = 7\nwhile True: pass", timeout=0.5)).status == "timeout"
        assert background.run(kernel.execute("open('kept', 'w').write('1'); x")).output == "7\n"
        started = time.monotonic()
        result = background.run(kernel.execute("sum(range(10**11))", timeout=0.5))
        assert result.status == "timeout_killed" and not kernel.alive
        assert time.monotonic() - started < 0.5 + plain.config.grace + SLACK
        assert background.run(space.read("kept", 10)) == b"1"


def test_death_and_memory_are_reported(plain: Box) -> None:
    assert plain.cell("import os; os._exit(3)").output == "[the Python process ended: exit status 3]\n"
    assert plain.cell("hoard = []\nwhile True: hoard.append(bytearray(10_000_000))", timeout=20).status in (
        "error",
        "died",
    )


def test_children_die_with_the_kernel(plain: Box) -> None:
    marker = "67891.2"
    with plain.episode() as (_, kernel):
        background.run(kernel.execute(f"import subprocess; p = subprocess.Popen(['sleep', '{marker}'])"))
        assert processes_with(marker)
    assert eventually(lambda: not processes_with(marker))


def test_what_level_0_cannot_hold_is_reported(plain: Box, tmp_path: Path) -> None:
    (tmp_path / "truth").write_text("42")
    assert plain.cell(f"open({str(tmp_path / 'truth')!r}).read()").output == "'42'\n"
    assert plain.level == Level.NONE
    assert any("cells run as you" in lack for lack in LACKS[Level.NONE])


def test_a_workspace_of_another_kind_and_a_closed_sandbox_are_refused(plain: Box) -> None:
    with pytest.raises(SandboxError, match="needs a workspace of this sandbox"):
        background.run(plain.sandbox.kernel(object()))  # type: ignore[arg-type]


@pytest.mark.parametrize(("code", "words"), [(0, "exit status 0"), (-9, "killed by SIGKILL"), (-250, "killed by 250")])
def test_ends_are_described_in_words(code: int, words: str) -> None:
    assert describe_exit(code) == words
