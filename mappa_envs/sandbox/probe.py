"""Finding out what isolation this machine gives: start the real thing and look around inside, level by level."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from typing import Any

from mappa_envs.errors import SandboxError
from mappa_envs.sandbox import layout as layouts
from mappa_envs.sandbox.base import Level, SandboxConfig
from mappa_envs.sandbox.server import Server


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a level cannot be had here."""

    level: Level
    why: str
    fix: str


async def best_server(config: SandboxConfig, layout: layouts.Layout) -> tuple[Server | None, tuple[Refusal, ...]]:
    """Start a server at the highest level that holds what it promises.

    Args:
        config: Limits; levels above `max_level` or below `require_level` are not tried.
        layout: Files that kernels need.

    Returns:
        The running server, or None if no level holds, and why each higher level was refused.
    """
    refusals: list[Refusal] = []
    for level in (Level.FULL, Level.LANDLOCK, Level.UID):
        if not max(config.require_level, Level.UID) <= level <= config.max_level:
            continue
        why = impossible(level)
        if why is None:
            server, why = await _tried(level, config, layout)
            if server is not None:
                return server, tuple(refusals)
        refusals.append(Refusal(level, why, fix_for(level, why)))
    return None, tuple(refusals)


def impossible(level: Level) -> str | None:
    """Return why `level` need not even be tried here, or None."""
    if sys.platform != "linux":
        return f"{sys.platform} has neither namespaces nor Landlock, and forking a process with libraries is unsafe"
    from mappa_envs.sandbox.isolation import landlock_abi
    from mappa_envs.sandbox.syscalls import MACHINE

    if MACHINE not in ("x86_64", "aarch64"):
        return f"no system call table for {MACHINE}"
    if level == Level.FULL and layouts.bubblewrap() is None:
        return "bubblewrap is not installed"
    if level == Level.LANDLOCK and landlock_abi() < 1:
        return "this kernel has no Landlock (it needs Linux 5.13 or later, and Landlock in its `lsm=` list)"
    if level == Level.UID and os.getuid() != 0:
        return "only root can give every kernel a user of its own"
    return None


async def _tried(level: Level, config: SandboxConfig, layout: layouts.Layout) -> tuple[Server | None, str]:
    try:
        server = await Server.launch(level, config, layout)
    except (SandboxError, OSError) as error:
        return None, reason(error)
    try:
        space = await server.workspace()
        process = await server.spawn(space, probe=True)
        if level == Level.FULL:
            await server.attach(process, space)
        faults = judge(level, process.facts or {})
        await process.close()
        await space.close()
    except (SandboxError, OSError) as error:
        faults = [reason(error)]
    except asyncio.CancelledError:
        await server.close()
        raise
    if faults:
        await server.close()
        return None, "; ".join(faults)
    return server, ""


def reason(error: Exception) -> str:
    """Return what an error got, in one line."""
    text = error.got or error.what if isinstance(error, SandboxError) else str(error)
    return " ".join(text.split())[:500]


def judge(level: Level, facts: dict[str, Any]) -> list[str]:
    """Compare what a kernel saw around itself with what its level promises.

    Args:
        level: The level that is claimed.
        facts: From `confine.facts`.

    Returns:
        What is wrong; empty if nothing is.
    """
    faults = []
    status = facts.get("status") or {}
    if facts.get("import_error"):
        faults.append(f"kernels cannot read the interpreter's files: {facts['import_error']}")
    if facts.get("visible"):
        faults.append("kernels can see files of the host")
    if facts.get("writable"):
        faults.append(f"kernels can write to {', '.join(facts['writable'])}")
    if facts.get("network"):
        faults.append("kernels can open network sockets")
    if level == Level.FULL:
        if status.get("Seccomp") != "2" or status.get("NoNewPrivs") != "1":
            faults.append("seccomp is not in force")
        if int(status.get("CapEff") or "1", 16) != 0:
            faults.append("kernels have capabilities")
        if facts.get("interfaces") not in ([], ["lo"]):
            faults.append(f"kernels see network interfaces: {facts.get('interfaces')}")
        if status.get("NSpid") != "2":
            faults.append("kernels are not in a process namespace of their own")
    return faults


def fix_for(level: Level, why: str) -> str:
    """Return what a user can do about a refusal."""
    if "seccomp" in why or "system call table" in why or sys.platform != "linux":
        return "run on Linux (x86_64 or aarch64)"
    if "interpreter" in why:
        return "install Python and the packages where every user can read them, outside root's home"
    if level == Level.FULL:
        if "not installed" in why:
            return "install bubblewrap (apt install bubblewrap) or the extra mappa-gym[sandbox]"
        return (
            "allow user namespaces: on Ubuntu 24.04 `sysctl kernel.apparmor_restrict_unprivileged_userns=0`; on Debian "
            "`sysctl kernel.unprivileged_userns_clone=1`; in Docker `--security-opt seccomp=unconfined "
            "--security-opt apparmor=unconfined --security-opt systempaths=unconfined`"
        )
    if level == Level.LANDLOCK:
        return "use a Linux kernel of 5.13 or later with Landlock enabled, and a container that does not filter it"
    return "run as root, or get level 2 or 3"
