from __future__ import annotations

import copy
import dataclasses
import functools
import json
import pickle
from typing import Any

import pytest
from counting_toy import CountingConfig, CountingEnv, Holder, Plain, SubConfig, make_counting
from hypothesis import given
from hypothesis import strategies as st

from envs_registry import EntryPointError, EnvSpec, RegistryError

AEC = "counting_toy:CountingEnv"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text().filter("$type".__ne__), inner)
    ),
    max_leaves=8,
)


def spec(**kwargs: Any) -> EnvSpec:
    return EnvSpec("Toy/Counting-v3", AEC, kwargs, description="adds", nondeterministic=True)


def test_the_parts_of_the_id_are_there() -> None:
    s = spec()
    assert (s.namespace, s.name, s.version, s.faces) == ("Toy", "Counting", 3, ("aec",))


def test_the_representation_is_short_whatever_the_kwargs() -> None:
    assert repr(spec(text="x" * 10_000)) == "EnvSpec('Toy/Counting-v3', faces=['aec'])"


def test_a_spec_cannot_be_changed() -> None:
    s = spec(rounds=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        s.id = "Toy/Other-v0"  # type: ignore[misc]
    with pytest.raises(TypeError):
        s.kwargs["rounds"] = 2  # type: ignore[index]


def test_specs_are_equal_by_value_and_hashable() -> None:
    assert spec(rounds=1) == spec(rounds=1) != spec(rounds=2)
    assert len({spec(rounds=1), spec(rounds=1)}) == 1


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_spec_can_be_copied_and_pickled(copier: Any) -> None:
    s = spec(config=CountingConfig(target=4), log=["a"])
    assert copier(s) == s and copier(s).kwargs == s.kwargs


@given(st.dictionaries(st.text().filter("$type".__ne__), json_values, max_size=3))
def test_plain_kwargs_survive_json_exactly(kwargs: dict[str, Any]) -> None:
    s = EnvSpec("Toy/Counting-v3", AEC, kwargs)
    back = EnvSpec.from_json(s.to_json())
    assert back == s and repr(dict(back.kwargs)) == repr(dict(s.kwargs))


def test_configs_factories_and_importable_entry_points_survive_json() -> None:
    s = EnvSpec(
        "Toy/Counting-v3",
        CountingEnv,
        {"config": CountingConfig(target=5, weights=(1.0, 2.5)), "factory": make_counting, "kind": SubConfig},
        parallel_entry_point="a.b:C",
        description="d",
        nondeterministic=True,
    )
    back = EnvSpec.from_json(s.to_json())
    assert back.entry_point == AEC
    assert dict(back.kwargs) == dict(s.kwargs)
    assert (back.parallel_entry_point, back.description, back.nondeterministic) == ("a.b:C", "d", True)


@pytest.mark.parametrize(
    "value",
    [
        Plain(),
        {1: 2},
        {"$type": "tuple"},
        float("nan"),
        float("inf"),
        {1, 2},
        b"x",
        lambda: None,
        functools.partial(make_counting, 3),
        Holder(config=SubConfig(bonus=3)),
        [Plain()],
    ],
    ids=repr,
)
def test_a_kwarg_that_json_would_not_give_back_is_refused_by_name(value: Any) -> None:
    with pytest.raises(RegistryError, match="kwarg 'value'"):
        spec(value=value).to_json()


def test_a_local_entry_point_cannot_be_written() -> None:
    def local() -> None: ...

    with pytest.raises(RegistryError, match="top level"):
        EnvSpec("Toy/Counting-v0", local).to_json()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "3",
        '{"id": "Toy/A-v0", "entry_point": "a:b", "kwargs": {}, "extra": 1}',
        '{"id": "nope", "entry_point": "a:b", "kwargs": {}}',
        '{"id": "Toy/A-v0", "entry_point": "a:b", "kwargs": {"x": {"$type": "what"}}}',
        '{"id": "Toy/A-v0", "entry_point": "a:b", "kwargs": {"x": {"$type": "tuple"}}}',
        '{"id": "Toy/A-v0", "entry_point": "a:b", "kwargs": {"x": {"$type": "model", "class": "os:getcwd"}}}',
    ],
)
def test_other_json_is_no_spec(text: str) -> None:
    with pytest.raises(RegistryError):
        EnvSpec.from_json(text)


def test_json_that_names_a_missing_class_says_which() -> None:
    data = json.loads(spec(config=CountingConfig()).to_json())
    data["kwargs"]["config"]["class"] = "counting_toy:Gone"
    with pytest.raises(EntryPointError, match="Gone"):
        EnvSpec.from_json(json.dumps(data))
