"""What is said of feature files, and of features that give the target away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from table_cases import table_task

from mappa_envs.judges.data_rules import checks
from mappa_envs.judges.data_rules.inside_features import report, skill
from mappa_envs.judges.data_rules.reports import FeatureReport
from mappa_envs.judges.data_rules.skill import model_skill

SPEC = {"id": "row_id", "target": "target"}


class Desk:
    """A folder with the public files of a case, and honest features as frames."""

    def __init__(self, name: str, folder: Path) -> None:
        self.task = table_task(name)
        for file, data in self.task.files().items():
            (folder / file).write_bytes(data)
        train, test = (
            pd.read_csv(folder / f, dtype={"row_id": str}).set_index("row_id") for f in ("train.csv", "test.csv")
        )
        self.y = train.pop("target")
        self.x, self.new = (
            pd.DataFrame(
                {"size": part["size"], "weight": part["weight"].fillna(0)}
                | {shape: (part["shape"] == shape).astype(int) for shape in ("round", "flat")}
            )
            for part in (train, test)
        )
        self.codes = pd.Series(pd.factorize(self.y, sort=True)[0], self.y.index, dtype=float)

    def look(self, **changed: Any) -> FeatureReport:
        """Write the features, but for what is changed, and report on them."""
        for name, table in {"X_train": self.x, "X_test": self.new, "y_train": self.y.to_frame(), **changed}.items():
            Path(f"{name}.csv").write_text(table if isinstance(table, str) else table.to_csv(), encoding="utf-8")
        spec = {**SPEC, "kind": self.task.kind, "rows": list(range(60))}
        return FeatureReport.model_validate(report(spec))

    def truth(self) -> Any:
        return self.task.answers()["target"].tolist()

    def findings(self, seen: FeatureReport) -> dict[str, bool | None]:
        found = checks.feature_findings(("X_train.csv", "X_test.csv", "y_train.csv"), seen)
        found |= checks.feature_grades(seen, self.truth())
        return {key.removeprefix("features."): finding.met for key, finding in found.items()}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    return lambda name="labels": Desk(name, tmp_path)


@pytest.mark.parametrize("name", ["labels", "shares", "numbers"])
def test_honest_features_have_no_fault(desk: Any, name: str) -> None:
    at = desk(name)
    assert set(at.findings(at.look()).values()) == {True}


def test_rows_of_the_test_table_may_stand_in_any_order(desk: Any) -> None:
    at = desk()
    assert at.look(X_test=at.new.iloc[::-1]) == at.look()


def missing(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(size=table["size"].where(np.arange(len(table)) > 0))


@pytest.mark.parametrize(
    ("change", "key", "words"),
    [
        (lambda at: {"X_train": at.x.assign(note="a")}, "readable", "not numeric"),
        (lambda at: {"X_test": missing(at.new)}, "readable", "missing"),
        (lambda at: {"X_train": at.x.assign(size=np.inf)}, "readable", "infinite"),
        (lambda at: {"X_train": at.x.reset_index(drop=True)}, "readable", "not the id"),
        (lambda at: {"X_train": ""}, "readable", "cannot be read"),
        (lambda at: {"X_train": "\x00\xff"}, "readable", "X_train"),
        (lambda at: {"X_test": "row_id,size\n"}, "readable", "empty"),
        (lambda at: {"X_test": at.new.iloc[1:]}, "rows", "59 of the 60"),
        (lambda at: {"X_test": pd.concat([at.new, at.new.iloc[:1]])}, "rows", "twice"),
        (lambda at: {"X_train": at.x.iloc[::-1]}, "rows", "another order"),
        (lambda at: {"X_train": at.x.iloc[::2], "y_train": at.y.to_frame().iloc[::2]}, "rows", "90 of 180"),
        (lambda at: {"X_train": at.x.rename(index={at.x.index[0]: "x9"}),
                     "y_train": at.y.to_frame().rename(index={at.x.index[0]: "x9"})}, "rows", "train.csv has not"),
        (lambda at: {"X_test": at.new.drop(columns="size")}, "columns", "4 features, X_test.csv 3"),
        (lambda at: {"X_test": at.new[at.new.columns[::-1]]}, "columns", "not the same"),
        (lambda at: {"X_train": at.x.assign(target=at.codes)}, "columns", "target is among"),
        (lambda at: {"y_train": at.codes.rename("target").to_frame()}, "target", "not those of train.csv"),
        (lambda at: {"y_train": at.y.rename("y").to_frame()}, "target", "other columns"),
        (lambda at: {"y_train": at.y.sample(frac=1).set_axis(at.y.index).to_frame()}, "target", "values"),
    ],
)  # fmt: skip
def test_every_fault_is_named(desk: Any, change: Any, key: str, words: str) -> None:
    at = desk()
    seen = at.look(**change(at))
    assert words in getattr(seen, key)
    found = at.findings(seen)
    assert found["saved"] and not found[key] and not found["clean"] and not found["useful"]


def test_missing_files_are_named() -> None:
    found = checks.feature_findings(("X_train.csv",), None)
    assert "X_test.csv, y_train.csv" in found["features.saved"].note
    assert not any(finding.met for finding in found.values())


def test_a_few_training_rows_may_go(desk: Any) -> None:
    at = desk()
    kept = at.look(X_train=at.x.iloc[10:], y_train=at.y.to_frame().iloc[10:])
    assert kept.rows == "" and at.findings(kept)["clean"]


@pytest.mark.parametrize("name", ["labels", "shares", "numbers"])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_feature_made_from_the_target_is_found(desk: Any, name: str, noise: float) -> None:
    at = desk(name)
    codes = at.codes if at.task.classes else at.y
    hint = codes + noise * codes.std() * np.random.default_rng(0).normal(size=len(codes))
    found = at.findings(at.look(X_train=at.x.assign(hint=hint), X_test=at.new.assign(hint=codes.mean())))
    assert found["clean"] is False
    assert found["rows"] and found["columns"] and found["target"]


def test_an_honest_feature_that_tells_everything_is_no_leak(desk: Any) -> None:
    at = desk("numbers")
    shape = 1.5 * at.x["round"] - 1.5 * at.x["flat"]
    new = 1.5 * at.new["round"] - 1.5 * at.new["flat"]
    seen = at.look(
        X_train=at.x.assign(all=2 * at.x["size"] - at.x["weight"] + shape),
        X_test=at.new.assign(all=2 * at.new["size"] - at.new["weight"] + new),
    )
    assert [suspect.strength > 0.9 for suspect in seen.suspects] == [True]
    assert at.findings(seen)["clean"]


def test_features_of_noise_are_useless(desk: Any) -> None:
    at = desk()
    rng = np.random.default_rng(0)
    made = {
        name: pd.DataFrame({"a": rng.normal(size=len(t))}, t.index)
        for name, t in (("X_train", at.x), ("X_test", at.new))
    }
    assert at.findings(at.look(**made))["useful"] is False


def test_skill_by_hand() -> None:
    # 3 of 4 right where the commonest class has 2 of 4: half-way from 0.5 to 1.
    assert skill(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0]), 2) == pytest.approx(0.5)
    assert skill(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 0]), 2) == 0
    # Spearman: ranks 1 2 3 4 against 1 2 4 3, 1 - 6 * 2 / (4 * 15) = 0.8.
    assert skill(np.array([1.0, 2, 3, 4]), np.array([10.0, 20, 50, 30]), 0) == pytest.approx(0.8)
    # Brier: rows (0.8, 0.2) for a and (0.4, 0.6) for b: 0.08 + 0.32 against 0.5 + 0.5.
    assert model_skill(["a", "b"], [[0.8, 0.2], [0.4, 0.6]], ["a", "b"]) == pytest.approx(0.6)
    assert model_skill(["a", "b"], [[0.5, 0.5], [0.5, 0.5]], ["a", "b"]) == pytest.approx(0)
