from __future__ import annotations

from pathlib import Path

import pytest
from folder_cases import DESCRIPTION, FLOWERS, HEIGHTS, write_dsbench, write_flat, write_mle_bench

from mappa_envs.errors import TaskError
from mappa_envs.grading.tables import grade_submission
from mappa_envs.tasks.tabular.base import TabularTask
from mappa_envs.tasks.tabular.folder import task_folders
from mappa_envs.tasks.tabular.folder_checks import validate
from mappa_envs.tasks.tabular.folder_task import folder_task
from mappa_envs.tasks.tabular.sources import build_tabular_source

RIGHT = "id,flower\n" + "".join(f"{i},{'no' if i % 5 < 3 else 'yes'}\n" for i in range(20, 28))


def the_task(path: Path) -> TabularTask:
    (folder,) = task_folders(path)
    return folder_task(folder)


def check_flowers(task: TabularTask) -> None:
    assert (task.kind, task.metric, task.target, task.id_column) == ("classification", "accuracy", "flower", "id")
    assert task.classes == ("no", "yes") and task.rows == (20, 8)
    assert DESCRIPTION.strip() in task.prompt and "no, yes" in task.prompt
    # Of the eight test rows six are "no", the majority of the training rows.
    assert task.trivial == 6 / 8 and task.reference == 1.0
    assert set(task.files()) == {"train.csv", "test.csv", "sample_submission.csv"}
    assert task.files()["test.csv"].decode() == FLOWERS["test.csv"]
    assert grade_submission(RIGHT.encode(), task).normalised == 1.0
    assert grade_submission(task.files()["sample_submission.csv"], task).normalised == 0.0


def test_a_flat_folder(tmp_path: Path) -> None:
    task = the_task(write_flat(tmp_path / "flowers", FLOWERS))
    check_flowers(task)
    assert (task.id, task.licence) == ("folder/flowers", "CC0")


def test_the_layout_of_mle_bench(tmp_path: Path) -> None:
    check_flowers(the_task(write_mle_bench(tmp_path / "flowers", FLOWERS)))


def test_the_layout_of_dsbench(tmp_path: Path) -> None:
    write_dsbench(tmp_path, "flowers", FLOWERS)
    check_flowers(the_task(tmp_path))
    write_dsbench(tmp_path, "heights", HEIGHTS)
    source = build_tabular_source({"source": "folder", "path": str(tmp_path), "eval_share": 0}, "train")
    assert [source.task(i).id for i in range(2)] == ["folder/flowers", "folder/heights"]


def test_a_folder_of_folders_is_split_by_kind(tmp_path: Path) -> None:
    for i in range(3):
        write_flat(tmp_path / f"flowers{i}", FLOWERS)
        write_mle_bench(tmp_path / f"heights{i}", HEIGHTS)
    (tmp_path / "notes").mkdir()
    sides = [build_tabular_source({"source": "folder", "path": str(tmp_path)}, side) for side in ("train", "eval")]  # type: ignore[arg-type]
    assert [side.size for side in sides] == [4, 2]
    assert {sides[1].task(i).kind for i in range(2)} == {"classification", "regression"}


def test_numbers_and_a_reference(tmp_path: Path) -> None:
    task = the_task(write_flat(tmp_path / "heights", HEIGHTS))
    # Trained on 10..14 in equal shares the mean is 12; the test rows are 10, 11, 12, 13, 14, 10, 11, 12.
    assert task.trivial == pytest.approx(((4 + 1 + 0 + 1 + 4 + 4 + 1 + 0) / 8) ** 0.5)
    submission = "id,height\n" + "".join(f"{i},{10 + i % 5}.1\n" for i in range(20, 28))
    assert grade_submission(submission.encode(), task).normalised == pytest.approx(1.0)


def test_probabilities_of_several_classes(tmp_path: Path) -> None:
    colours = ("blue", "green", "red", "green", "blue")
    hidden = {i: colours[i % 5] for i in range(28)}
    sample = "id,red,green,blue\n" + "".join(f"{i},0.2,0.4,0.4\n" for i in range(20, 28))
    parts = {
        **FLOWERS,
        "train.csv": "id,light,colour\n" + "".join(f"{i},{i % 5},{hidden[i]}\n" for i in range(20)),
        "test.csv": "id,light\n" + "".join(f"{i},{i % 5}\n" for i in range(20, 28)),
        "answers.csv": "id,colour\n" + "".join(f"{i},{hidden[i]}\n" for i in range(20, 28)),
        "sample_submission.csv": sample,
        "task.yaml": "metric: log_loss\ntarget: colour\n",
    }
    task = the_task(write_flat(tmp_path / "colours", parts))
    assert task.prediction_columns == task.classes == ("blue", "green", "red")
    assert grade_submission(sample.encode(), task).normalised == pytest.approx(0.0)


def test_labels_that_are_numbers_are_ordered_by_size_and_a_positive_class_can_be_chosen(tmp_path: Path) -> None:
    stars = {name: text.replace("yes", "10").replace("no", "9") for name, text in FLOWERS.items()}
    assert the_task(write_flat(tmp_path / "stars", {**stars, "task.yaml": "metric: qwk\n"})).classes == ("9", "10")
    settings = "metric: f1\nclasses: ['yes', 'no']\n"
    task = the_task(write_flat(tmp_path / "positive", {**FLOWERS, "task.yaml": settings}))
    assert "The positive class is no." in task.prompt


def lines(text: str, start: int, stop: int) -> str:
    return "".join(text.splitlines(keepends=True)[start:stop])


def replaced(name: str, old: str, new: str) -> dict[str, str | bytes | None]:
    assert old in FLOWERS[name]
    return {name: FLOWERS[name].replace(old, new)}


ERRORS: dict[str, tuple[dict[str, str | bytes | None], str]] = {
    "no train": ({"train.csv": None}, "missing: .*train.csv"),
    "no answers": ({"answers.csv": None}, "missing: .*answers.csv .nor test_answer.csv"),
    "no description": ({"description.md": None}, "missing: .*description.md"),
    "no settings": ({"task.yaml": None}, "missing: .*task.yaml"),
    "settings are no mapping": ({"task.yaml": "accuracy"}, "task.yaml: not a mapping"),
    "settings are no YAML": ({"task.yaml": "metric: [accuracy"}, "task.yaml: while parsing"),
    "a misspelt setting": ({"task.yaml": "metric: accuracy\nlicense: x\n"}, "license: Extra inputs"),
    "no metric": ({"task.yaml": "licence: CC0\n"}, "metric: Field required"),
    "a misspelt metric": ({"task.yaml": "metric: acuracy\n"}, "unknown metric 'acuracy'.*did you mean 'accuracy'"),
    "a metric of the other kind": (
        {"task.yaml": "metric: rmse\nkind: classification\n"},
        "rmse scores regression, not classification",
    ),
    "a metric of both kinds": ({"task.yaml": "metric: gini\n"}, "say which `kind`"),
    "bytes for a table": ({"train.csv": b"\xff\xfe\x00"}, "train.csv is no comma-separated UTF-8 table"),
    "an empty file": ({"test.csv": b""}, "test.csv is no comma-separated"),
    "no rows": (replaced("test.csv", FLOWERS["test.csv"], "id,light,water\n"), "test.csv has no rows"),
    "no target in train": (replaced("train.csv", "flower", "bloom"), "train.csv has no column 'flower'"),
    "no target in the answers": (replaced("answers.csv", "flower", "bloom"), "the answer file has no column 'flower'"),
    "no id in test": (replaced("test.csv", "id,", "key,"), "test.csv has no column 'id'"),
    "the target in test": (replaced("test.csv", "water", "flower"), "must not be public"),
    "the answers in test": (
        {"test.csv": "id,light,bloom\n" + "".join(f"{i},1,{'no' if i % 5 < 3 else 'yes'}\n" for i in range(20, 28))},
        "column 'bloom' of test.csv equals the answers",
    ),
    "an id twice": (replaced("test.csv", "21,", "20,"), "test.csv repeats ids, e.g. '20'"),
    "an answer is missing": (
        {"answers.csv": lines(FLOWERS["answers.csv"], 0, 8)},
        "the answer file lacks 1 ids of test.csv, e.g. '20'",
    ),
    "an answer too many": ({"answers.csv": FLOWERS["answers.csv"] + "99,no\n"}, "1 ids that are not in test.csv"),
    "the sample is shorter": (
        {"sample_submission.csv": lines(FLOWERS["sample_submission.csv"], 0, 5)},
        "sample_submission.csv lacks 4 ids",
    ),
    "a blank answer": (replaced("answers.csv", "27,no", "27,"), "the answer file lacks 1 values"),
    "an unknown answer": (replaced("answers.csv", "27,no", "27,maybe"), "labels that train.csv lacks: .'maybe'"),
    "an unlisted label": (
        {"task.yaml": "metric: accuracy\nclasses: ['no', maybe]\n"},
        "labels that task.yaml does not list: .'yes'",
    ),
    "the sample has other columns": (
        {
            "task.yaml": "metric: accuracy\n",
            "sample_submission.csv": FLOWERS["sample_submission.csv"]
            .replace("id,flower", "id,more,flower")
            .replace(",no", ",1,no"),
        },
        "has the columns .'more', 'flower'.; accuracy needs .'flower'",
    ),
    "one class": (
        {name: FLOWERS[name].replace("yes", "no") for name in ("train.csv", "answers.csv")},
        "fewer than two classes",
    ),
    "words in regression": ({"task.yaml": "metric: rmse\n"}, "20 values of 'flower' are no numbers, e.g. 'no'"),
    "a bad reference": ({"task.yaml": "metric: accuracy\nreference: 0.3\n"}, "no better than the trivial predictor"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_is_said_and_makes_the_folder_no_task(name: str, tmp_path: Path) -> None:
    change, message = ERRORS[name]
    folder = write_flat(tmp_path / "flowers", {**FLOWERS, **change})
    with pytest.raises(TaskError, match=message):
        the_task(folder)
    (problems,) = validate(folder).values()
    assert any(problem.severity == "error" for problem in problems)


NUMBER_ERRORS = {
    "rmsle": ("11", "-11", "rmsle needs values that are not negative"),
    "mape": ("11", "0", "mape needs values that are not zero"),
    "mae": ("11", "inf", "are no numbers, e.g. 'inf'"),
}


@pytest.mark.parametrize("metric", NUMBER_ERRORS)
def test_numbers_that_a_metric_cannot_score_are_errors(metric: str, tmp_path: Path) -> None:
    old, new, message = NUMBER_ERRORS[metric]
    parts = {**HEIGHTS, "task.yaml": f"metric: {metric}\n"}
    assert the_task(write_flat(tmp_path / "good", parts)).metric == metric
    parts["answers.csv"] = parts["answers.csv"].replace(f",{old}\n", f",{new}\n")
    with pytest.raises(TaskError, match=message):
        the_task(write_flat(tmp_path / "bad", parts))


def test_warnings_leave_a_folder_usable(tmp_path: Path) -> None:
    train = lines(FLOWERS["train.csv"], 0, 20) + "19,4,1,\n" + "20,0,10,no\n21,1,4,no\n"
    parts = {**FLOWERS, "train.csv": train, "description.md": "Plants.\n"}
    parts["test.csv"] = parts["test.csv"].replace("id,light,water", "id,light,rain")
    (problems,) = validate(write_flat(tmp_path / "flowers", parts)).values()
    assert {problem.severity for problem in problems} == {"warning"}
    text = "; ".join(problem.text for problem in problems)
    assert "very short" in text and "1 rows of train.csv have no target" in text and "['rain']" in text
    assert the_task(tmp_path / "flowers").rows == (22, 8)
    (problems,) = validate(write_flat(tmp_path / "heights", {**HEIGHTS, "task.yaml": "metric: rmse\n"})).values()
    assert [problem.text for problem in problems] == [
        "task.yaml has no reference: a score of 1 then means no error at all"
    ]


def test_copied_rows_are_noticed(tmp_path: Path) -> None:
    header = "id,a,b,c,flower\n"
    train = header + "".join(f"{i},{i},{i},{i},{'no' if i % 2 else 'yes'}\n" for i in range(20))
    test = "id,a,b,c\n" + "".join(f"{i},{i - 20},{i - 20},{i - 20}\n" for i in range(20, 28))
    (problems,) = validate(write_flat(tmp_path / "flowers", {**FLOWERS, "train.csv": train, "test.csv": test})).values()
    assert [problem.text for problem in problems] == ["100% of the rows of test.csv are also in train.csv"]


def test_a_good_folder_has_no_problem(tmp_path: Path) -> None:
    write_flat(tmp_path / "flowers", FLOWERS)
    write_mle_bench(tmp_path / "heights", HEIGHTS)
    assert validate(tmp_path) == {"flowers": [], "heights": []}
