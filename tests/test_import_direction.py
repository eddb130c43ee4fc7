"""Imports run one way only: mappa_rl -> mappa_envs -> envs_registry; and the lower two stay light."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ORDER = ("envs_registry", "mappa_envs", "mappa_rl")
HEAVY = ("torch", "transformers", "peft", "accelerate", "safetensors", "tensorboard")


def imported_packages(source: str, package: str) -> Iterator[tuple[int, str]]:
    """Yield line and top-level name of every import, also inside functions; relative ones name `package`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, package if node.level else (node.module or "").split(".")[0]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "importlib.import_module",
            "__import__",
        ):
            if node.args and isinstance(node.args[0], ast.Constant):
                yield node.lineno, str(node.args[0].value).split(".")[0]


def violations(source: str, package: str) -> list[tuple[int, str]]:
    above = ORDER[ORDER.index(package) + 1 :]
    forbidden = {*above, *(() if package == "mappa_rl" else HEAVY), "tests"}
    return [(line, name) for line, name in imported_packages(source, package) if name in forbidden]


@pytest.mark.parametrize("package", ORDER)
def test_no_file_imports_a_package_above_its_own(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in files
        for line, name in violations(path.read_text(encoding="utf-8"), package)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("source", "package", "count"),
    [
        ("import mappa_rl.policy", "mappa_envs", 1),
        ("def f():\n    from mappa_envs import make", "envs_registry", 1),
        ("import importlib\nimportlib.import_module('mappa_rl')", "mappa_envs", 1),
        ("import os, torch", "mappa_envs", 1),
        ("from . import base\nimport envs_registry", "mappa_envs", 0),
        ("import torch\nimport mappa_envs", "mappa_rl", 0),
    ],
)
def test_the_check_itself_sees_every_kind_of_import(source: str, package: str, count: int) -> None:
    assert len(violations(source, package)) == count


def imported_by(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*{{m.split('.')[0] for m in sys.modules}})"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("package", ["envs_registry", "mappa_envs"])
def test_importing_a_lower_package_leaves_the_learning_libraries_out(package: str) -> None:
    modules = imported_by(f"import {package}")
    assert package in modules
    assert modules.isdisjoint({*HEAVY, "mappa_rl"})


def test_importing_the_registry_imports_no_environment_library() -> None:
    assert imported_by("import envs_registry").isdisjoint({"mappa_envs", "gymnasium", "pettingzoo", "pydantic"})


def test_registering_by_string_imports_no_environment() -> None:
    modules = imported_by("import envs_registry; envs_registry.register('Toy/Lazy-v0', 'xml.dom.minidom:Document')")
    assert "xml" not in modules and "pettingzoo" in modules
