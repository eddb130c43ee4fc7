"""`DataInspector`: reads what a data team leaves in its workspace and finds out what it is worth."""

from __future__ import annotations

import asyncio
import csv
import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mappa_envs.errors import TaskError
from mappa_envs.grading.tables import MAX_SUBMISSION_BYTES, TableGrade, grade_submission
from mappa_envs.inspection import GRADED, Evidence
from mappa_envs.judges.criteria import Finding
from mappa_envs.judges.data_rules import artefacts, checks
from mappa_envs.judges.data_rules.predictions import Cells, cells_of, submission_of
from mappa_envs.judges.data_rules.reports import FeatureReport, feature_report, model_report
from mappa_envs.tasks.base import Task
from mappa_envs.tasks.tabular.base import SAMPLE, SUBMISSION, TEST, TRAIN, TabularTask
from mappa_envs.transcript import Outcome

CHECKED = "checked"
"""The key of the facts that hold what can be known without the hidden answers."""

MAX_PROBED = 2000
"""Test rows that the plain model and single features are tried on."""


@dataclass(frozen=True, slots=True)
class _Model:
    """A model that predicts, and how well."""

    cells: Cells
    grade: TableGrade


class DataInspector:
    """Looks into the work on one task.

    What the feature files hold is found out in a fresh kernel in which nothing of the agents runs. The model is loaded
    in another one, whose word counts for nothing: the host hands it the test rows in an order of its own choice, and
    takes predictions from it, which it then measures. Both are done again only when a file has changed.

    Args:
        task: The task.
        evidence: The episode's workspace.
        success_above: Normalised score above which the team has succeeded.
    """

    def __init__(self, task: Task, evidence: Evidence, *, success_above: float = 0.0) -> None:
        if not isinstance(task, TabularTask):
            raise TaskError("this environment plays tasks on tables", expected="a TabularTask", got=type(task).__name__)
        self._task, self._evidence, self._success_above = task, evidence, success_above
        self._reports: dict[str, Any] = {}

    async def facts(self) -> Mapping[str, Any]:
        """Return the findings on all artefacts as they are now, as plain JSON; see `rules.RULES` for the keys."""
        found: checks.Findings = {}
        graded: checks.Findings = {}
        files = {name: await self._evidence.read(name, artefacts.MAX_BYTES) for name in artefacts.FEATURE_FILES}
        saved = {name: data for name, data in files.items() if data is not None}
        features = await self._features(saved)
        found |= checks.feature_findings(saved, features)
        graded |= checks.feature_grades(features, self._truth() if features is not None and features.sound else ())
        model = await self._model(saved, features, found, graded)
        await self._submission(model, found, graded)
        return {CHECKED: _plain(found), GRADED: _plain(graded)}

    async def outcome(self) -> Outcome:
        """Grade the submission."""
        task = self._task
        grade = await self._grade(await self._evidence.read(SUBMISSION, MAX_SUBMISSION_BYTES))
        success = grade.normalised is not None and grade.normalised > self._success_above
        details = {
            "valid": grade.valid,
            "faults": [fault.code for fault in grade.faults],
            "metric": grade.metric,
            "value": grade.value,
            "normalised": grade.normalised,
            "trivial": task.trivial,
            "reference": task.reference,
            "metrics": dict(grade.metrics),
        }
        return Outcome(success, grade.score, grade.reason, details)

    # One artefact each -------------------------------------------------------------------------------------------

    async def _features(self, saved: Mapping[str, bytes]) -> FeatureReport | None:
        if len(saved) < len(artefacts.FEATURE_FILES):
            return None
        key = _digest(*saved.values())
        if key not in self._reports:
            public = self._task.files()
            files = {**saved, TRAIN: public[TRAIN], TEST: public[TEST]}
            spec = {**self._spec(), "rows": self._places().tolist()}
            self._reports[key] = await feature_report(self._evidence, spec, files)
        report: FeatureReport | None = self._reports[key]
        return report

    async def _model(
        self,
        saved: Mapping[str, bytes],
        features: FeatureReport | None,
        found: checks.Findings,
        graded: checks.Findings,
    ) -> _Model | None:
        data = await self._evidence.read(artefacts.MODEL, artefacts.MAX_BYTES)
        usable = features is not None and not (features.readable or features.rows or features.columns)
        model = None
        if data is None:
            found |= checks.no_model(False, "")
        elif not usable:
            found |= checks.untried_model()
        else:
            model = await self._tried(data, saved[artefacts.X_TEST])
            if model is None:
                found |= checks.no_model(True, "")
            else:
                found |= checks.model_findings(model.cells, model.grade)
                model = model if model.grade.valid else None
        validation = await self._evidence.read(artefacts.VALIDATION, artefacts.MAX_VALIDATION_BYTES)
        value, fault = checks.validation_value(validation, self._task.metric)
        found["model.validated"] = Finding(not fault, fault)
        grade = model.grade if model is not None else None
        graded |= checks.model_grades(grade, value, self._task, tried=data is None or usable)
        return model

    async def _tried(self, model: bytes, rows: bytes) -> _Model | None:
        key = _digest(model, rows)
        if key not in self._reports:
            self._reports[key] = await self._try(model, rows)
        tried: _Model | None = self._reports[key]
        return tried

    async def _try(self, model: bytes, rows: bytes) -> _Model | None:
        try:
            header, *lines = filter(None, csv.reader(io.StringIO(rows.decode())))
        except (csv.Error, UnicodeDecodeError):
            return None
        # Unknown to the model's makers, so that it must look at the rows; the same whenever the episode is repeated.
        secret = _digest(self._task.answers().to_csv(index=False).encode(), model)
        order = np.random.default_rng(int(secret, 16)).permutation(len(lines))
        shuffled = io.StringIO()
        csv.writer(shuffled, lineterminator="\n").writerows([header, *(lines[i] for i in order)])
        files = {artefacts.MODEL: model, "rows.csv": shuffled.getvalue().encode()}
        report = await model_report(self._evidence, self._spec(), files)
        if report is None or not report.fits(len(lines)):
            return None
        data = submission_of(report, [lines[i][0] for i in order], self._task)
        return _Model(cells_of(data, self._task), await self._grade(data))

    async def _submission(self, model: _Model | None, found: checks.Findings, graded: checks.Findings) -> None:
        data = await self._evidence.read(SUBMISSION, MAX_SUBMISSION_BYTES)
        grade = await self._grade(data)
        own = checks.submission_findings(
            None if data is None else cells_of(data, self._task),
            grade,
            {} if data is None else cells_of(self._task.files()[SAMPLE], self._task),
            model.cells if model is not None else None,
        )
        found |= own
        graded |= checks.submission_grades(grade, model.grade if model is not None else None, own)

    # Small parts -------------------------------------------------------------------------------------------------

    async def _grade(self, data: bytes | None) -> TableGrade:
        return await asyncio.to_thread(grade_submission, data, self._task)

    def _spec(self) -> dict[str, str]:
        return {"id": self._task.id_column, "target": self._task.target, "kind": self._task.kind}

    def _places(self) -> Any:
        rows = self._task.rows[1]
        return np.sort(np.random.default_rng(0).permutation(rows)[:MAX_PROBED])

    def _truth(self) -> Sequence[str] | Sequence[float]:
        """Return the hidden answers of the probed rows, in the order of `test.csv`."""
        answers = self._task.answers().set_index(self._task.id_column)[self._task.target]
        reader = csv.DictReader(io.StringIO(self._task.files()[TEST].decode()))
        ids = [row[self._task.id_column] for row in reader]
        truth: list[Any] = answers.loc[[ids[i] for i in self._places()]].tolist()
        return truth


def _digest(*parts: bytes) -> str:
    whole = hashlib.blake2b(digest_size=16)
    for part in parts:
        whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()


def _plain(found: Mapping[str, Finding]) -> dict[str, dict[str, Any]]:
    return {key: asdict(finding) for key, finding in found.items()}
