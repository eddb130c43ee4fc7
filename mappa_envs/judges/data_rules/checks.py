"""From reports and grades to findings, one per rule. Pure functions; notes never hold text of an agent."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence

from mappa_envs.grading.tables import TableGrade, get_metric
from mappa_envs.judges.criteria import Finding
from mappa_envs.judges.data_rules.artefacts import FEATURE_FILES
from mappa_envs.judges.data_rules.predictions import Cells, agree, constant
from mappa_envs.judges.data_rules.reports import FeatureReport
from mappa_envs.judges.data_rules.skill import lone_skill, model_skill
from mappa_envs.tasks.tabular.base import TabularTask

Findings = dict[str, Finding]

CERTAIN_LEAK = 0.98
"""Strength of a single feature above which it counts as a leak where the hidden answers may not be asked."""
LEAK_DROP = 0.25
"""How much weaker a leaking feature is on the test rows, where it cannot have been made from the target."""
USEFUL_SHARE = 0.5
"""Share of the raw table's skill that the features must give a plain model."""
LITTLE_SKILL = 0.05
"""Below it the raw table itself teaches the plain model next to nothing."""
BEATS, HALF, STRONG = 0.05, 0.5, 0.85
"""Normalised scores (0 trivial, 1 reference) for the criteria on how good predictions are."""
HONEST_MARGIN = 0.5
"""By how much, normalised, a reported validation value may be better than the model is on the test rows."""
NO_WORSE = 0.05
"""How much worse than the model, normalised, a submission may be that holds other predictions."""


def feature_findings(saved: Collection[str], report: FeatureReport | None) -> Findings:
    """Judge the feature files without the hidden answers.

    Args:
        saved: Which of the three there are.
        report: What the inspection found; None if it was not made or came to no end.
    """
    missing = [name for name in FEATURE_FILES if name not in saved]
    found = {"features.saved": Finding(not missing, f"missing: {', '.join(missing)}" if missing else "")}
    if missing or report is None:
        note = "" if missing else "they could not be looked into within the limits"
        keys = ("readable", "rows", "columns", "target", "clean")
        return found | {f"features.{key}": Finding(False, note) for key in keys}
    found["features.readable"] = _without(report.readable)
    for key, fault in (("rows", report.rows), ("columns", report.columns), ("target", report.target)):
        found[f"features.{key}"] = Finding(False) if report.readable else _without(fault)
    leaks = sum(suspect.strength >= CERTAIN_LEAK for suspect in report.suspects)
    found["features.clean"] = _without(_leaking(leaks)) if report.sound else Finding(False, "not to be told")
    return found


def _without(fault: str) -> Finding:
    return Finding(not fault, fault)


def _leaking(leaks: int) -> str:
    return f"{leaks} alone foretell it, and no raw column does" if leaks else ""


def feature_grades(report: FeatureReport | None, truth: Sequence[str] | Sequence[float]) -> Findings:
    """Judge the features by the hidden answers of the test rows that the report has predictions for."""
    if report is None or report.probe is None or report.raw is None:
        return {"features.useful": Finding(False)}
    leaks = sum(
        lone_skill(truth, suspect.predicted, report.classes) < suspect.strength - LEAK_DROP
        for suspect in report.suspects
    )
    own, raw = (model_skill(truth, predicted, report.classes) for predicted in (report.probe, report.raw))
    useful = own >= USEFUL_SHARE * raw if raw > LITTLE_SKILL else None
    return {
        "features.clean": _without(_leaking(leaks)),
        "features.useful": Finding(useful, f"{own:.2f} against {raw:.2f}" if useful is False else ""),
    }


def no_model(saved: bool, note: str) -> Findings:
    """Return the findings where there is no model, or none that predicts."""
    found = {"model.saved": Finding(saved), "model.predicts": Finding(False, note)}
    return found | {"model.varies": Finding(False)}


def untried_model() -> Findings:
    """Return the findings where there is a model, and no test rows to try it on."""
    note = "there is no usable X_test.csv to try it on"
    return {"model.saved": Finding(True), "model.predicts": Finding(None, note), "model.varies": Finding(None)}


def model_findings(cells: Cells, grade: TableGrade) -> Findings:
    """Judge a model's predictions for the test rows without the hidden answers."""
    if not grade.valid:
        return no_model(True, f"its predictions have faults: {fault_codes(grade)}")
    return {
        "model.saved": Finding(True),
        "model.predicts": Finding(True),
        "model.varies": Finding(not constant(cells)),
    }


def model_grades(grade: TableGrade | None, reported: float | None, task: TabularTask, *, tried: bool) -> Findings:
    """Judge a model by the hidden answers.

    Args:
        grade: Of its predictions; None if there are none.
        reported: The value in `validation.json`, if there is a valid one.
        task: Gives the baselines.
        tried: Whether there were test rows to try it on.
    """
    if grade is None or grade.normalised is None:
        met = False if tried else None
        return {f"model.{key}": Finding(met) for key in ("honest", "beats", "half", "strong")}
    note = f"normalised {grade.normalised:.2f}"
    honest = False
    if reported is not None:
        claimed = (reported - task.trivial) / (task.reference - task.trivial)
        honest = claimed <= grade.normalised + HONEST_MARGIN
    return {
        "model.honest": Finding(honest, "it is far too good" if reported is not None and not honest else ""),
        "model.beats": Finding(grade.normalised > BEATS, note),
        "model.half": Finding(grade.normalised >= HALF),
        "model.strong": Finding(grade.normalised >= STRONG),
    }


def validation_value(data: bytes | None, metric: str) -> tuple[float | None, str]:
    """Return the value in `validation.json`, or why there is none."""
    if data is None:
        return None, "there is none"
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None, "it is no JSON"
    value = found.get("value") if isinstance(found, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e100:
        return None, "it holds no number under 'value'"
    bounds = sorted((get_metric(metric).best, get_metric(metric).worst))
    if not bounds[0] - 1e-9 <= value <= bounds[1] + 1e-9:
        return None, "no value of that metric can be so"
    return float(value), ""


def submission_findings(cells: Cells | None, grade: TableGrade, sample: Cells, model: Cells | None) -> Findings:
    """Judge a submission without the hidden answers.

    Args:
        cells: Its predictions; None if there is no file.
        grade: Its grade, of which only the validity is looked at.
        sample: The predictions of the sample submission.
        model: The model's predictions; None if there is no model that works.
    """
    found = {
        "submission.saved": Finding(cells is not None),
        "submission.valid": Finding(grade.valid, "" if grade.valid or cells is None else fault_codes(grade)),
    }
    if not cells:
        keys = {"own": False, "varies": False, "follows": None if model is None else False}
        return found | {f"submission.{key}": Finding(met) for key, met in keys.items()}
    follows = None if model is None else agree(cells, model)
    varies: bool | None = not constant(cells)
    own: bool | None = not agree(cells, sample)
    if follows:  # what is wrong with the model's predictions is the model's fault
        varies, own = varies or None, own or None
    return found | {
        "submission.own": Finding(own),
        "submission.varies": Finding(varies),
        "submission.follows": Finding(follows),
    }


def submission_grades(grade: TableGrade, model: TableGrade | None, findings: Findings) -> Findings:
    """Judge a submission by the hidden answers."""
    normalised = -math.inf if grade.normalised is None else grade.normalised
    found = {
        "submission.beats": Finding(normalised > BEATS, f"normalised {normalised:.2f}" if grade.valid else ""),
        "submission.half": Finding(normalised >= HALF),
        "submission.strong": Finding(normalised >= STRONG),
    }
    follows = findings["submission.follows"]
    if follows.met is False and model is not None and model.normalised is not None:
        better = normalised >= model.normalised - NO_WORSE and normalised > BEATS
        found["submission.follows"] = Finding(better, "other ones, and as good" if better else "other ones, and worse")
    return found


def fault_codes(grade: TableGrade) -> str:
    """Return the names of what makes a submission invalid."""
    return ", ".join(fault.code.replace("_", " ") for fault in grade.faults if fault.fatal)
