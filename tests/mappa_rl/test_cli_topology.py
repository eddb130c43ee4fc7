from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from envs_registry.errors import ConfigError
from mappa_rl.cli import app


def test_topologies_are_listed_shown_and_drawn(tmp_path: Path) -> None:
    runner = CliRunner()
    listed = runner.invoke(app, ["topology", "list"])
    assert {"solo", "chain", "debate", "mixture", "prover_verifier", "star"} <= set(listed.stdout.split())
    out = tmp_path / "debate.svg"
    shown = runner.invoke(app, ["topology", "show", "debate", "rounds=3", "debaters=2", "--out", str(out)])
    assert shown.exit_code == 0, shown.output
    assert "debate: 3 agents, at most 7 turns" in shown.stdout and out.read_text().startswith("<?xml")
    tables = runner.invoke(app, ["topology", "show", "chain", "--domain", "tables"])
    assert "engineer_0" in tables.stdout


@pytest.mark.parametrize(
    ("arguments", "message"), [(["debat"], "did you mean 'debate'"), (["debate", "round=1"], "rounds")]
)
def test_a_misspelt_topology_or_parameter_is_named(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["topology", "show", *arguments])
    assert isinstance(result.exception, ConfigError) and message in str(result.exception)
