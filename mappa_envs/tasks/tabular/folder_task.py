"""From a checked task folder to a task."""

from __future__ import annotations

from functools import lru_cache, partial

from mappa_envs.errors import TaskError
from mappa_envs.tasks.tabular.base import TabularTask, TaskData
from mappa_envs.tasks.tabular.folder import TaskFolder
from mappa_envs.tasks.tabular.folder_checks import check_folder
from mappa_envs.tasks.tabular.folder_reading import FolderTables
from mappa_envs.tasks.tabular.layout import prediction_columns, statement


def folder_task(folder: TaskFolder) -> TabularTask:
    """Return the task of one folder.

    Raises:
        TaskError: If the folder is malformed; says all that is wrong.
    """
    tables = _read(folder)
    metric, settings, classes = tables.metric, tables.settings, tables.classes
    rows = (len(tables.train), len(tables.test))
    trivial, reference = tables.baselines()
    return TabularTask(
        id=f"folder/{folder.name}",
        prompt=statement(
            tables.description,
            {},
            metric,
            target=tables.target,
            id_column=tables.id_column,
            classes=classes,
            rows=rows,
        ),
        kind=tables.kind,
        source="folder",
        metric=metric.name,
        target=tables.target,
        id_column=tables.id_column,
        prediction_columns=prediction_columns(metric, tables.target, classes),
        classes=classes,
        rows=rows,
        trivial=trivial,
        reference=reference,
        licence=settings.licence,
        load=partial(load_folder, folder),
    )


@lru_cache(maxsize=4)
def load_folder(folder: TaskFolder) -> TaskData:
    """Read the public files and the answers of a folder.

    Raises:
        TaskError: If it is malformed.
    """
    tables = _read(folder)
    return TaskData(tables.files, tables.known_answers())


def _read(folder: TaskFolder) -> FolderTables:
    tables, problems = check_folder(folder)
    if tables is None:
        raise TaskError(
            f"the task folder {folder.name!r} is malformed",
            got="; ".join(problem.text for problem in problems if problem.severity == "error"),
            fix="correct it, and check with: mappa tasks validate FOLDER",
        )
    return tables
