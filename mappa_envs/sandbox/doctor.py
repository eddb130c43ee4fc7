"""What this machine's sandbox gives, what it lacks and how to get more: the facts behind `mappa doctor`."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import threading
import time
from dataclasses import dataclass

from mappa_envs.errors import SandboxError
from mappa_envs.sandbox.base import Level, SandboxConfig
from mappa_envs.sandbox.cgroup import Cgroups
from mappa_envs.sandbox.layout import bubblewrap, find_layout
from mappa_envs.sandbox.probe import Refusal, best_server, reason

LACKS: dict[Level, tuple[str, ...]] = {
    Level.FULL: ("protection from faults of the Linux kernel itself",),
    Level.LANDLOCK: (
        "hiding that files outside exist: their names, sizes and times can be asked for (not their content)",
        "a process namespace: what cells start is killed with the kernel, by walking the process tree",
        "a size limit on the workspace: a watchdog kills the kernel some time after it is passed",
        "hiding socket files of the same user: a program that knows the path of one can connect to it",
        "an ordinary user's kernels a count of processes of their own: one that starts too many is killed",
        "pools and locks of `multiprocessing` to the cells: they need shared memory, which kernels would share",
    ),
    Level.UID: (
        "hiding files that every user may read, such as /etc and most of /usr",
        "hiding processes: names and arguments of all processes of the machine can be listed",
        "a process namespace: what cells start is killed with the kernel, by its user",
        "a size limit on the workspace: a watchdog kills the kernel some time after it is passed",
        "hiding socket files that every user may connect to, and abstract sockets",
    ),
    Level.NONE: (
        "any isolation: cells run as you, with your files, your processes and your network",
        "a limit on the number of processes and on the size of the workspace",
        "the end of daemons that left the kernel's process tree",
    ),
}
"""What each level does not give; tests hold the levels to this list."""


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """Facts about the sandbox on this machine."""

    level: Level
    """The best level that holds; 0 means that `allow_unsafe` would be needed."""
    refusals: tuple[Refusal, ...]
    """Why each higher level does not hold, and how to get it."""
    lacks: tuple[str, ...]
    """What `level` does not give."""
    bubblewrap: str | None
    """Path of the bubblewrap program, if there is one."""
    landlock_abi: int
    """Version of Landlock in the running Linux; 0 where there is none."""
    cgroups: bool
    """Whether `SandboxConfig.cgroups` would take effect here."""
    system: str
    """Operating system, its version and the machine type."""
    user: str
    """`root` or `ordinary user`."""
    start_seconds: float
    """Time to start the kernel server, with its imports; 0 at level 0."""
    kernel_seconds: float
    """Time to start one kernel on it; 0 at level 0."""

    def lines(self) -> list[str]:
        """Return the report as lines of text."""
        lines = [f"sandbox level {int(self.level)} of 3 ({self.level.name.lower()}), {self.system}, {self.user}"]
        lines.append(f"bubblewrap: {self.bubblewrap or 'not found'}; Landlock ABI: {self.landlock_abi or 'none'}")
        lines.append(f"control groups: {'usable' if self.cgroups else 'not writable'}")
        if self.level > Level.NONE:
            lines.append(f"server start {self.start_seconds:.1f} s, kernel start {self.kernel_seconds * 1000:.0f} ms")
        for refusal in self.refusals:
            lines.append(f"not level {int(refusal.level)}: {refusal.why}")
            lines.append(f"  to get it: {refusal.fix}")
        lines += [f"this level does not give {lack}" for lack in self.lacks]
        return lines


def report(config: SandboxConfig | None = None) -> DoctorReport:
    """Start a sandbox's server at the best level, look around in it and stop it again; takes some seconds.

    Args:
        config: Limits to try with; the defaults otherwise.

    Returns:
        The facts; a machine that can isolate nothing is a report, too, not an error.
    """
    result: list[DoctorReport | BaseException] = []

    def work() -> None:
        try:
            result.append(asyncio.run(_examine(config or SandboxConfig(min_idle=0))))
        except BaseException as error:
            result.append(error)

    # On a thread of its own, so that it can be called where an event loop runs already.
    thread = threading.Thread(target=work, name="mappa-doctor")
    thread.start()
    thread.join()
    if isinstance(result[0], BaseException):
        raise result[0]
    return result[0]


async def _examine(config: SandboxConfig) -> DoctorReport:
    abi = 0
    if sys.platform == "linux":
        from mappa_envs.sandbox.isolation import landlock_abi

        abi = landlock_abi()
    refusals: tuple[Refusal, ...]
    started, server = time.monotonic(), None
    try:
        server, refusals = await best_server(config, find_layout())
    except SandboxError as error:
        refusals = (Refusal(Level.UID, reason(error), error.fix),)
    ready = kernel = time.monotonic()
    level = Level.NONE
    if server is not None:
        level = server.level
        try:
            process = await server.spawn(await server.workspace())
            kernel = time.monotonic()
            await process.close()
        finally:
            await server.close()
    return DoctorReport(
        level=level,
        refusals=refusals,
        lacks=LACKS[level],
        bubblewrap=bubblewrap() if sys.platform == "linux" else None,
        landlock_abi=abi,
        cgroups=Cgroups().usable,
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        user="root" if hasattr(os, "getuid") and os.getuid() == 0 else "ordinary user",
        start_seconds=ready - started if server is not None else 0.0,
        kernel_seconds=kernel - ready,
    )
