"""The inspector on workspaces that the tests fill; whatever it runs, it runs in real sandboxes."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import joblib
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from table_cases import table_task

from mappa_envs import background
from mappa_envs.judges.criteria import Finding
from mappa_envs.judges.data_rules import DataInspector
from mappa_envs.judges.data_rules.judge import state_of
from mappa_envs.sandbox import SandboxConfig
from mappa_envs.sandbox.shared import close_shared
from mappa_envs.tasks.tabular.base import SAMPLE
from mappa_envs.toolbox import Toolbox

TASK = table_task("labels")
CONFIG = SandboxConfig(timeout=30, seed=0)


@pytest.fixture(scope="module", autouse=True)
def _no_kernels_left() -> Iterator[None]:
    yield
    close_shared()


def dumped(model: object) -> bytes:
    file = io.BytesIO()
    joblib.dump(model, file)
    return file.getvalue()


@lru_cache(maxsize=1)
def good_work() -> dict[str, bytes]:
    """Everything that a good team leaves."""
    files = TASK.files()
    train, test = (
        pd.read_csv(io.BytesIO(files[name]), dtype={"row_id": str}).set_index("row_id")
        for name in ("train.csv", "test.csv")
    )
    y = train.pop("target")
    x, new = (
        pd.DataFrame({"size": t["size"], "weight": t["weight"].fillna(0), "round": (t["shape"] == "round").astype(int),
                      "flat": (t["shape"] == "flat").astype(int)})
        for t in (train, test)
    )  # fmt: skip
    model = LogisticRegression().fit(x, y)
    submission = pd.DataFrame({"target": model.predict(new)}, new.index)
    return {
        "X_train.csv": x.to_csv().encode(),
        "X_test.csv": new.to_csv().encode(),
        "y_train.csv": y.to_frame().to_csv().encode(),
        "model.joblib": dumped(model),
        "validation.json": b'{"value": 0.9}',
        "submission.csv": submission.to_csv().encode(),
    }


def look(**changed: bytes | None) -> dict[str, Finding]:
    """Return the findings on good work in which some files are replaced or removed (`submission=None`)."""
    names = {name.partition(".")[0]: name for name in good_work()}
    work = {**good_work(), **{names[key]: data for key, data in changed.items()}}
    box = Toolbox(CONFIG, {**TASK.files(), **{name: data for name, data in work.items() if data is not None}})
    facts = background.run(DataInspector(TASK, box).facts())
    assert json.loads(json.dumps(facts)) == facts, "plain JSON"
    return dict(state_of(facts))


def missed(found: dict[str, Finding]) -> set[str]:
    return {key for key, finding in found.items() if finding.met is False}


def test_good_work_has_no_fault() -> None:
    assert missed(look()) == set()


def test_an_empty_workspace_has_them_all_and_starts_no_kernel() -> None:
    box = Toolbox(CONFIG, TASK.files())
    found = state_of(background.run(DataInspector(TASK, box).facts()))
    assert all(finding.met is False for key, finding in found.items() if key != "submission.follows")
    assert box.level is None


def test_the_sample_submission_is_recognised() -> None:
    sample = TASK.files()[SAMPLE]
    upper = b"\xef\xbb\xbf" + sample.replace(b"\n", b"\r\n")
    for data in (sample, upper):
        found = look(submission=data, model=None)
        assert found["submission.valid"].met and {"submission.own", "submission.beats"} <= missed(found)


def test_constant_predictions_earn_no_points_for_predicting() -> None:
    header, *rows = good_work()["submission.csv"].decode().splitlines()
    constant = "\n".join([header, *(row.partition(",")[0] + ",yes" for row in rows)]).encode()
    found = look(submission=constant)
    assert {"submission.varies", "submission.follows", "submission.beats"} <= missed(found)


def test_shuffled_ids_follow_no_model() -> None:
    header, *rows = good_work()["submission.csv"].decode().splitlines()
    pairs = [row.split(",") for row in rows]
    moved = [f"{a[0]},{b[1]}" for a, b in zip(pairs, pairs[7:] + pairs[:7], strict=True)]
    assert "submission.follows" in missed(look(submission="\n".join([header, *moved]).encode()))
    same_rows_elsewhere = "\n".join([header, *reversed(rows)]).encode()
    assert missed(look(submission=same_rows_elsewhere)) == set()


@pytest.mark.parametrize(
    "model",
    [
        b"no pickle",
        dumped({"score": 10}),
        dumped(LogisticRegression()),
        dumped(LogisticRegression().fit([[0.0], [1.0]], ["no", "yes"])),
        dumped(LogisticRegression().fit([[0.0] * 4, [1.0] * 4], ["cat", "dog"])),
    ],
    ids=["no pickle", "no estimator", "not fitted", "other columns", "other labels"],
)
def test_a_model_that_does_not_work_is_seen(model: bytes) -> None:
    found = look(model=model)
    assert found["model.saved"].met
    assert {"model.predicts", "model.varies", "model.beats"} <= missed(found)
    assert found["submission.follows"].met is None


def test_a_constant_model_is_seen() -> None:
    x, y = [[0.0] * 4, [1.0] * 4], ["no", "yes"]
    assert {"model.varies", "model.beats"} <= missed(look(model=dumped(DummyClassifier().fit(x, y))))


class Evil:
    """Runs code where it is loaded."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (self.code,)


def test_a_model_file_that_writes_the_report_itself_is_worth_its_predictions() -> None:
    claims = {"values": ["yes"] * 60, "classes": [], "shares": None}
    forged = f"import os; open('found.json', 'w').write({json.dumps(claims)!r}); os._exit(0)"
    found = look(model=pickle.dumps(Evil(forged)))
    assert found["model.predicts"].met, "it did give predictions"
    assert {"model.varies", "model.beats", "model.half", "model.strong"} <= missed(found)


@pytest.mark.parametrize(
    "report",
    [
        '{"values": ["yes"], "classes": [], "shares": null}',
        '{"values": ["yes"], "classes": [], "shares": null, "score": 10}',
        '{"model.predicts": {"met": true, "note": ""}}',
        "NaN",
        "[" * 100_000,
        "",
    ],
)
def test_a_forged_report_of_another_form_counts_as_none(report: str) -> None:
    code = f"import os; open('found.json', 'w').write({report!r}); os._exit(0)"
    assert "model.predicts" in missed(look(model=pickle.dumps(Evil(code))))


def test_a_model_that_loads_for_ever_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mappa_envs.judges.data_rules.reports.MODEL_SECONDS", 1.0)
    assert "model.predicts" in missed(look(model=pickle.dumps(Evil("while True: pass"))))


def test_a_list_of_predictions_in_the_order_of_the_file_is_no_model() -> None:
    # What loading it gives predicts what the rows of X_test.csv deserve, in their order, without a look at them.
    answers = TASK.answers()["target"].tolist()
    stored = "type('Stored', (), {'predict': lambda self, rows: " + repr(answers) + "})()"

    class Memory:
        def __reduce__(self) -> tuple[Any, ...]:
            return eval, (stored,)

    found = look(model=pickle.dumps(Memory()))
    assert found["model.predicts"].met
    assert {"model.half", "model.strong"} <= missed(found)


def test_the_inspecting_kernels_hold_no_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []
    apart = Toolbox.run_apart

    async def spy(self: Toolbox, code: str, files: Any, *rest: Any, **limits: Any) -> bytes | None:
        seen.extend([code.encode(), *files.values()])
        return await apart(self, code, files, *rest, **limits)

    monkeypatch.setattr(Toolbox, "run_apart", spy)
    look()
    public = set(TASK.files().values()) | set(good_work().values())
    answers = [f"{a},{b}".encode() for a, b in TASK.answers().itertuples(index=False)]
    ours = [data for data in seen if data not in public]
    assert len(ours) == 5, "two programs, two specs and the shuffled rows"
    assert not any(answer in data for data in ours for answer in answers)


def test_unchanged_files_are_looked_into_once(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    apart = Toolbox.run_apart

    async def counted(self: Toolbox, *arguments: Any, **limits: Any) -> bytes | None:
        nonlocal count
        count += 1
        return await apart(self, *arguments, **limits)

    monkeypatch.setattr(Toolbox, "run_apart", counted)
    inspector = DataInspector(TASK, Toolbox(CONFIG, {**TASK.files(), **good_work()}))
    assert background.run(inspector.facts()) == background.run(inspector.facts())
    assert count == 2


def test_the_outcome_has_raw_and_normalised_values() -> None:
    outcome = background.run(DataInspector(TASK, Toolbox(CONFIG, {**TASK.files(), **good_work()})).outcome())
    assert outcome.success and 0 < outcome.score <= 1
    assert outcome.details["metric"] == "accuracy" and outcome.details["trivial"] == TASK.trivial
    strict = DataInspector(TASK, Toolbox(CONFIG, {**TASK.files(), **good_work()}), success_above=5.0)
    assert background.run(strict.outcome()).success is False
    nothing = background.run(DataInspector(TASK, Toolbox(CONFIG, TASK.files())).outcome())
    assert nothing.success is False and nothing.score == 0 and nothing.details["faults"] == ["missing_file"]
