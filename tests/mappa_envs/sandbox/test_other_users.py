"""The same attacks as an ordinary user, and at level 1, in a child process of its own.

Python often lies where only root can read, so the child gets its own mount namespace in which interpreter,
packages and checkout are bound to a folder that everybody can read.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mappa_envs.sandbox.layout import find_layout

ROOT = Path(__file__).parents[3]
HERE = "tests/mappa_envs/sandbox"
USER = "61234"

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0 or not shutil.which("setpriv") or not shutil.which("unshare"),
    reason="needs root (an ordinary user's own run of the other tests covers this) and util-linux",
)


def _pytest(user: str | None, levels: str, *arguments: str) -> str:
    """Run tests in a child as `user` (None: root) and return what it printed; all must pass, none be skipped."""
    layout = find_layout()
    stage = Path("/tmp") / f"mappa-stage-{os.getpid()}"
    places = {layout.prefixes[0] if not layout.world_readable else "": "python", str(ROOT): "checkout"}
    places |= {path: f"packages{number}" for number, path in enumerate(layout.packages)}
    commands = ["set -e"]
    for source, name in places.items():
        if source:
            commands.append(f"mkdir -p {stage}/{name} && mount --bind {source} {stage}/{name}")
    python = layout.python
    if not layout.world_readable:
        python = f"{stage}/python/{Path(layout.python).relative_to(layout.prefixes[0])}"
    packages = [f"{stage}/{places[path]}" for path in layout.packages]
    # Not below pytest's own folder, which any other pytest run of the same user shuts again.
    home = stage / "home"
    home.mkdir(parents=True)
    home.chmod(0o777)
    drop = f"setpriv --reuid {user} --regid {user} --clear-groups " if user is not None else ""
    environment = (
        f"env -i HOME={home} TMPDIR={home} HYPOTHESIS_STORAGE_DIRECTORY={home} LOGNAME=tester "
        f"PATH=/usr/bin:/bin LANG=C.UTF-8 MAPPA_TEST_LEVELS='{levels}' "
        f"LD_LIBRARY_PATH={stage}/python/lib OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 "
        f"PYTHONPATH={':'.join([*packages, f'{stage}/checkout'])} "
    )
    quoted = " ".join(f"'{argument}'" for argument in arguments)
    commands.append(f"cd {stage}/checkout")
    commands.append(f"exec {drop}{environment}{python} -m pytest -p no:cacheprovider -q -rs {quoted}")
    try:
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", "\n".join(commands)], capture_output=True, text=True, timeout=280
        )
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


CORE = (
    "fork_bomb or memory_bomb or many_files or daemons or privileged_system or no_variable or share_files or host_reads"
)
FILES = (f"{HERE}/test_attacks_on_limits.py", f"{HERE}/test_attacks_on_walls.py", f"{HERE}/test_files.py")


def test_an_ordinary_user_gets_levels_3_and_2() -> None:
    printed = _pytest(USER, "full landlocked", *FILES, "-k", CORE)
    assert "[100%]" in printed and "SKIPPED" not in printed


@pytest.mark.slow
def test_root_without_namespaces_and_landlock_gets_level_1() -> None:
    tests = (*FILES, f"{HERE}/test_level_uid.py")
    printed = _pytest(None, "uid_only", *tests, "-k", f"{CORE} or test_uid_only or of_other_episodes")
    assert "[100%]" in printed and "SKIPPED" not in printed


@pytest.mark.slow
def test_level_1_holds_every_attack_or_reports_it() -> None:
    printed = _pytest(None, "uid_only", *FILES, f"{HERE}/test_kernels.py", "-k", "uid_only")
    assert "[100%]" in printed and "SKIPPED" not in printed


@pytest.mark.slow
def test_an_ordinary_user_holds_every_attack() -> None:
    everything = [f"{HERE}/{name}.py" for name in ("test_attacks_on_limits", "test_attacks_on_walls", "test_files")]
    printed = _pytest(USER, "full landlocked", *everything, f"{HERE}/test_kernels.py")
    assert "[100%]" in printed and "SKIPPED" not in printed
