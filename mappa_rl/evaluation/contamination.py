"""Whether the held-out tasks of a run are among the tasks that it trains on."""

from __future__ import annotations

import warnings
from typing import Literal

from mappa_envs.tasks.base import TaskSource
from mappa_envs.tasks.math.base import MathTask
from mappa_envs.tasks.math.contamination import ContaminationReport, check_contamination
from mappa_envs.tasks.math.finite import FiniteSource
from mappa_rl.errors import ContaminationError, ContaminationWarning

Contamination = Literal["error", "warn", "off"]

MAX_TRAIN_TASKS = 10_000
"""Most generated training tasks that are compared: making them takes about half a millisecond each."""
_NAMED = 20


def contamination_report(
    train: TaskSource, evaluation: TaskSource, *, train_tasks: int, eval_tasks: int
) -> ContaminationReport | None:
    """Compare the held-out tasks of a run with its training tasks.

    Args:
        train: Training tasks; a finite source is compared whole.
        evaluation: Held-out tasks.
        train_tasks: How many training tasks the run uses, of a source that generates them; at most
            `MAX_TRAIN_TASKS` are compared.
        eval_tasks: How many held-out tasks it uses.

    Returns:
        None if the tasks are no maths problems: nothing was compared.
    """
    mine = _first(train, len(train) if isinstance(train, FiniteSource) else min(train_tasks, MAX_TRAIN_TASKS))
    theirs = _first(evaluation, eval_tasks)
    return check_contamination(mine, theirs) if mine and theirs else None


def overlapping_ids(report: ContaminationReport, train: TaskSource, evaluation: TaskSource) -> tuple[str, ...]:
    """Return the ids of held-out tasks that count as training tasks.

    Between generated sources only equal statements count: their problems are made from shared wordings, and nearly
    equal ones differ at least in the order of their numbers.
    """
    if isinstance(train, FiniteSource) and isinstance(evaluation, FiniteSource):
        return report.eval_ids
    return tuple(dict.fromkeys(pair.eval_id for pair in report.verbatim))


def refuse_contamination(
    train: TaskSource, evaluation: TaskSource, *, train_tasks: int, eval_tasks: int, mode: Contamination
) -> ContaminationReport | None:
    """Check a run before it starts; see `contamination_report`.

    Args:
        train: Training tasks.
        evaluation: Held-out tasks.
        train_tasks: How many generated training tasks the run uses.
        eval_tasks: How many held-out tasks it uses.
        mode: `error` refuses, `warn` warns, `off` does not look.

    Returns:
        What was found; None if nothing was compared.

    Raises:
        ContaminationError: If held-out tasks are training tasks and `mode` is `error`.
    """
    if mode == "off":
        return None
    report = contamination_report(train, evaluation, train_tasks=train_tasks, eval_tasks=eval_tasks)
    found = overlapping_ids(report, train, evaluation) if report else ()
    if report is None or not found:
        return report
    named = ", ".join(found[:_NAMED]) + (f" and {len(found) - _NAMED} more" if len(found) > _NAMED else "")
    what = f"{len(found)} of {report.eval_size} held-out tasks are among the training tasks"
    if mode == "warn":
        warnings.warn(f"{what}: {named}", ContaminationWarning, stacklevel=2)
        return report
    raise ContaminationError(
        what,
        expected="no task on both sides",
        got=named,
        fix="leave these ids out of one side (`mappa contamination TRAIN.jsonl EVAL.jsonl` names all pairs), or go on "
        "all the same with eval.contamination=warn",
    )


def _first(source: TaskSource, count: int) -> list[MathTask]:
    size = count if source.size is None else min(count, source.size)
    tasks = (source.task(i) for i in range(size))
    return [task for task in tasks if isinstance(task, MathTask)]
