from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs_registry.errors import ConfigError
from mappa_envs.spaces import AnyText


@given(st.text(max_size=50))
def test_any_text_that_utf8_can_encode_is_in_the_space(text: str) -> None:
    assert AnyText(50).contains(text)


def test_lone_surrogates_long_texts_and_other_types_are_not() -> None:
    space = AnyText(3)
    assert [space.contains(x) for x in ("abcd", "\ud800", b"abc", None, 3)] == [False] * 5


def test_samples_are_members_and_follow_the_seed() -> None:
    one, two = AnyText(100, seed=7), AnyText(100, seed=7)
    samples = [one.sample() for _ in range(20)]
    assert samples == [two.sample() for _ in range(20)]
    assert len(set(samples)) > 10
    assert all(one.contains(s) for s in samples)


def test_it_is_short_in_print_equal_by_limit_and_copies() -> None:
    space = AnyText(1_000_000)
    assert repr(space) == "AnyText(1000000)"
    assert space == copy.deepcopy(space) == pickle.loads(pickle.dumps(space))
    assert space != AnyText(5)


@pytest.mark.parametrize("limit", [0, -1, True, 2.5, "3"])
def test_a_bad_limit_is_named(limit: object) -> None:
    with pytest.raises(ConfigError, match="bad max_chars"):
        AnyText(limit)  # type: ignore[arg-type]


def test_a_mask_is_refused() -> None:
    with pytest.raises(ConfigError, match="takes no mask"):
        AnyText(5).sample(mask=1)
