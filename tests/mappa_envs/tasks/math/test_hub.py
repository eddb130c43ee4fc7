from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mappa_envs.errors import ConfigError, TaskError
from mappa_envs.tasks.math.finite import Columns
from mappa_envs.tasks.math.hub import HUB_SETS, HubSet, hub_source

ROWS = [
    {"problem": "What is 1 + 1?", "answer": "2", "unique_id": "t/1", "subject": "Algebra", "level": 1, "solution": "."},
    {"problem": "What is half of 1?", "answer": r"\frac{1}{2}", "unique_id": "t/2", "subject": "Number", "level": 5},
]


def write_jsonl(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_the_known_sets_are_named() -> None:
    assert set(HUB_SETS) == {"aime_1983_2024", "aime_2024", "aime_2025", "aime_2026", "amc_2023", "math_500"}
    assert all(known.repository.count("/") == 1 and known.licence for known in HUB_SETS.values())


def test_a_local_file_is_read_with_the_sets_columns(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "test.jsonl", ROWS)
    source = hub_source("math_500", path=tmp_path / "test.jsonl")
    assert source.name == "math_500" and len(source) == 2
    task = source.task(1)
    assert (task.id, task.kind, task.level, task.answers) == ("t/2", "Number", 5, (r"\frac{1}{2}",))
    assert task.source == "math_500"


def test_of_a_folder_the_files_of_the_split_are_read(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "data" / "test-00000-of-00002.jsonl", ROWS[:1])
    write_jsonl(tmp_path / "data" / "test-00001-of-00002.jsonl", ROWS[1:])
    write_jsonl(tmp_path / "data" / "train-00000-of-00001.jsonl", [{"problem": "never read"}])
    (tmp_path / "README.md").write_text("a card")
    assert [task.id for task in hub_source("math_500", path=tmp_path).tasks] == ["t/1", "t/2"]


def test_a_folder_without_files_of_the_split_is_read_whole(tmp_path: Path) -> None:
    with (tmp_path / "AIME_Dataset.csv").open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, ["ID", "Year", "Question", "Answer"])
        writer.writeheader()
        writer.writerow({"ID": "1983-1", "Year": 1983, "Question": "What is 50 + 10,\nin all?", "Answer": "060"})
        writer.writerow({"ID": "2022-II-8", "Year": 2022, "Question": "?", "Answer": "080 or 081 (both were accepted)"})
    source = hub_source("aime_1983_2024", path=tmp_path)
    assert [task.answers for task in source.tasks] == [("060",), ("080", "081")]
    assert source.task(0).prompt == "What is 50 + 10,\nin all?"


def test_parquet_files_are_read(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"problem_idx": 1, "problem": "What is 35 * 2?", "answer": 70}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "train-00000-of-00001.parquet")
    task = hub_source("aime_2025", path=tmp_path).task(0)
    assert (task.id, task.answers) == ("1", ("70",))
    (tmp_path / "train-00000-of-00001.parquet").write_bytes(b"not parquet")
    with pytest.raises(TaskError, match=r"cannot read .*parquet"):
        hub_source("aime_2025", path=tmp_path)


def test_aime_answers_outside_of_0_to_999_are_refused(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", [{"problem_idx": 1, "problem": "?", "answer": 1000}])
    with pytest.raises(TaskError, match=r"a\.jsonl:1"):
        hub_source("aime_2025", path=tmp_path / "a.jsonl")
    write_jsonl(tmp_path / "a.jsonl", [{"problem_idx": 1, "problem": "?", "answer": r"336^\circ"}])
    assert hub_source("aime_2025", path=tmp_path / "a.jsonl").task(0).answers == (r"336^\circ",)


def test_unreadable_answers_can_be_left_out(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "test.jsonl", [*ROWS, {**ROWS[0], "unique_id": "t/3", "answer": r"\frac{1}{"}])
    with pytest.raises(TaskError, match=r"test\.jsonl:3.*cannot be read"):
        hub_source("math_500", path=tmp_path)
    assert hub_source("math_500", path=tmp_path, unparsable="skip").skipped == ("t/3",)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("test.jsonl", b'{"question": "?"}\n', "key 'unique_id' is missing"),
        ("test.txt", b"x", "holds no data files"),
        ("test.csv", b"unique_id,problem\n1\n", "too few or too many fields"),
        ("test.csv", b"unique_id,problem\n1,2,3\n", "too few or too many fields"),
        ("test.csv", b'unique_id,problem\n"1,2\n', "cannot read"),
        ("test.csv", b"unique_id,problem\n\xff,2\n", "cannot read"),
    ],
)
def test_malformed_folders_are_named_errors(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TaskError, match=message):
        hub_source("math_500", path=tmp_path)


def test_bad_arguments_are_named_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'aime_2025'"):
        hub_source("aime_25")
    with pytest.raises(ConfigError, match="not both"):
        hub_source("aime_2025", path=tmp_path, revision="main")
    with pytest.raises(TaskError, match="cannot tell the format"):
        hub_source("aime_2025", path=tmp_path / "a.xlsx")
    with pytest.raises(TaskError, match="cannot read"):
        hub_source("aime_2025", path=tmp_path / "gone.csv")


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ConfigError, match=r'pip install "mappa-gym\[hub\]"'):
        hub_source("aime_2025")


def test_the_datasets_library_reads_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    write_jsonl(tmp_path / "repository" / "test.jsonl", [{**row, "solution": "."} for row in ROWS])
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    columns = Columns("problem", "answer", "unique_id", kind="subject", level="level")
    monkeypatch.setitem(HUB_SETS, "mini", HubSet(str(tmp_path / "repository"), "test", columns, "mit"))
    assert [task.id for task in hub_source("mini").tasks] == ["t/1", "t/2"]
    monkeypatch.setitem(HUB_SETS, "mini", HubSet(str(tmp_path / "repository"), "nosuch", columns, "mit"))
    with pytest.raises(TaskError, match="pass path="):
        hub_source("mini")


def test_an_unreachable_hub_is_a_named_error(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    code = (
        "from mappa_envs.tasks.math.hub import hub_source\n"
        "from mappa_envs.errors import TaskError\n"
        "try: hub_source('aime_2025')\n"
        "except TaskError as error: print(error)\n"
    )
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
    }
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "cannot load 'MathArena/aime_2025' from the hub" in run.stdout
