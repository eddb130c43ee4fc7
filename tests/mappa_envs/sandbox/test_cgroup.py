"""Finding control groups, and real ones where this process may make them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Level, eventually, open_box

from mappa_envs import background
from mappa_envs.sandbox.cgroup import Cgroups, host_pid


def test_version_1_groups_are_found_by_controller(tmp_path: Path) -> None:
    for name in ("memory", "pids"):
        (tmp_path / name / "own").mkdir(parents=True)
    groups = Cgroups(tmp_path, "4:memory:/own\n8:pids:/own\n1:cpu,cpuacct:/own\n0::/\n")
    assert groups.usable
    assert groups._folders == {"memory": tmp_path / "memory" / "own", "pids": tmp_path / "pids" / "own"}


def test_version_2_groups_go_beside_this_process_where_memory_is_shared_out(tmp_path: Path) -> None:
    (tmp_path / "slice" / "own").mkdir(parents=True)
    control = tmp_path / "slice" / "cgroup.subtree_control"
    control.write_text("cpu pids\n")
    assert not Cgroups(tmp_path, "0::/slice/own\n").usable
    control.write_text("cpu memory pids\n")
    assert Cgroups(tmp_path, "0::/slice/own\n")._folders == {"unified": tmp_path / "slice"}


@pytest.mark.parametrize("table", ["", "0::/missing\n", "4:memory:/missing\n"])
def test_without_a_writable_folder_nothing_is_usable(tmp_path: Path, table: str) -> None:
    assert not Cgroups(tmp_path, table).usable


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="no pidfd")
def test_the_process_behind_a_pidfd_is_named_until_it_ends() -> None:
    descriptor = os.pidfd_open(os.getpid())
    assert host_pid(descriptor) == os.getpid()
    os.close(descriptor)
    assert host_pid(descriptor) is None


@pytest.mark.skipif(not Cgroups().usable, reason="this process may not make control groups")
def test_a_kernel_is_held_by_a_group_of_its_own_that_goes_with_it() -> None:
    box = open_box(Level.FULL, cgroups=True)
    try:
        with box.episode() as (_, kernel):
            groups = kernel.process._groups
            assert groups and all(len((group / "cgroup.procs").read_text().split()) == 2 for group in groups)
            for group in groups:
                if (limit := group / "memory.limit_in_bytes").exists():
                    assert int(limit.read_text()) == (400 + 24 + 256) * 2**20
            start = "import subprocess; p = subprocess.Popen(['sleep', '60'], start_new_session=True)"
            background.run(kernel.execute(start))
            assert all(len((group / "cgroup.procs").read_text().split()) == 3 for group in groups)
        assert eventually(lambda: not any(group.exists() for group in groups))
    finally:
        background.run(box.sandbox.close())
