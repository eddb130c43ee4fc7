"""Majority votes over final answers."""

from __future__ import annotations

from collections.abc import Sequence

from mappa_envs.grading.compare import Comparer
from mappa_envs.grading.latex import tidy
from mappa_envs.grading.policy import DEFAULT_POLICY
from mappa_envs.grading.pool import Question, Reply
from mappa_envs.grading.reading import Answer, read


def majority_vote(answers: Sequence[str | None]) -> int | None:
    r"""Return the index of the first answer of the largest group of equal answers.

    Two answers are equal if they are the same text or grade as equal without algebra: `1/2`, `0.5` and
    `\frac{1}{2}` are, `x+1` and `1+x` are not. An answer joins the first group whose first member it equals.
    Of groups of one size the one that occurs first wins.

    Args:
        answers: Final answers as extracted; None abstains.

    Returns:
        None if all abstain.
    """
    read_answers = [None if text is None else _read(text) for text in answers]
    groups: list[list[int]] = []
    for index, text in enumerate(answers):
        if text is None:
            continue
        for group in groups:
            first = group[0]
            if text == answers[first] or _equal(read_answers[first], read_answers[index]):
                group.append(index)
                break
        else:
            groups.append([index])
    # `max` keeps the first of equals, and groups are in the order of their first members.
    return max(groups, key=len)[0] if groups else None


def _read(text: str) -> Answer | None:
    if len(text) > DEFAULT_POLICY.max_chars:
        return None
    tidied = tidy(text)
    return read(tidied) if len(tidied) <= DEFAULT_POLICY.max_chars else None


def _equal(first: Answer | None, second: Answer | None) -> bool:
    if first is None or second is None:
        return False
    # Grading takes its first argument as exact and may round the second, so either way round will do.
    return any(_COMPARER.compare(a, b).verdict == "correct" for a, b in ((first, second), (second, first)))


def _no_algebra(question: Question) -> Reply:
    return Reply("undecided", "votes are counted without algebra")


_COMPARER = Comparer(DEFAULT_POLICY, _no_algebra)
