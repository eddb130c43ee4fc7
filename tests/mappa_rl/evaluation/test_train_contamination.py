from __future__ import annotations

import warnings

import pytest

from mappa_envs.tasks.base import Task
from mappa_envs.tasks.math.base import MathTask
from mappa_envs.tasks.math.finite import FiniteSource
from mappa_envs.tasks.math.procedural import ProceduralSource
from mappa_rl.errors import ContaminationError, ContaminationWarning
from mappa_rl.evaluation.contamination import contamination_report, refuse_contamination


def source(name: str, *prompts: str) -> FiniteSource:
    return FiniteSource(
        name,
        [
            MathTask(id=f"{name}-{i}", prompt=prompt, kind="k", source=name, answers=("4",))
            for i, prompt in enumerate(prompts)
        ],
    )


TRAIN = source("train", "What is the sum of 2 and 2?", "How many squares has a grid of 3 by 3?", "Find 2 plus 2.")
COPY = source("copy", "Find the largest root of x^2 = 16.", "What is the sum of $2$ and $2$?")
NEAR = source("near", "What is the sum of 2 and 2 then?")
CLEAN = source("clean", "Find the largest root of x^2 = 16.")


def check(train: object, evaluation: object, mode: str = "error", train_tasks: int = 5, eval_tasks: int = 5) -> object:
    return refuse_contamination(
        train,  # type: ignore[arg-type]
        evaluation,  # type: ignore[arg-type]
        train_tasks=train_tasks,
        eval_tasks=eval_tasks,
        mode=mode,  # type: ignore[arg-type]
    )


def test_held_out_copies_of_training_tasks_are_refused_by_name() -> None:
    with pytest.raises(ContaminationError, match="1 of 2 held-out tasks") as caught:
        check(TRAIN, COPY)
    assert caught.value.got == "copy-1"
    assert "contamination=warn" in caught.value.fix
    with pytest.raises(ContaminationError, match="near-0"):
        check(TRAIN, NEAR)


def test_all_of_a_finite_training_source_is_compared_and_only_the_held_out_tasks_that_are_used() -> None:
    with pytest.raises(ContaminationError):
        check(TRAIN, COPY, train_tasks=0)
    assert check(TRAIN, COPY, eval_tasks=1) is not None


def test_clean_sources_pass() -> None:
    report = check(TRAIN, CLEAN)
    assert report is not None
    assert report.clean  # type: ignore[attr-defined]


def test_the_check_can_be_a_warning_or_off() -> None:
    with pytest.warns(ContaminationWarning, match="copy-1"):
        assert check(TRAIN, COPY, "warn") is not None
    assert check(TRAIN, COPY, "off") is None


def test_long_lists_of_ids_are_cut() -> None:
    prompts = [f"What is the value of {i} times {i + 1}?" for i in range(50)]
    with pytest.raises(ContaminationError, match="50 of 50") as caught:
        check(source("a", *prompts), source("b", *prompts), eval_tasks=50)
    assert caught.value.got.endswith("b-19 and 30 more")


def test_generated_tasks_are_refused_only_where_statements_are_equal() -> None:
    train, held_out = ProceduralSource("train"), ProceduralSource("eval")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = check(train, held_out, train_tasks=500, eval_tasks=100)
    assert report is not None
    assert (report.train_size, report.eval_size) == (500, 100)  # type: ignore[attr-defined]
    with pytest.raises(ContaminationError, match="5 of 5"):
        check(train, train)


class Mirrored:
    """Generates one wording, with the numbers in one of two orders."""

    name = "mirrored"
    size: int | None = None

    def __init__(self, wording: str) -> None:
        self.wording = wording

    def task(self, index: int) -> MathTask:
        prompt = self.wording.format(index + 20, 3)
        return MathTask(id=f"m{index}", prompt=prompt, kind="k", source=self.name, answers=(str(index),))


def test_nearly_equal_statements_are_reported_and_refused_only_between_finite_sources() -> None:
    train = Mirrored("How many shortest paths along grid lines lead from the origin to ({0}, {1})?")
    held_out = Mirrored("How many shortest paths along grid lines lead from the origin to ({1}, {0})?")
    report = check(train, held_out, train_tasks=4, eval_tasks=2)
    assert report.eval_ids == ("m0", "m1")  # type: ignore[attr-defined]
    finite = [FiniteSource("f", [source.task(i) for i in range(4)]) for source in (train, held_out)]
    with pytest.raises(ContaminationError, match="m0, m1"):
        check(*finite, eval_tasks=2)


def test_other_tasks_than_maths_are_not_compared() -> None:
    class Other:
        name = "other"
        size: int | None = 2

        def task(self, index: int) -> Task:
            return Task(id=str(index), prompt="the same", kind="k", source="other")

    assert contamination_report(Other(), Other(), train_tasks=2, eval_tasks=2) is None
