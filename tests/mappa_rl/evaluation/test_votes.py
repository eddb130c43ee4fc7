from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mappa_rl.evaluation.votes import majority_vote


@pytest.mark.parametrize(
    ("answers", "winner"),
    [
        (["3", "4", "4"], 1),
        (["3", "4"], 0),
        (["4", "3", "3", "4"], 0),
        ([None, "3", None, None], 1),
        ([None, None], None),
        ([], None),
        (["7", "1/2", "0.5", r"\frac{1}{2}", "7"], 1),
        (["042", "41", "42"], 0),
        # Rounded to three figures, whichever comes first.
        (["7", "1/3", "0.333"], 1),
        (["7", "0.333", "1/3"], 1),
        (["5", "(1,2)", "(1, 2)"], 1),
        ([r"\{1,2\}", "7", r"\{2,1\}"], 0),
        (["x+1", "2", "1+x", "2"], 1),
        (["", "5", "5", ""], 0),
        (["1" * 2000, "5", "1" * 2000], 0),
    ],
)
def test_the_largest_group_of_equal_answers_wins_and_ties_go_to_the_first(
    answers: list[str | None], winner: int | None
) -> None:
    assert majority_vote(answers) == winner


@settings(deadline=None)
@given(st.lists(st.none() | st.integers(-5, 5).map(str), max_size=20))
def test_integers_are_counted_as_they_are(answers: list[str | None]) -> None:
    counts = Counter(answer for answer in answers if answer is not None)
    winner = majority_vote(answers)
    if winner is None:
        assert not counts
    else:
        assert answers[winner] == counts.most_common(1)[0][0]
        assert answers.index(answers[winner]) == winner


@settings(deadline=None)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=6))
def test_any_texts_can_be_voted_on(answers: list[str]) -> None:
    winner = majority_vote(answers)
    assert winner is not None
    assert 0 <= winner < len(answers)
