from __future__ import annotations

import pytest

from mappa_envs.errors import ConfigError
from mappa_envs.tasks.math.base import MathTask
from mappa_envs.tasks.math.contamination import check_contamination
from mappa_envs.tasks.math.finite import FiniteSource
from mappa_envs.tasks.math.procedural import ProceduralSource

GARDEN = (
    r"A gardener plants $37$ tulips in rows of $\frac{1}{2}$ metre, and every row holds $5$ tulips more than the "
    r"row in front of it. \[\text{Find the least number of rows.}\] Then explain how the rows are laid out."
)


def task(id: str, prompt: str, *answers: str) -> MathTask:
    return MathTask(id=id, prompt=prompt, kind="made", source="made", answers=answers or ("12",))


def test_equal_statements_are_found_whatever_their_formatting() -> None:
    same = (
        GARDEN.upper().replace("$", "").replace(r"\FRAC", r"\dfrac").replace(r"\[\TEXT{", "  \n").replace(r".}\]", ".")
    )
    figure = GARDEN + " [asy] draw((0,0)--(3,4)); [/asy]"
    report = check_contamination([task("a", GARDEN)], [task("1", same), task("2", figure), task("3", "Other?")])
    assert [(o.train_id, o.eval_id, o.similarity) for o in report.verbatim] == [("a", "1", 1.0), ("a", "2", 1.0)]
    assert not report.clean and report.eval_ids == ("1", "2") and report.train_ids == ("a",)
    assert "2 of 3 evaluation problems are among 1 training problems" in report.summary()
    assert "1 = a, 2 = a" in report.summary()


def test_equal_statements_overlap_even_if_their_answers_differ() -> None:
    report = check_contamination([task("a", GARDEN, "12")], [task("1", GARDEN, "13")])
    assert report.eval_ids == ("1",) and not report.verbatim[0].same_answer


def test_a_reworded_statement_with_the_same_numbers_and_answer_is_nearly_equal() -> None:
    reworded = GARDEN.replace("A gardener plants", "One gardener is planting").replace("Then explain", "Explain")
    report = check_contamination([task("a", GARDEN, "012")], [task("1", reworded, r"12^\circ")])
    assert report.verbatim == () and [o.eval_id for o in report.near] == ["1"]
    assert 0.3 < report.near[0].similarity < 1 and report.near[0].same_answer
    assert "nearly: 1 = a" in report.summary()


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        (GARDEN.replace("37", "41"), "12"),
        (GARDEN.replace("A gardener", "One gardener"), "13"),
    ],
    ids=["other numbers", "other answer"],
)
def test_similar_text_of_another_problem_is_only_a_look_alike(prompt: str, answer: str) -> None:
    report = check_contamination([task("a", GARDEN)], [task("1", prompt, answer)])
    assert report.clean and report.eval_ids == ()
    assert [(o.train_id, o.eval_id) for o in report.look_alikes] == [("a", "1")]
    assert "look-alikes: 1 ~ a" in report.summary()


def test_signs_and_operators_tell_statements_apart() -> None:
    report = check_contamination(
        [task("a", "Solve $x^2 - 3x + 2 = 0$ for its larger root.", "2")],
        [task("1", "Solve $x^2 + 3x + 2 = 0$ for its larger root.", "-1")],
    )
    assert report.verbatim == () and report.near == () and len(report.look_alikes) == 1


def test_unrelated_statements_are_clean() -> None:
    report = check_contamination(
        [task("a", GARDEN), task("b", "How many primes are there below one hundred?")],
        [task("1", "A train leaves a station at noon and arrives at six. How far does it go?")],
    )
    assert report.clean and report.look_alikes == ()
    assert report.summary() == "0 of 1 evaluation problems are among 2 training problems"


def test_a_look_alike_names_the_nearest_training_problem() -> None:
    far = GARDEN.replace("laid out", "dug, watered and weeded in the course of the year")
    report = check_contamination(
        [task("far", far, "1"), task("near", GARDEN, "2")], [task("1", GARDEN.replace("37", "41"), "3")]
    )
    assert [(o.train_id, o.eval_id) for o in report.look_alikes] == [("near", "1")]


def test_procedural_splits_are_clean_although_their_wordings_are_alike() -> None:
    train, evaluation = (ProceduralSource(split, 0, levels=(1,)) for split in ("train", "eval"))
    report = check_contamination(
        FiniteSource("train", [train.task(i) for i in range(400)]), [evaluation.task(i) for i in range(80)]
    )
    assert report.verbatim == ()
    # Only numbers in another order remain, such as gcd(12, 18) and gcd(18, 12).
    assert all(pair.similarity < 1 for pair in report.near) and len(report.look_alikes) > 20


def test_short_statements_are_compared_too() -> None:
    report = check_contamination([task("a", "1+1?", "2")], [task("1", "$1 + 1$ ?", "2"), task("2", "2+1?", "3")])
    assert report.eval_ids == ("1",)


@pytest.mark.parametrize("bad", [{"ngram": 1}, {"ngram": True}, {"threshold": 0}, {"threshold": 1.1}])
def test_bad_settings_are_named_errors(bad: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=f"bad {next(iter(bad))}"):
        check_contamination([], [], **bad)  # type: ignore[arg-type]
