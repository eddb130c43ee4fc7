"""The episodes of an evaluation on disk, so that an evaluation that was interrupted goes on where it stopped.

A JSON Lines file: the settings, then one `EpisodeRecord` per line in the order of the evaluation. Episodes are
appended in chunks of fixed composition. A chunk that a crash has left incomplete is dropped when the file is opened,
and played again from the chunk's own seed: the results do not depend on whether the run was interrupted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mappa_rl.config.overrides import flatten
from mappa_rl.errors import EvaluationError, MappaError
from mappa_rl.evaluation.records import EpisodeRecord
from mappa_rl.rollout.collector import EpisodeSpec

_FORMAT = 2
_ABSENT = object()


class EpisodeLog:
    """Opens or starts the file.

    Args:
        path: The file; its folder is made.
        settings: All that the episodes depend on, as plain JSON.
        specs: The episodes of the whole evaluation, in order.
        chunk: Episodes that are played together, at least 1.

    Raises:
        EvaluationError: If the file is of other settings, or damaged elsewhere than at its end.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any], *, specs: Sequence[EpisodeSpec], chunk: int) -> None:
        self.path, self.chunk = path, chunk
        self.records: list[EpisodeRecord] = []
        """Episodes that are done."""
        # What JSON makes of the settings is what the file holds (tuples become lists).
        plain = json.loads(json.dumps({**settings, "chunk": chunk, "episodes": len(specs)}))
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_bytes().split(b"\n") if path.exists() else [b""]
        # What follows the last line end is empty, or torn by a crash.
        complete = lines[:-1]
        header = json.dumps({"format": _FORMAT, "settings": plain}, ensure_ascii=False).encode()
        if not complete and header.startswith(lines[0]):
            path.write_bytes(header + b"\n")
            return
        self._check_header(lines[0], plain)
        records = [self._parse(line, number, specs) for number, line in enumerate(complete[1:], start=2)]
        kept = len(records) if len(records) == len(specs) else len(records) // chunk * chunk
        self.records = records[:kept]
        os.truncate(path, sum(len(line) + 1 for line in complete[: 1 + kept]))

    def append(self, records: Sequence[EpisodeRecord]) -> None:
        """Write the episodes of one chunk; they are on disk when this returns."""
        lines = [json.dumps(record.to_json(), ensure_ascii=False) + "\n" for record in records]
        with self.path.open("a", encoding="utf-8") as file:
            file.write("".join(lines))
            file.flush()
            os.fsync(file.fileno())
        self.records += records

    def _check_header(self, line: bytes, settings: Mapping[str, Any]) -> None:
        try:
            header = json.loads(line)
            found = header["settings"] if header["format"] == _FORMAT else None
        except (ValueError, KeyError, TypeError):
            found = None
        if not isinstance(found, dict):
            raise EvaluationError(
                f"{self.path} is no file of episodes",
                expected=f"a first line with format {_FORMAT} and settings",
                got=line[:80].decode("utf-8", "replace"),
                fix="choose another --out",
            )
        differing = differing_settings(found, settings)
        if differing:
            raise EvaluationError(
                f"{self.path} holds episodes of other settings",
                expected="; ".join(f"{key} = {ours}" for key, _, ours in differing),
                got="; ".join(f"{key} = {theirs}" for key, theirs, _ in differing),
                fix="choose another --out, or start over with --fresh",
            )

    def _parse(self, line: bytes, number: int, specs: Sequence[EpisodeSpec]) -> EpisodeRecord:
        fix = "start over with --fresh, or remove this line and all after it"
        try:
            record = EpisodeRecord.from_json(json.loads(line))
        except (ValueError, TypeError, MappaError) as error:
            raise EvaluationError(
                f"{self.path}:{number}: damaged", expected="the record of an episode", got=str(error)[:200], fix=fix
            ) from error
        place = number - 2
        wanted = (specs[place].task_index, specs[place].seed) if place < len(specs) else None
        if wanted != (record.task_index, record.sample):
            raise EvaluationError(
                f"{self.path}:{number}: another episode than expected",
                expected="no more lines" if wanted is None else f"task {wanted[0]}, sample {wanted[1]}",
                got=f"task {record.task_index}, sample {record.sample}",
                fix=fix,
            )
        return record


def differing_settings(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the dotted keys whose values differ, each with both values as text (`-` where there is none)."""
    one, other = dict(flatten(first)), dict(flatten(second))
    return [
        (".".join(path), _text(one.get(path, _ABSENT)), _text(other.get(path, _ABSENT)))
        for path in dict.fromkeys([*one, *other])
        if one.get(path, _ABSENT) != other.get(path, _ABSENT)
    ]


def _text(value: object) -> str:
    return "-" if value is _ABSENT else json.dumps(value, ensure_ascii=False)
