"""Control groups for kernels: memory and processes of the whole tree, enforced by Linux, where this process may.

A backstop to rlimits and watchdog. Moving one process into one group takes up to 10 ms, mostly waiting.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from pathlib import Path

from mappa_envs.sandbox.base import SandboxConfig

ROOT = Path("/sys/fs/cgroup")
KERNEL_MB = 256
"""MiB beyond `memory_mb` that a group may hold: the kernel's own pages, and files of its tmpfs are charged, too."""


class Cgroups:
    """Makes one group per kernel and controller beneath this process's own groups.

    Args:
        root: Where control groups are mounted.
        table: Text of `/proc/self/cgroup`.
    """

    def __init__(self, root: Path = ROOT, table: str | None = None) -> None:
        if table is None:
            with contextlib.suppress(OSError):
                table = Path("/proc/self/cgroup").read_text()
        self._folders = _writable_folders(root, table or "")

    @property
    def usable(self) -> bool:
        """Whether at least the memory of kernels can be held by a group."""
        return any(kind != "pids" for kind in self._folders)

    def hold(self, pids: list[int], config: SandboxConfig) -> list[Path]:
        """Move processes into groups of their own; what they start later is held as well.

        Args:
            pids: Processes, as numbered on the host.
            config: Limits.

        Returns:
            The groups, for `release`.

        Raises:
            OSError: If a group cannot be made after all.
        """
        memory = (config.memory_mb + config.disk_mb + KERNEL_MB) * 2**20
        tasks = 2 * config.max_processes + 64
        limits = {
            "memory": {"memory.limit_in_bytes": memory},
            "pids": {"pids.max": tasks},
            "unified": {"memory.max": memory, "memory.swap.max": 0, "pids.max": tasks},
        }
        groups = []
        for kind, folder in self._folders.items():
            group = folder / f"mappa-{uuid.uuid4().hex[:12]}"
            group.mkdir()
            groups.append(group)
            for name, value in limits[kind].items():
                if (group / name).exists():
                    (group / name).write_text(str(value))
            for pid in pids:
                (group / "cgroup.procs").write_text(str(pid))
        return groups


def release(groups: list[Path]) -> None:
    """Remove groups whose processes have ended; blocks for a moment while Linux still counts them."""
    for group in groups:
        for _ in range(50):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.02)


def _writable_folders(root: Path, table: str) -> dict[str, Path]:
    """Return the folder to make groups in, by controller (version 1) or as `unified` (version 2)."""
    found: dict[str, Path] = {}
    for line in table.splitlines():
        _, controllers, path = line.split(":", 2)
        names = set(controllers.split(","))
        for name in names & {"memory", "pids"}:
            found[name] = root / controllers / path.lstrip("/")
        if controllers == "":
            own = root / path.lstrip("/")
            # A group with processes may not share out controllers, so kernels go beside this process, not beneath.
            beside = own.parent if own != root else own
            with contextlib.suppress(OSError):
                if "memory" in (beside / "cgroup.subtree_control").read_text().split():
                    found["unified"] = beside
    return {kind: folder for kind, folder in found.items() if os.access(folder, os.W_OK)}


def host_pid(pidfd: int) -> int | None:
    """Return the number, on the host, of the process behind a pidfd; None if it has ended."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text().splitlines():
            if line.startswith("Pid:"):
                pid = int(line.split()[1])
                return pid if pid > 0 else None
    return None
