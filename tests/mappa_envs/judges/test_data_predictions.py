from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_cases import table_task

from mappa_envs.grading.tables import TableGrade, grade_submission, invalid_grade
from mappa_envs.judges.data_rules import checks
from mappa_envs.judges.data_rules.predictions import agree, cells_of, constant, submission_of
from mappa_envs.judges.data_rules.reports import ModelReport
from mappa_envs.tasks.tabular.base import SAMPLE, TabularTask

numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)
submissions = st.dictionaries(
    st.text("abc123", min_size=1, max_size=4), st.tuples(numbers.map(repr)), min_size=1, max_size=20
)

json_texts = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["value", "x"]), inner),
    max_leaves=8,
).map(lambda data: json.dumps(data).encode())


def perfect(task: TabularTask) -> ModelReport:
    """A model that knows the answers."""
    truth = task.answers()["target"].tolist()
    if not task.classes:
        return ModelReport(values=[float(value) for value in truth], classes=[], shares=None)
    names = list(reversed(task.classes))
    shares = [[float(name == label) for name in names] for label in truth]
    return ModelReport(values=truth, classes=names, shares=shares)


@pytest.mark.parametrize("name", ["shares", "labels", "scores", "numbers", "logs"])
def test_a_perfect_model_gives_a_perfect_submission(name: str) -> None:
    task = table_task(name)
    ids = task.answers()["row_id"].tolist()
    grade = grade_submission(submission_of(perfect(task), ids, task), task)
    assert grade.valid and grade.normalised is not None and grade.normalised >= 1


def test_a_model_without_shares_is_sure_of_its_labels() -> None:
    task = table_task("shares")
    ids = task.answers()["row_id"].tolist()
    bare = ModelReport(values=perfect(task).values, classes=[], shares=None)
    assert submission_of(bare, ids, task) == submission_of(perfect(task), ids, task)


def test_a_ranking_holds_the_likeliest_labels_first() -> None:
    task = replace(table_task("shares"), metric="map_at_2", prediction_columns=("target",))
    report = ModelReport(values=["red"], classes=["blue", "green", "red"], shares=[[0.3, 0.1, 0.6]])
    assert submission_of(report, ["7"], task) == b"row_id,target\n7,red blue\n"


def test_numbers_below_zero_are_cut_where_the_metric_takes_logarithms() -> None:
    report = ModelReport(values=[-1.0], classes=[], shares=None)
    assert submission_of(report, ["7"], table_task("logs")) == b"row_id,target\n7,0.0\n"
    assert submission_of(report, ["7"], table_task("numbers")) == b"row_id,target\n7,-1.0\n"


@given(submissions)
def test_a_submission_agrees_with_itself_in_any_order_and_spelling(cells: dict[str, tuple[str, ...]]) -> None:
    other = {key: tuple(f"{float(cell):.17g}" for cell in row) for key, row in reversed(cells.items())}
    assert agree(cells, other) and agree(other, cells)


@given(submissions, numbers)
def test_one_changed_prediction_in_a_few_is_seen(cells: dict[str, tuple[str, ...]], value: float) -> None:
    first = next(iter(cells))
    changed = {**cells, first: (repr(value),)}
    same = math.isclose(value, float(cells[first][0]), rel_tol=1e-6, abs_tol=1e-9)
    assert agree(changed, cells) == same
    assert not agree({}, cells)


def test_constant_predictions_are_seen_however_they_are_written() -> None:
    assert constant({"1": ("0.5",), "2": ("0.50",), "3": ("5e-1",)})
    assert not constant({"1": ("0.5",), "2": ("0.6",)})
    assert constant({"1": ("yes",), "2": ("yes",)})


@given(st.binary(max_size=60) | json_texts)
def test_any_validation_file_is_a_value_or_a_reason(data: bytes) -> None:
    value, fault = checks.validation_value(data, "accuracy")
    assert (value is None) == bool(fault)
    assert value is None or 0 <= value <= 1


@pytest.mark.parametrize(
    ("text", "metric", "value"),
    [
        ('{"value": 0.75}', "accuracy", 0.75),
        ('{"value": 1, "folds": 5}', "accuracy", 1.0),
        ('{"value": 1.5}', "accuracy", None),
        ('{"value": 1.5}', "rmse", 1.5),
        ('{"value": -1.5}', "rmse", None),
        ('{"value": -7}', "r2", -7.0),
        ('{"value": NaN}', "rmse", None),
        ('{"value": "0.75"}', "accuracy", None),
        ('{"value": true}', "accuracy", None),
        ("0.75", "accuracy", None),
        ("[" * 4000, "accuracy", None),
    ],
)
def test_a_validation_value_is_a_number_that_the_metric_can_have(text: str, metric: str, value: float | None) -> None:
    assert checks.validation_value(text.encode(), metric)[0] == value
    assert checks.validation_value(None, metric) == (None, "there is none")


def graded(normalised: float) -> TableGrade:
    return TableGrade(True, (), "accuracy", 0.5, normalised, min(1, max(0, normalised)), 60)


@pytest.mark.parametrize(
    ("reported", "normalised", "honest"),
    [(0.9, 1.0, True), (0.5, 1.0, True), (1.0, 0.2, False), (0.7, 0.2, True), (None, 1.0, False)],
)
def test_a_reported_value_is_belied_by_a_much_worse_model(
    reported: float | None, normalised: float, honest: bool
) -> None:
    # Trivial 0.6, reference 0.9: a reported 1.0 is 1.33 normalised, 0.7 is 0.33.
    found = checks.model_grades(graded(normalised), reported, table_task("labels"), tried=True)
    assert found["model.honest"].met is honest


def test_a_submission_is_compared_with_sample_and_model() -> None:
    task = table_task("labels")
    sample = cells_of(task.files()[SAMPLE], task)
    model: Any = {key: ("yes" if i % 2 else "no",) for i, key in enumerate(sample)}

    def found(cells: Any, model_: Any = model) -> dict[str, bool | None]:
        findings = checks.submission_findings(cells, graded(0.5), sample, model_)
        return {key.removeprefix("submission."): finding.met for key, finding in findings.items()}

    assert found(model) == {"saved": True, "valid": True, "own": True, "varies": True, "follows": True}
    assert found(sample) == {"saved": True, "valid": True, "own": False, "varies": False, "follows": False}
    assert found(None)["follows"] is False and found(None, None)["follows"] is None
    one_sided = dict.fromkeys(sample, ("yes",))
    assert found(one_sided, one_sided)["varies"] is None, "the model's fault"
    assert found(sample, sample)["own"] is None, "the model's fault, too"


def test_other_predictions_than_the_models_count_if_they_are_as_good() -> None:
    wrong = {"submission.follows": checks.Finding(False)}
    for own, met in ((0.8, True), (0.76, True), (0.7, False)):
        assert checks.submission_grades(graded(own), graded(0.8), wrong)["submission.follows"].met is met
    invalid = invalid_grade(table_task("labels"))
    assert checks.submission_grades(invalid, graded(0.8), wrong)["submission.follows"].met is False
    assert checks.submission_grades(graded(-0.1), graded(-0.1), wrong)["submission.follows"].met is False
