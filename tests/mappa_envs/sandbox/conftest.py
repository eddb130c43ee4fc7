"""Real sandboxes, one per level and test session; every cell runs in a fresh kernel."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mappa_envs import background
from mappa_envs.errors import SandboxError
from mappa_envs.sandbox import CellResult, Level, SandboxConfig, open_sandbox
from mappa_envs.sandbox.forked import ForkedSandbox

CANARY = f"CANARY-{secrets.token_hex(8)}"
LIMITS: dict[str, Any] = {
    "timeout": 3.0, "grace": 0.5, "memory_mb": 400, "max_processes": 30, "disk_mb": 24, "output_chars": 4000,
    "min_idle": 0,
}  # fmt: skip
SLACK = 2.0
"""Seconds beyond timeout and grace that the hard deadline may take on a busy machine."""


class Box:
    """A sandbox with blocking calls."""

    def __init__(self, sandbox: ForkedSandbox) -> None:
        self.sandbox = sandbox
        self.level = sandbox.level
        self.config = sandbox.config

    @contextlib.contextmanager
    def episode(self, agents: int = 1) -> Iterator[Any]:
        """Yield a workspace and kernels in it; nothing of them is left afterwards."""
        space = background.run(self.sandbox.workspace())
        kernels: list[Any] = []
        try:
            kernels += [background.run(self.sandbox.kernel(space)) for _ in range(agents)]
            yield (space, *kernels)
        finally:
            for kernel in kernels:
                background.run(kernel.close())
            background.run(space.close())

    def cell(self, *codes: str, timeout: float | None = None) -> CellResult:
        """Run cells in one fresh kernel and return the last one's result."""
        with self.episode() as (_, kernel):
            for code in codes:
                result = background.run(kernel.execute(code, timeout=timeout))
            return result


def open_box(level: Level, **changes: Any) -> Box:
    """Open a sandbox at exactly `level`, or skip with the reason why this machine has none."""
    config = SandboxConfig(**{**LIMITS, "max_level": level, "require_level": level, **changes})
    try:
        return Box(background.run(open_sandbox(config)))
    except SandboxError as error:
        pytest.skip(f"level {int(level)} is not to be had here: {error.got}")


def processes_with(marker: str) -> list[int]:
    """Return the processes of this machine whose arguments contain `marker`."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if marker.encode() in (folder / "cmdline").read_bytes() and int(folder.name) != os.getpid():
                found.append(int(folder.name))
    return found


def eventually(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Wait until `condition` holds; False if it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture(scope="session", autouse=True)
def _canary() -> Iterator[None]:
    os.environ["MAPPA_TEST_SECRET"] = CANARY
    yield
    del os.environ["MAPPA_TEST_SECRET"]


def _session_box(level: Level) -> Iterator[Box]:
    box = open_box(level)
    yield box
    background.run(box.sandbox.close())


@pytest.fixture(scope="session")
def full(_canary: None) -> Iterator[Box]:
    """A sandbox at level 3."""
    yield from _session_box(Level.FULL)


@pytest.fixture(scope="session")
def landlocked(_canary: None) -> Iterator[Box]:
    """A sandbox at level 2."""
    yield from _session_box(Level.LANDLOCK)


@pytest.fixture(scope="session")
def uid_only(_canary: None) -> Iterator[Box]:
    """A sandbox at level 1."""
    yield from _session_box(Level.UID)


@pytest.fixture(params=os.environ.get("MAPPA_TEST_LEVELS", "full landlocked").split())
def box(request: pytest.FixtureRequest) -> Box:
    """Each of the isolating levels in turn."""
    return request.getfixturevalue(request.param)
