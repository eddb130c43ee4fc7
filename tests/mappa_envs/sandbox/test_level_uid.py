"""What level 1 (a user of its own per kernel) holds, and that what it does not hold is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Box

from mappa_envs import background
from mappa_envs.sandbox import Level
from mappa_envs.sandbox.doctor import LACKS


def test_uid_only_kernels_have_users_of_their_own(uid_only: Box) -> None:
    with uid_only.episode(agents=2) as (_, first, second):
        users = {background.run(kernel.execute("import os; os.getuid()")).output for kernel in (first, second)}
    assert len(users) == 2 and "0\n" not in users


def test_uid_only_private_files_of_the_host_cannot_be_read(uid_only: Box, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("42")
    secret.chmod(0o600)
    for parent in (tmp_path, *tmp_path.parents[:-1]):
        parent.chmod(parent.stat().st_mode | 0o011)
    assert uid_only.cell(f"open({str(secret)!r}).read()").error_name == "PermissionError"


@pytest.mark.parametrize(
    ("code", "lack"),
    [
        ("open('/etc/passwd').read()[:0]", "hiding files that every user may read"),
        ("import os; os.path.exists('/proc/1/cmdline') and ''", "hiding processes"),
        ("import os; os.stat('/root') and ''", "hiding files that every user may read"),
    ],
)
def test_uid_only_what_it_cannot_hold_is_reported(uid_only: Box, code: str, lack: str) -> None:
    assert uid_only.cell(code).output == "''\n"
    assert any(lack in text for text in LACKS[Level.UID])


def test_uid_only_another_kernels_private_folders_are_shut(uid_only: Box) -> None:
    with uid_only.episode() as (_, victim), uid_only.episode() as (_, kernel):
        home = background.run(victim.execute("import os; print(os.environ['HOME'])")).output.strip()
        assert background.run(kernel.execute(f"import os; os.listdir({home!r})")).error_name == "PermissionError"
        connect = f"import socket; socket.socket(socket.AF_UNIX).connect({victim.process.prefix + '-1'!r})"
        assert background.run(kernel.execute(connect)).error_name == "PermissionError"
