"""Whoever commits a fault is blamed for it, and nobody else: the scripted data team in real sandboxes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from table_cases import CASES, Cases

from mappa_envs.envs.data_pipeline import DataPipeline
from mappa_envs.sandbox.shared import close_shared
from mappa_rl.evaluation.blame import Case, blame_cases, blame_table
from mappa_rl.policy.data_sabotage import SABOTAGES


@pytest.fixture(scope="module", autouse=True)
def _no_kernels_left() -> Iterator[None]:
    yield
    close_shared()


def matrix(names: list[str], faults: tuple[str, ...]) -> list[Case]:
    source = Cases(names)
    return list(blame_cases(lambda: DataPipeline(tasks=source), source, range(len(names)), faults=faults))


@pytest.mark.slow
def test_a_fault_of_each_role_is_blamed_on_it() -> None:
    cases = matrix(["labels"], ("target leak", "unfitted model", "rows left out"))
    assert all(case.right for case in cases), blame_table(cases)
    assert all(score == 10 for score in cases[0].clean.values())
    assert "In 3 of 3 cases" in blame_table(cases)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_fault_on_every_case_is_blamed_on_its_culprit() -> None:
    cases = matrix(list(CASES), tuple(SABOTAGES))
    assert len(cases) == len(SABOTAGES) * 5
    assert all(case.right for case in cases), blame_table(cases)


def test_a_case_is_wrong_if_an_innocent_loses_or_the_culprit_is_not_lowest() -> None:
    clean = {"engineer": 9.0, "modeler": 9.0}
    for modeler, engineer, right in ((5.0, 9.0, True), (5.0, 8.0, True), (5.0, 7.9, False), (9.0, 9.0, False)):
        scores = {"engineer": engineer, "modeler": modeler}
        assert Case("fault", "modeler", "task", clean, scores).right is right


def test_there_are_faults_of_every_role() -> None:
    roles = [sabotage.role for sabotage in SABOTAGES.values()]
    assert len(roles) >= 12 and min(map(roles.count, ("engineer", "modeler", "analyst"))) >= 4
