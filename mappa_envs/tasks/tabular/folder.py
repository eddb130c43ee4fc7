"""Where the parts of a task folder lie, and what its `task.yaml` says.

Three layouts are known:

- flat: everything in one folder;
- MLE-bench: `public/` and `private/` (or `prepared/public/`, `prepared/private/`) in the task's folder;
- DSBench: `data_resplit/NAME/`, `answers/NAME/test_answer.csv` and `task/NAME.txt` beneath one root.

Each task has `train.csv`, `test.csv`, `sample_submission.csv`, a description, hidden answers, and in its folder a
`task.yaml` that names at least the metric: descriptions do so in prose that no keyword search reads right.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from mappa_envs.errors import TaskError
from mappa_envs.tasks.tabular.base import SAMPLE, TEST, TRAIN, TableKind

TASK_FILE = "task.yaml"

SAMPLES = (SAMPLE, "sampleSubmission.csv")
_ANSWERS = ("answers.csv", "test_answer.csv", "test_answers.csv", "solution.csv", "test.csv")
_DESCRIPTIONS = ("description.md", "description.txt", "README.md")


class TaskFile(BaseModel):
    """What `task.yaml` says."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metric: str
    """A name in `METRICS`."""
    kind: TableKind | None = None
    """By default what the metric is for; needed where it is for both."""
    target: str | None = None
    """By default the second of two columns of the sample submission."""
    id_column: str | None = None
    """By default the first column of the sample submission."""
    classes: tuple[str, ...] | None = None
    """Labels in order (positive last, or ascending); by default those of the training rows, sorted."""
    licence: str = "not stated"
    reference: float | None = None
    """Raw metric of a strong model, where the normalised score is 1; by default the metric's best value."""


@dataclass(frozen=True, slots=True)
class TaskFolder:
    """Where the parts of one task lie."""

    name: str
    public: Path
    """Holds train, test and sample submission."""
    answers: tuple[Path, ...]
    """Places where the answers may be."""
    descriptions: tuple[Path, ...]
    """Places where the description may be."""
    task_file: Path


def task_folders(path: Path) -> list[TaskFolder]:
    """Find the tasks of a folder: itself, or those in it, by name.

    Raises:
        TaskError: If there is none.
    """
    if not path.is_dir():
        raise TaskError(f"no such folder: {path}", expected="a task folder, or a folder of task folders")
    own = _one(path)
    if own is not None:
        return [own]
    resplit = path / "data_resplit"
    if resplit.is_dir():
        return [
            TaskFolder(
                name=folder.name,
                public=folder,
                answers=tuple(path / "answers" / folder.name / name for name in _ANSWERS),
                descriptions=(path / "task" / f"{folder.name}.txt", *(folder / name for name in _DESCRIPTIONS)),
                task_file=folder / TASK_FILE,
            )
            for folder in sorted(resplit.iterdir())
            if folder.is_dir()
        ]
    found = [task for folder in sorted(path.iterdir()) if folder.is_dir() and (task := _one(folder)) is not None]
    if not found:
        raise TaskError(
            f"no task in {path}",
            expected=f"{TRAIN}, {TEST}, {SAMPLE}, {TASK_FILE} and answers in it or in its folders",
            fix="check one folder with: mappa tasks validate FOLDER",
        )
    return found


def _one(folder: Path) -> TaskFolder | None:
    for public, private in (("public", "private"), ("prepared/public", "prepared/private")):
        if (folder / public).is_dir():
            return TaskFolder(
                name=folder.name,
                public=folder / public,
                answers=tuple(folder / private / name for name in _ANSWERS),
                descriptions=tuple(place / name for place in (folder / public, folder) for name in _DESCRIPTIONS),
                task_file=folder / TASK_FILE,
            )
    if not any((folder / name).exists() for name in (TRAIN, TEST, TASK_FILE)):
        return None
    return TaskFolder(
        name=folder.resolve().name,
        public=folder,
        answers=tuple(folder / name for name in _ANSWERS if name != TEST),
        descriptions=tuple(folder / name for name in _DESCRIPTIONS),
        task_file=folder / TASK_FILE,
    )
