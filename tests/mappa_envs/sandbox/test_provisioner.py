"""Stock Jupyter tools on sandboxed kernels."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from conftest import CANARY, Box
from jupyter_client.manager import KernelManager
from jupyter_client.provisioning import KernelProvisionerFactory
from nbclient import NotebookClient

from mappa_envs.sandbox.shared import close_shared


@pytest.fixture
def manager(full: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KernelManager]:
    """A stock KernelManager whose kernelspec asks for the sandbox by its entry point."""
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


def test_nbclient_runs_a_notebook_unchanged(manager: KernelManager) -> None:
    cells = ["import math\nx = math.comb(6, 3)", "print(x)\nx + 1"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    NotebookClient(notebook, kernel_name=manager.kernel_name, timeout=30).execute()
    stream, result = notebook.cells[1].outputs
    assert stream.text == "20\n"
    assert result.data["text/plain"] == "21"
