"""Opening a sandbox at the best level that the machine gives."""

from __future__ import annotations

import logging

from mappa_envs.errors import SandboxError
from mappa_envs.sandbox.base import Level, Sandbox, SandboxConfig

_log = logging.getLogger(__name__)


async def open_sandbox(config: SandboxConfig) -> Sandbox:
    """Start a sandbox on the running event loop.

    Below level 3 it says so, and why, as a warning of the log.

    Args:
        config: Limits, and the isolation level that is required.

    Raises:
        SandboxError: If the machine cannot give `require_level`, or can give none and `allow_unsafe` is false.
    """
    from mappa_envs.sandbox.forked import ForkedSandbox
    from mappa_envs.sandbox.layout import find_layout
    from mappa_envs.sandbox.probe import best_server
    from mappa_envs.sandbox.spawned import SpawnedSandbox

    if config.max_level < config.require_level:
        raise SandboxError(
            "no isolation level is allowed", expected="require_level <= max_level",
            got=f"require_level={int(config.require_level)}, max_level={int(config.max_level)}",
        )  # fmt: skip
    layout = find_layout()
    server, refusals = await best_server(config, layout)
    reasons = "\n".join(f"level {int(refusal.level)}: {refusal.why}" for refusal in refusals)
    fixes = "; or ".join(dict.fromkeys(refusal.fix for refusal in refusals))
    if server is None:
        if config.require_level > Level.NONE:
            raise SandboxError(
                f"this machine cannot isolate agent code at level {int(config.require_level)}",
                expected=f"level {int(config.require_level)} or higher", got=reasons, fix=fixes,
            )  # fmt: skip
        if not config.allow_unsafe:
            raise SandboxError(
                "this machine cannot isolate agent code", expected="level 1 or higher", got=reasons or "max_level=0",
                fix=f"{fixes or 'raise max_level'}; or accept the risk with allow_unsafe=True: "
                "agent code then runs with your files and your network",
            )  # fmt: skip
        _log.warning("the sandbox runs at level 0: agent code has your files and your network in reach")
        return SpawnedSandbox(config)
    if server.level < min(Level.FULL, config.max_level):
        _log.warning("the sandbox runs at level %d, not 3 (%s); fix: %s", server.level, reasons, fixes)
    return ForkedSandbox(server, layout)
