from __future__ import annotations

import itertools
import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from submission_cases import handed_in, table_task

from mappa_envs.grading.tables import FATAL_CODES, MAX_SUBMISSION_BYTES, METRICS, TableGrade, grade_submission
from mappa_envs.tasks.tabular.base import TabularTask

LABELS = table_task("accuracy", ["a", "b", "a", "b"], ("a", "b"))
DIGITS = table_task("f1_macro", ["0", "1", "2", "1"], ("0", "1", "2"))
NUMBERS = table_task("rmse", [1.0, 2.0, 3.0, 4.0], trivial=2.0, reference=0.0)
LOGARITHMS = table_task("rmsle", [1.0, 2.0, 3.0, 4.0], trivial=2.0, reference=0.0)
CHANCES = table_task("log_loss", ["a", "b", "c", "a"], ("a", "b", "c"), trivial=1.0, reference=0.0)
CHANCE = table_task("log_loss", ["a", "b", "a", "b"], ("a", "b"), trivial=0.7, reference=0.0)
RANKED = table_task("map_at_2", ["a", "b", "c", "a"], ("a", "b", "c"))


def codes(grade: TableGrade) -> dict[str, int]:
    return {fault.code: fault.count for fault in grade.faults}


GOOD = [
    (LABELS, [(3, "b"), (2, "a"), (0, "a"), (1, "b")]),
    (NUMBERS, [(0, 1), (1, "2.0"), (2, "3e0"), (3, "+4.")]),
    (CHANCES, [(0, 1, 0, 0), (1, 0, 1, 0), (2, 0, 0, 1), (3, 1, 0, 0)]),
    (CHANCE, [(0, 0), (1, 1), (2, 0.0), (3, 1.0)]),
    (RANKED, [(0, "a b"), (1, "b"), (2, "c a"), (3, "a c")]),
]


@pytest.mark.parametrize(("task", "rows"), GOOD, ids=lambda value: getattr(value, "metric", ""))
def test_perfect_predictions_in_any_order_get_the_best_score(task: TabularTask, rows: list[tuple[object, ...]]) -> None:
    for order in itertools.permutations(rows):
        grade = grade_submission(handed_in(task, order), task)
        assert grade.valid and not grade.faults and grade.rows == 4
        assert grade.value == pytest.approx(METRICS[task.metric].best, abs=1e-12)
        assert grade.normalised == pytest.approx(1.0) and grade.score == pytest.approx(1.0)


FAULTY = {
    "nothing": (LABELS, None, {"missing_file": 1}),
    "no byte": (LABELS, b"", {"empty": 1}),
    "a header only": (LABELS, b"id,y\n", {"empty": 1}),
    "one row is missing": (LABELS, handed_in(LABELS, [(0, "a"), (1, "b"), (2, "a")]), {"missing_id": 1}),
    "one id twice": (LABELS, b"id,y\n0,a\n1,b\n2,a\n3,b\n3,a\n", {"duplicate_id": 1}),
    "an id too many": (LABELS, b"id,y\n0,a\n1,b\n2,a\n3,b\n4,b\n", {"unknown_id": 1}),
    "row numbers from 1": (LABELS, b"id,y\n1,a\n2,b\n3,a\n4,b\n", {"unknown_id": 1, "missing_id": 1}),
    "a blank prediction": (LABELS, b"id,y\n0,a\n1,\n2,a\n3,b\n", {"missing_value": 1}),
    "NaN": (NUMBERS, b"id,y\n0,1\n1,nan\n2,NaN\n3,4\n", {"missing_value": 2}),
    "None": (NUMBERS, b"id,y\n0,1\n1,None\n2,3\n3,4\n", {"missing_value": 1}),
    "inf": (NUMBERS, b"id,y\n0,1\n1,inf\n2,-Infinity\n3,4\n", {"infinite_value": 2}),
    "beyond double precision": (NUMBERS, b"id,y\n0,1\n1,1e999\n2,3\n3,4\n", {"infinite_value": 1}),
    "squares overflow": (NUMBERS, b"id,y\n0,1\n1,1e200\n2,3\n3,4\n", {"infinite_value": 1}),
    "another column": (NUMBERS, b"id,prediction\n0,1\n1,2\n2,3\n3,4\n", {"missing_column": 1, "extra_column": 1}),
    "the index too": (NUMBERS, b",id,y\n0,0,1\n1,1,2\n2,2,3\n3,3,4\n", {"extra_column": 1}),
    "one column twice": (NUMBERS, b"id,y,y\n0,1,1\n1,2,2\n2,3,3\n3,4,4\n", {"duplicate_column": 1}),
    "no header": (NUMBERS, b"0,1\n1,2\n2,3\n3,4\n", {"missing_column": 2, "extra_column": 2}),
    "words for numbers": (NUMBERS, b"id,y\n0,one\n1,2\n2,3\n3,4\n", {"not_a_number": 1}),
    "thousands": (NUMBERS, b'id,y\n0,"1,000"\n1,2\n2,3\n3,4\n', {"not_a_number": 1}),
    "underscores": (NUMBERS, b"id,y\n0,1_0\n1,2\n2,3\n3,4\n", {"not_a_number": 1}),
    "foreign digits": (NUMBERS, "id,y\n0,\u0661\n1,2\n2,3\n3,4\n".encode(), {"not_a_number": 1}),
    "a formula": (NUMBERS, b"id,y\n0,=1+1\n1,+A1\n2,@SUM(A1)\n3,4\n", {"formula": 3}),
    "code": (NUMBERS, b'id,y\n0,"__import__(""os"").getpid()"\n1,2\n2,3\n3,4\n', {"not_a_number": 1}),
    "a negative count": (LOGARITHMS, b"id,y\n0,-1\n1,2\n2,3\n3,4\n", {"negative_value": 1}),
    "probabilities for labels": (LABELS, b"id,y\n0,0.1\n1,0.9\n2,0.2\n3,0.8\n", {"unknown_label": 4}),
    "numbers for string labels": (LABELS, b"id,y\n0,0\n1,1\n2,0\n3,1\n", {"unknown_label": 4}),
    "a class of no one": (DIGITS, b"id,y\n0,0\n1,1\n2,2\n3,7\n", {"unknown_label": 1}),
    "three labels": (RANKED, b"id,y\n0,a b c\n1,b\n2,c\n3,a\n", {"too_many_labels": 1}),
    "no label": (RANKED, b"id,y\n0,\n1,b\n2,c\n3,a\n", {"missing_value": 1}),
    "a probability of 1.5": (CHANCE, b"id,y\n0,1.5\n1,1\n2,0\n3,-0.1\n", {"not_a_probability": 2}),
    "a sum of 1.2": (CHANCES, b"id,a,b,c\n0,1,.2,0\n1,0,1,0\n2,0,0,1\n3,1,0,0\n", {"not_a_distribution": 1}),
    "classes are missing": (CHANCES, b"id,a,b\n0,1,0\n1,0,1\n2,0,0\n3,1,0\n", {"missing_column": 1}),
    "semicolons": (NUMBERS, b"id;y\n0;1\n1;2\n2;3\n3;4\n", {"delimiter": 1}),
    "tabs": (NUMBERS, b"id\ty\n0\t1\n1\t2\n2\t3\n3\t4\n", {"delimiter": 1}),
    "UTF-16": (NUMBERS, "id,y\n0,1\n".encode("utf-16"), {"encoding": 1}),
    "Latin-1": (NUMBERS, b"id,y\n0,\xe4\n", {"encoding": 1}),
    "a cell too many": (NUMBERS, b"id,y\n0,1,\n1,2\n2,3\n3,4\n", {"malformed": 1}),
    "a cell too few": (NUMBERS, b"id,y\n0\n1,2\n2,3\n3,4\n", {"malformed": 1}),
    "an open quote": (NUMBERS, b'id,y\n0,"1\n1,2\n2,3\n3,4\n', {"malformed": 1}),
    "a line for ever": (NUMBERS, b"id,y\n0," + b"1" * 100_000, {"malformed": 1}),
    "ten thousand columns": (NUMBERS, b"id" + b",y" * 10_000 + b"\n", {"malformed": 1}),
    "a pickle": (NUMBERS, b"\x80\x04\x95\x17cbuiltins\neval\n.", {"encoding": 1}),
    "many rows": (NUMBERS, b"id,y\n" + b"0,1\n" * 2000, {"too_many_rows": 1009}),
}


@pytest.mark.parametrize("name", FAULTY)
def test_every_fault_is_named_counted_and_scored(name: str) -> None:
    task, data, expected = FAULTY[name]
    grade = grade_submission(data, task)
    assert codes(grade) == expected
    assert not grade.valid and grade.score == 0.0 and grade.value is None and grade.normalised is None
    assert grade.reason.startswith("invalid submission: ") and len(grade.reason) < 500
    assert not grade.metrics


def test_every_fault_has_a_case() -> None:
    seen = {code for _, _, expected in FAULTY.values() for code in expected}
    assert set(FATAL_CODES) == seen | {"too_large"}


def test_several_faults_are_all_named() -> None:
    grade = grade_submission(b"id,y\n0,1\n0,inf\n9,x\n1,\n", NUMBERS)
    assert codes(grade) == {
        "duplicate_id": 1,
        "unknown_id": 1,
        "missing_id": 2,
        "infinite_value": 1,
        "not_a_number": 1,
        "missing_value": 1,
    }


@pytest.mark.parametrize("row", [b"0,1\n", b"\n", b"0,\n", b'"0","1"\n'])
def test_ten_million_rows_are_refused_in_bounded_memory(row: bytes) -> None:
    data = b"id,y\n" + row * (40_000_000 // len(row))
    grade = grade_submission(data, NUMBERS)
    assert codes(grade) == {"too_large": 1}
    data = data[:MAX_SUBMISSION_BYTES]
    tracemalloc.start()
    grade = grade_submission(data, NUMBERS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert not grade.valid and grade.rows <= 1008
    assert peak < 8 * MAX_SUBMISSION_BYTES


def test_a_byte_order_mark_and_other_line_ends_are_no_faults_of_the_predictions() -> None:
    rows = "id,y\r\n0,1\r\n\r\n1,2\r\n2,3\r\n3,4"
    grade = grade_submission(b"\xef\xbb\xbf" + rows.encode(), NUMBERS)
    assert codes(grade) == {"bom": 1} and grade.valid and grade.value == 0.0
    assert grade_submission(rows.replace("\r\n", "\r").encode(), NUMBERS).value == 0.0


def test_whole_numbers_are_the_same_however_they_are_written() -> None:
    grade = grade_submission(b"id,y\n0.0,0.0\n1,+1\n02,2.\n 3 , 1 \n", DIGITS)
    assert grade.valid and grade.value == 1.0
    # Where ids are not all plain integers, no spelling is touched.
    task = table_task("accuracy", ["a", "b"], ("a", "b"), ids=["007", "7"])
    assert grade_submission(b"id,y\n007,a\n7,b\n", task).value == 1.0
    assert codes(grade_submission(b"id,y\n007,a\n7.0,b\n", task)) == {"unknown_id": 1, "missing_id": 1}


def test_rounded_probabilities_are_scaled_to_one() -> None:
    grade = grade_submission(b"id,a,b,c\n0,.33,.33,.33\n1,.33,.33,.33\n2,.33,.33,.33\n3,.33,.33,.33\n", CHANCES)
    assert grade.value == pytest.approx(1.0986122886681098)


def test_normalised_score_is_linear_between_the_baselines_and_clipped_only_as_score() -> None:
    for shift, normalised, score in ((2.0, 0.0, 0.0), (1.0, 0.5, 0.5), (4.0, -1.0, 0.0)):
        data = handed_in(NUMBERS, [(i, i + 1 + shift) for i in range(4)])
        grade = grade_submission(data, NUMBERS)
        assert (grade.value, grade.normalised, grade.score) == (shift, normalised, score)
    better = table_task("accuracy", ["a", "b"], ("a", "b"), trivial=0.5, reference=0.75)
    grade = grade_submission(b"id,y\n0,a\n1,b\n", better)
    assert (grade.normalised, grade.score) == (2.0, 1.0)


def test_further_metrics_for_averages_over_tasks() -> None:
    grade = grade_submission(handed_in(NUMBERS, [(0, 1), (1, 2), (2, 3), (3, 7)]), NUMBERS)
    assert grade.metrics == pytest.approx({"rmse": 1.5, "mae": 0.75, "r2": 1 - 9 / 5, "rmse_range": 50.0})
    grade = grade_submission(b"id,y\n0,0.9\n1,0.9\n2,0.1\n3,0.4\n", CHANCE)
    assert grade.metrics == pytest.approx({"accuracy": 0.5, "f1": 0.5})
    auc = table_task("roc_auc", ["a", "b", "a", "b"], ("a", "b"))
    assert grade_submission(b"id,y\n0,-3\n1,9\n2,0\n3,0.4\n", auc).metrics["accuracy"] == 0.75


class TestFaultsOfTheOfficialGrader:
    """Each was reproduced against the published code; ours must not have it."""

    rows = tuple((i, str(i % 2)) for i in range(200))
    task = table_task("accuracy", [label for _, label in rows], ("0", "1"))

    def test_right_predictions_in_shuffled_order_are_right(self) -> None:
        shuffled = random.Random(0).sample(self.rows, len(self.rows))
        assert grade_submission(handed_in(self.task, shuffled), self.task).value == 1.0

    def test_the_first_ten_rows_are_not_a_submission(self) -> None:
        grade = grade_submission(handed_in(self.task, self.rows[:10]), self.task)
        assert codes(grade) == {"missing_id": 190} and grade.score == 0.0

    def test_doubled_rows_are_not_a_submission(self) -> None:
        grade = grade_submission(handed_in(self.task, self.rows * 2), self.task)
        assert codes(grade) == {"duplicate_id": 200} and grade.score == 0.0

    def test_unknown_strings_are_not_zero(self) -> None:
        grade = grade_submission(handed_in(self.task, [(i, "spam") for i, _ in self.rows]), self.task)
        assert codes(grade) == {"unknown_label": 200}

    def test_string_classes_and_probability_matrices_are_scored(self) -> None:
        words = table_task("accuracy", ["red", "green", "blue"], ("blue", "green", "red"))
        assert grade_submission(b"id,y\n0,red\n1,green\n2,red\n", words).value == pytest.approx(2 / 3)
        matrix = table_task("log_loss", ["red", "green"], ("blue", "green", "red"))
        data = b"id,red,green,blue\n0,0.5,0.25,0.25\n1,0.25,0.5,0.25\n"
        assert grade_submission(data, matrix).value == pytest.approx(0.6931471805599453)

    def test_few_whole_numbers_are_no_classes(self) -> None:
        counts = table_task("mae", [0.0, 1.0, 2.0, 1.0], trivial=1.0, reference=0.0)
        assert grade_submission(b"id,y\n0,0.5\n1,1\n2,2\n3,1\n", counts).value == 0.125

    def test_ordinal_classes_are_scored_by_distance(self) -> None:
        task = table_task("qwk", ["1", "2", "3", "4"], ("1", "2", "3", "4"))
        near = grade_submission(b"id,y\n0,1\n1,2\n2,3\n3,3\n", task).value
        far = grade_submission(b"id,y\n0,1\n1,2\n2,3\n3,1\n", task).value
        assert near is not None and far is not None and near > far

    def test_the_unit_of_the_target_does_not_matter(self) -> None:
        grades = []
        for unit in (1e-3, 1.0, 1e6):
            task = table_task("rmse", [unit, 2 * unit, 4 * unit], trivial=2 * unit, reference=unit / 2)
            grades.append(grade_submission(handed_in(task, [(0, unit), (1, unit), (2, 4 * unit)]), task))
        assert [g.normalised for g in grades] == pytest.approx([grades[1].normalised] * 3)
        assert [g.metrics["rmse_range"] for g in grades] == pytest.approx([grades[1].metrics["rmse_range"]] * 3)


@given(st.binary(max_size=300))
@settings(max_examples=100)
def test_no_bytes_raise(data: bytes) -> None:
    for task in (LABELS, NUMBERS, CHANCES, RANKED):
        for submission in (data, handed_in(task, [])[:-1] + b"\n" + data):
            grade = grade_submission(submission, task)
            assert grade.valid == (not any(fault.fatal for fault in grade.faults))
            assert 0.0 <= grade.score <= 1.0


cells = st.one_of(st.floats().map(repr), st.text(max_size=6), st.sampled_from(["a", "b", "", "=1", "1e400", "nan"]))


@given(st.lists(st.tuples(st.integers(-1, 4).map(str), cells), max_size=6), st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_the_order_of_the_rows_never_matters(rows: list[tuple[str, str]], shuffle: random.Random) -> None:
    shuffled = rows.copy()
    shuffle.shuffle(shuffled)
    for task in (LABELS, NUMBERS, RANKED):
        grades = [grade_submission(handed_in(task, order), task) for order in (rows, shuffled)]
        one, other = ((g.valid, g.value, g.score, g.rows, g.metrics) for g in grades)
        assert one == other


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4), st.lists(st.floats(0.01, 10), min_size=4, max_size=4))
def test_worse_numbers_never_score_higher(truth: list[float], errors: list[float]) -> None:
    if len(set(truth)) == 1:
        return
    task = table_task("mae", truth, trivial=20.0, reference=0.0)
    near, far = (
        grade_submission(handed_in(task, [(i, truth[i] + size * errors[i]) for i in range(4)]), task).score
        for size in (1.0, 2.0)
    )
    assert near >= far
