"""`JsonlSource`: problems from a JSON Lines file (https://jsonlines.org)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from mappa_envs.errors import TaskError
from mappa_envs.grading.policy import DEFAULT_POLICY, GradingPolicy
from mappa_envs.tasks.math.finite import Columns, FiniteSource, Unparsable, source_from_records, split_source

__all__ = ["JsonlSource", "read_jsonl", "split_source"]

_BOM = b"\xef\xbb\xbf"


class JsonlSource(FiniteSource):
    r"""One problem per line: `{"prompt": "...", "answer": 42, "id": "..."}`; other keys are ignored.

    An answer is an integer, a float (142.0 is read as 142), a text such as `080`, `\frac{1}{2}` or
    `080 or 081 (both were accepted)`, or a list of accepted answers. Blank lines are skipped. A record
    without an `id` is named after its line, e.g. `line-7`.

    Args:
        path: The file: UTF-8 without byte-order mark, lines ending in LF or CR LF.
        prompt: Key of the statement.
        answer: Key of the answer.
        id: Key of the id, a text or an integer. Another key than `id` must be there in every record.
        kind: Key of the task's kind; by default every task has the file's stem as its kind.
        policy: How accepted answers are read.
        unparsable: Whether an answer that cannot be read as mathematics is an error or leaves its problem out
            (`skipped` then names it).

    Raises:
        TaskError: If the file cannot be read or a line is malformed; names the file and the line.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        prompt: str = "prompt",
        answer: str = "answer",
        id: str = "id",
        kind: str | None = None,
        policy: GradingPolicy = DEFAULT_POLICY,
        unparsable: Unparsable = "error",
    ) -> None:
        file = Path(path)
        lines = list(read_jsonl(file))
        if id == "id":
            lines = [(place, {"id": f"line-{place.rpartition(':')[2]}", **record}) for place, record in lines]
        columns = Columns(prompt=prompt, answer=answer, id=id, kind=kind)
        read = source_from_records(file.stem, lines, columns, policy=policy, unparsable=unparsable)
        super().__init__(read.name, read.tasks, skipped=read.skipped)


def read_jsonl(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each object of a JSON Lines file with its place, `file:line` (lines count from 1).

    Raises:
        TaskError: If the file is missing, a directory, empty, unreadable or not UTF-8, or a line is not an object.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise TaskError(
            f"cannot read the task file {file}", expected="a JSON Lines file", got=error.strerror or str(error)
        ) from error
    if data.startswith(_BOM):
        raise TaskError(f"{file}:1: the file starts with a byte-order mark", fix="save it as UTF-8 without BOM")
    if not data.strip():
        raise TaskError(f"the task file {file} is empty", expected="one JSON object per line")
    # Only LF ends a line: U+2028 and others that str.splitlines knows may stand inside JSON strings.
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            yield f"{file}:{number}", _parse_line(line, f"{file}:{number}")


def _parse_line(line: bytes, place: str) -> dict[str, Any]:
    try:
        record = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_distinct)
    except UnicodeDecodeError as error:
        raise TaskError(
            f"{place}: not UTF-8", got=f"byte {line[error.start]:#04x} at column {error.start + 1}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise TaskError(
            f"{place}: not a JSON object", expected="one JSON object per line", got=str(error) or "nested too deeply"
        ) from error
    if not isinstance(record, dict):
        raise TaskError(f"{place}: not a JSON object", expected="{...}", got=type(record).__name__)
    return record


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"key {next(key for key in keys if keys.count(key) > 1)!r} occurs twice")
    return record
