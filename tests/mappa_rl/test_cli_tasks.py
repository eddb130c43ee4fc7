from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mappa_envs.errors import TaskError
from mappa_rl.cli import app


def write(folder: Path, answers: str) -> None:
    folder.mkdir()
    rows = range(4, 8)
    texts = {
        "train.csv": "id,x,y\n0,1,a\n1,2,b\n2,1,a\n3,2,b\n",
        "test.csv": "id,x\n" + "".join(f"{i},{i % 2}\n" for i in rows),
        "sample_submission.csv": "id,y\n" + "".join(f"{i},a\n" for i in rows),
        "answers.csv": answers,
        "description.md": "Whether a thing is of kind a or b, by one measurement x.",
        "task.yaml": "metric: accuracy\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def test_validate_says_what_is_wrong_and_fails(tmp_path: Path) -> None:
    write(tmp_path / "good", "id,y\n4,a\n5,b\n6,a\n7,b\n")
    result = CliRunner().invoke(app, ["tasks", "validate", str(tmp_path)], catch_exceptions=False)
    assert (result.exit_code, result.output) == (0, "good: can be used\n")
    write(tmp_path / "wrong", "id,y\n4,a\n5,b\n6,a\n9,c\n")
    result = CliRunner().invoke(app, ["tasks", "validate", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        "good: can be used",
        "wrong: 3 errors",
        "  error: the answer file lacks 1 ids of test.csv, e.g. '7'",
        "  error: the answer file has 1 ids that are not in test.csv, e.g. '9'",
        "  error: the answer file has labels that train.csv lacks: ['c']",
    ]


def test_a_folder_without_tasks_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="no task in"):
        CliRunner().invoke(app, ["tasks", "validate", str(tmp_path)], catch_exceptions=False)
