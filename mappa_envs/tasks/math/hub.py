"""Public problem sets of the Hugging Face hub, from the hub itself or from local copies of their files."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs_registry.errors import did_you_mean
from envs_registry.extras import import_extra
from mappa_envs.errors import ConfigError, TaskError
from mappa_envs.grading.policy import AIME_POLICY, DEFAULT_POLICY, GradingPolicy
from mappa_envs.tasks.math.finite import Columns, FiniteSource, Unparsable, source_from_records
from mappa_envs.tasks.math.jsonl import read_jsonl

Records = Iterator[tuple[str, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class HubSet:
    """A problem set on the hub."""

    repository: str
    split: str
    columns: Columns
    licence: str
    """As its card states it; the problems remain their competitions'."""
    policy: GradingPolicy = DEFAULT_POLICY


HUB_SETS: dict[str, HubSet] = {
    "aime_1983_2024": HubSet("di-zhang-fdu/AIME_1983_2024", "train", Columns("Question", "Answer", "ID"), "mit"),
    "aime_2024": HubSet(
        "HuggingFaceH4/aime_2024", "train", Columns("problem", "answer", "id"), "not stated", AIME_POLICY
    ),
    "aime_2025": HubSet(
        "MathArena/aime_2025", "train", Columns("problem", "answer", "problem_idx"), "cc-by-nc-sa-4.0", AIME_POLICY
    ),
    "aime_2026": HubSet(
        "MathArena/aime_2026", "train", Columns("problem", "answer", "problem_idx"), "cc-by-nc-sa-4.0", AIME_POLICY
    ),
    "amc_2023": HubSet("math-ai/amc23", "test", Columns("question", "answer", "id"), "not stated"),
    "math_500": HubSet(
        "HuggingFaceH4/MATH-500",
        "test",
        Columns("problem", "answer", "unique_id", kind="subject", level="level"),
        "not stated",
    ),
}
"""Known sets by name."""


def hub_source(
    name: str,
    *,
    path: str | os.PathLike[str] | None = None,
    revision: str | None = None,
    unparsable: Unparsable = "error",
) -> FiniteSource:
    """Load a public problem set.

    Args:
        name: A name in `HUB_SETS`.
        path: A local copy instead of the hub: a `.parquet`, `.jsonl` or `.csv` file, or a folder that holds some, for
            instance a clone of the set's repository. Of a folder, files named after the set's split are read if
            there are any, otherwise all.
        revision: Commit or tag of the hub's repository; pin it for results that others can repeat.
        unparsable: Whether an answer that cannot be read as mathematics is an error or leaves its problem out.

    Raises:
        ConfigError: If the name is unknown, or the extra `hub` is needed and not installed.
        TaskError: If the set cannot be loaded or is malformed.
    """
    if name not in HUB_SETS:
        raise ConfigError(
            "unknown problem set",
            expected=f"one of {', '.join(HUB_SETS)}",
            got=repr(name),
            fix=did_you_mean(name, HUB_SETS, "load other sets with JsonlSource"),
        )
    if path is not None and revision is not None:
        raise ConfigError("a local copy has no revision", expected="path or revision, not both")
    known = HUB_SETS[name]
    records = _hub_records(known, revision) if path is None else _local_records(Path(path), known.split)
    return source_from_records(name, records, known.columns, policy=known.policy, unparsable=unparsable)


def _hub_records(known: HubSet, revision: str | None) -> Records:
    datasets = import_extra("datasets", "hub", "loading a set from the hub")
    try:
        rows = datasets.load_dataset(known.repository, split=known.split, revision=revision)
    except Exception as error:  # many libraries deep; whatever fails, the user's way out is the same
        raise TaskError(
            f"cannot load {known.repository!r} from the hub",
            got=f"{type(error).__name__}: {error}",
            fix="check the network, or download its files and pass path=",
        ) from error
    for number, row in enumerate(rows, start=1):
        yield f"{known.repository}:{number}", row


def _local_records(path: Path, split: str) -> Records:
    files = _data_files(path, split) if path.is_dir() else [path]
    for file in files:
        reader = _READERS.get(file.suffix)
        if reader is None:
            raise TaskError(
                f"cannot tell the format of {file}",
                expected=" or ".join(_READERS),
                got=file.suffix or "no suffix",
            )
        yield from reader(file)


def _data_files(folder: Path, split: str) -> list[Path]:
    files = sorted(file for file in folder.rglob("*") if file.suffix in _READERS and file.is_file())
    if not files:
        raise TaskError(f"the folder {folder} holds no data files", expected=f"files in {', '.join(_READERS)}")
    return [file for file in files if file.stem.split("-")[0] == split] or files


def _read_parquet(file: Path) -> Records:
    parquet = import_extra("pyarrow.parquet", "hub", "reading parquet files")
    try:
        rows = parquet.read_table(file).to_pylist()
    except (OSError, ValueError) as error:  # pyarrow's errors derive from these
        raise TaskError(f"cannot read {file}", expected="a parquet file", got=str(error)) from error
    for number, row in enumerate(rows, start=1):
        yield f"{file}:{number}", row


def _read_csv(file: Path) -> Records:
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines, strict=True)
            for row in reader:
                if None in row or None in row.values():
                    raise TaskError(f"{file}:{reader.line_num}: the row has too few or too many fields")
                yield f"{file}:{reader.line_num}", row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TaskError(f"cannot read {file}", expected="a CSV file in UTF-8", got=str(error)) from error


_READERS = {".parquet": _read_parquet, ".jsonl": read_jsonl, ".csv": _read_csv}
