"""Finite maths task sources: from records to tasks, and from one source to two splits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mappa_envs.errors import ConfigError, TaskError
from mappa_envs.grading.answers import parse_gold
from mappa_envs.grading.policy import DEFAULT_POLICY, GradingPolicy
from mappa_envs.spaces import has_lone_surrogate
from mappa_envs.tasks.listed import ListedSource
from mappa_envs.tasks.math.base import MathTask
from mappa_envs.tasks.math.statements import stable_share

Unparsable = Literal["error", "skip"]

_SEVERAL = re.compile(r"(.+?)\s*\((?:both|either|all|any)\b[^()]*\baccepted\)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Columns:
    """Where a record keeps what a task needs."""

    prompt: str = "prompt"
    answer: str = "answer"
    id: str | None = "id"
    """None numbers the records instead."""
    kind: str | None = None
    """None gives every task the source's name as its kind."""
    level: str | None = None


class FiniteSource(ListedSource[MathTask]):
    """A source over a sequence of maths tasks.

    Args:
        name: Name of the source.
        tasks: At least one task, with distinct ids.
        skipped: Ids of records that were left out because their answer cannot be read.

    Raises:
        TaskError: If there is no task, or an id occurs twice.
    """

    def __init__(self, name: str, tasks: Iterable[MathTask], *, skipped: Sequence[str] = ()) -> None:
        super().__init__(name, tasks)
        self.skipped = tuple(skipped)


def split_source(source: FiniteSource, eval_share: float, seed: int = 0) -> tuple[FiniteSource, FiniteSource]:
    """Split a finite source into training and evaluation tasks by a stable hash of their ids.

    A task stays on its side when tasks are added, removed or reordered.

    Args:
        source: The tasks.
        eval_share: Expected share of the evaluation side, between 0 and 1, both excluded.
        seed: Another seed gives another split.

    Returns:
        The training side and the evaluation side.

    Raises:
        ConfigError: If `eval_share` is out of range.
        TaskError: If a side stays empty.
    """
    if isinstance(eval_share, bool) or not isinstance(eval_share, int | float) or not 0 < eval_share < 1:
        raise ConfigError("split_source: bad eval_share", expected="between 0 and 1", got=repr(eval_share))
    sides: dict[bool, list[MathTask]] = {False: [], True: []}
    for task in source.tasks:
        sides[stable_share(task.id, f"split {seed}") < eval_share].append(task)
    for side, name in ((False, "training"), (True, "evaluation")):
        if not sides[side]:
            raise TaskError(
                f"the {name} side of {source.name!r} is empty",
                expected="at least one task on each side",
                got=f"{len(source)} tasks, eval_share={eval_share}, seed={seed}",
                fix="change eval_share or the seed, or use two files",
            )
    return FiniteSource(f"{source.name}-train", sides[False]), FiniteSource(f"{source.name}-eval", sides[True])


def source_from_records(
    name: str,
    records: Iterable[tuple[str, Mapping[str, Any]]],
    columns: Columns,
    *,
    policy: GradingPolicy = DEFAULT_POLICY,
    unparsable: Unparsable = "error",
) -> FiniteSource:
    """Turn records into a source.

    Args:
        name: Name of the source.
        records: Pairs of a place for error messages (`file.jsonl:3`) and a record.
        columns: Where the records keep what a task needs.
        policy: How accepted answers are read.
        unparsable: Whether an answer that cannot be read as mathematics is an error or leaves its record out.

    Raises:
        TaskError: If a record is malformed; names its place.
    """
    tasks: list[MathTask] = []
    skipped: list[str] = []
    places: dict[str, str] = {}
    for number, (place, record) in enumerate(records):
        task_id = str(number) if columns.id is None else _identifier(record, columns.id, place)
        if task_id in places:
            raise TaskError(f"{place}: id {task_id!r} is used twice", got=f"first used at {places[task_id]}")
        places[task_id] = place
        prompt = _text(record, columns.prompt, place)
        answers = accepted_answers(_value(record, columns.answer, place), place)
        try:
            for answer in answers:
                parse_gold(answer, policy)
        except TaskError as error:
            if unparsable == "skip":
                skipped.append(task_id)
                continue
            raise TaskError(
                f"{place}: the answer cannot be read as mathematics",
                expected="a number, an expression, a set, an interval or a choice letter",
                got=f"{answers!r} ({error.what})",
                fix='correct the answer, or leave such records out with unparsable="skip"',
            ) from error
        kind = name if columns.kind is None else _text(record, columns.kind, place)
        level = None if columns.level is None else _level(record, columns.level, place)
        tasks.append(MathTask(id=task_id, prompt=prompt, kind=kind, level=level, source=name, answers=answers))
    return FiniteSource(name, tasks, skipped=skipped)


def accepted_answers(value: object, place: str) -> tuple[str, ...]:
    """Read the accepted answers of a record.

    Args:
        value: An integer, a finite float (142.0 is read as 142), a text such as `080` or
            `080 or 081 (both were accepted)`, or a non-empty list of these.
        place: For error messages.

    Raises:
        TaskError: If it is none of these.
    """
    if isinstance(value, list):
        if not value:
            raise TaskError(f"{place}: the list of answers is empty", expected="at least one answer")
        texts = [text for item in value for text in _one_answer(item, place)]
    else:
        texts = _one_answer(value, place)
    return tuple(dict.fromkeys(texts))


def _one_answer(value: object, place: str) -> list[str]:
    if isinstance(value, str):
        if not value.strip() or has_lone_surrogate(value):
            raise TaskError(f"{place}: the answer is blank or not text", got=ascii(value))
        several = _SEVERAL.fullmatch(value.strip())
        parts = re.split(r"\s*,\s*or\s+|\s+or\s+|\s+and\s+", several[1]) if several else [value]
        return [part.strip() for part in parts]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TaskError(
            f"{place}: the answer has the wrong type",
            expected="a number, a text or a list of these",
            got=type(value).__name__,
        )
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TaskError(f"{place}: the answer is not finite", got=str(value))
        return [str(int(value)) if value.is_integer() else repr(value)]
    return [str(value)]


def _value(record: Mapping[str, Any], key: str, place: str) -> object:
    if key not in record:
        raise TaskError(
            f"{place}: key {key!r} is missing",
            expected=key,
            got=", ".join(map(str, record)) or "no keys",
            fix="name the right key in the source's arguments",
        )
    return record[key]


def _text(record: Mapping[str, Any], key: str, place: str) -> str:
    value = _value(record, key, place)
    if not isinstance(value, str):
        raise TaskError(f"{place}: {key!r} is not text", expected="a string", got=type(value).__name__)
    if not value.strip():
        raise TaskError(f"{place}: {key!r} is blank", expected="some text")
    if has_lone_surrogate(value):
        raise TaskError(f"{place}: {key!r} holds half of a surrogate pair", expected="text that UTF-8 can encode")
    return value


def _identifier(record: Mapping[str, Any], key: str, place: str) -> str:
    value = _value(record, key, place)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _text(record, key, place)


def _level(record: Mapping[str, Any], key: str, place: str) -> int:
    value = _value(record, key, place)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 5:
        raise TaskError(f"{place}: {key!r} is not a level", expected="an integer from 1 to 5", got=repr(value))
    return value
