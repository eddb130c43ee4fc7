from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from mappa_envs.tasks.tabular.split import TEST_EVERY, split_rows


def test_a_split_is_the_same_on_every_machine() -> None:
    ids, test = split_rows(pd.Series(["a", "b"] * 6), "pinned")
    assert ids.tolist() == [5, 10, 6, 2, 0, 8, 1, 4, 11, 9, 7, 3]
    assert np.flatnonzero(test).tolist() == [0, 7, 8]


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=60), st.text(max_size=5))
def test_ids_are_a_permutation_and_one_row_in_four_is_for_testing(labels: list[str], name: str) -> None:
    ids, test = split_rows(pd.Series(labels), name)
    assert sorted(ids) == list(range(len(labels)))
    assert test.sum() == len(labels) // TEST_EVERY


@given(st.lists(st.integers(5, 40), min_size=2, max_size=5))
def test_classes_keep_their_shares(sizes: list[int]) -> None:
    labels = pd.Series([code for code, size in enumerate(sizes) for _ in range(size)])
    _, test = split_rows(labels, "shares")
    for code, size in enumerate(sizes):
        assert abs(int((test & (labels == code)).sum()) - size / TEST_EVERY) <= 2


def test_numbers_keep_their_distribution_and_ids_tell_nothing() -> None:
    target = pd.Series(np.exp(np.linspace(0, 5, 2000)))
    ids, test = split_rows(target, "numbers")
    for share in (0.1, 0.5, 0.9):
        assert np.isclose(target[test].quantile(share), target[~test].quantile(share), rtol=0.02)
    assert abs(np.corrcoef(ids, np.arange(2000))[0, 1]) < 0.06
    assert abs(np.corrcoef(ids, test)[0, 1]) < 0.06
    # Knowing the order of the target says nothing of which of four neighbours is a test row.
    places = np.flatnonzero(test) % TEST_EVERY
    assert np.bincount(places, minlength=4).min() > 90


def test_another_name_gives_another_split() -> None:
    target = pd.Series(range(100))
    one, other = split_rows(target, "one"), split_rows(target, "other")
    assert (one[0] != other[0]).any() and (one[1] != other[1]).any()
