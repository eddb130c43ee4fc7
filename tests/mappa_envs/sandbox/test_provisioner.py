"""Stock Jupyter tools on sandboxed kernels."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import CANARY, Box
from jupyter_client.manager import KernelManager
from jupyter_client.provisioning import KernelProvisionerFactory

from mappa_envs.sandbox.shared import close_shared


@pytest.fixture
def manager(full: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KernelManager]:
    """A stock KernelManager whose kernelspec asks for the sandbox by entry point, as an installed package would."""
    dist = tmp_path / "site" / "mappa_test-1.dist-info"
    dist.mkdir(parents=True)
    (dist / "METADATA").write_text("Metadata-Version: 2.1\nName: mappa-test\nVersion: 1\n")
    (dist / "entry_points.txt").write_text(
        "[jupyter_client.kernel_provisioners]\nmappa-sandbox = mappa_envs.sandbox.provisioner:SandboxProvisioner\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    spec = tmp_path / "jupyter" / "kernels" / "sandboxed"
    spec.mkdir(parents=True)
    stanza = {"provisioner_name": "mappa-sandbox", "config": {"limits": {"require_level": 3, "memory_mb": 400}}}
    facts = {"argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "language": "python"}
    facts |= {"display_name": "sandboxed", "interrupt_mode": "message", "metadata": {"kernel_provisioner": stanza}}
    (spec / "kernel.json").write_text(json.dumps(facts))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    KernelProvisionerFactory.clear_instance()
    manager = KernelManager(kernel_name="sandboxed")
    yield manager
    if manager.has_kernel:
        manager.shutdown_kernel(now=True)
    manager.cleanup_resources()
    close_shared()
    KernelProvisionerFactory.clear_instance()


def _run(client: object, code: str) -> str:
    texts: list[str] = []

    def hook(message: dict[str, object]) -> None:
        content = message["content"]
        assert isinstance(content, dict)
        if message["msg_type"] == "stream":
            texts.append(content["text"])
        elif message["msg_type"] == "execute_result":
            texts.append(content["data"]["text/plain"])
        elif message["msg_type"] == "error":
            texts.append(content["ename"])

    client.execute_interactive(code, output_hook=hook, timeout=20, allow_stdin=False)  # type: ignore[attr-defined]
    return "".join(texts)


def test_a_stock_kernel_manager_runs_interrupts_restarts_and_shuts_down(manager: KernelManager) -> None:
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=20)
        assert _run(client, "x = 21; print(x * 2)") == "42\n"
        assert _run(client, f"import os; os.path.exists({__file__!r})") == "False"
        assert _run(client, f"{CANARY[:12]!r} in str(os.environ)") == "False"
        assert manager.is_alive()

        message = client.execute("print('begun', flush=True)\nwhile True: pass")
        while client.get_iopub_msg(timeout=20)["content"].get("text") != "begun\n":
            pass
        manager.interrupt_kernel()
        reply = client.get_shell_msg(timeout=20)
        while reply["parent_header"].get("msg_id") != message:
            reply = client.get_shell_msg(timeout=20)
        assert reply["content"]["ename"] == "KeyboardInterrupt"

        manager.restart_kernel(now=True)
        client.wait_for_ready(timeout=20)
        assert _run(client, "x") == "NameError"
        manager.shutdown_kernel(now=True)
        assert not manager.is_alive()
    finally:
        client.stop_channels()


def test_a_kernel_shut_down_by_a_client_is_noticed(manager: KernelManager) -> None:
    from conftest import eventually

    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=20)
        client.shutdown()
        assert eventually(lambda: not manager.is_alive(), 10)
    finally:
        client.stop_channels()
