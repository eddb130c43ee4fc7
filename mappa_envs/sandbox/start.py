"""Opening a sandbox at the best level that the machine gives."""

from __future__ import annotations

from mappa_envs.errors import SandboxError
from mappa_envs.sandbox.base import Sandbox, SandboxConfig


async def open_sandbox(config: SandboxConfig) -> Sandbox:
    """Start a sandbox on the running event loop.

    Args:
        config: Limits, and the isolation level that is required.

    Raises:
        SandboxError: If the machine cannot give `require_level`, or can give none and `allow_unsafe` is false.
    """
    from mappa_envs.sandbox.spawned import SpawnedSandbox

    return SpawnedSandbox(config)
