from __future__ import annotations

import gymnasium
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pettingzoo.env_registry.spec import EnvSpec as PettingZooSpec

from envs_registry.errors import EnvIdError
from envs_registry.ids import EnvId, parse_id, split_module

namespaces = st.from_regex(r"[A-Za-z0-9_-]{1,12}", fullmatch=True)
names = st.from_regex(r"[A-Za-z0-9_.-]{1,12}", fullmatch=True)
versions = st.integers(0, 999_999_999)


@given(namespaces, names, versions)
def test_an_accepted_id_means_the_same_in_all_three_registries(namespace: str, name: str, version: int) -> None:
    text = f"{namespace}/{name}-v{version}"
    try:
        ours = parse_id(text, versioned=True)
    except EnvIdError:
        return
    parts = (ours.namespace, ours.name, ours.version)
    assert gymnasium.envs.registration.parse_env_id(text) == parts
    theirs = PettingZooSpec(text)
    assert (theirs.id, theirs.namespace, theirs.name, theirs.version) == (text, *parts)
    assert str(ours) == text


@given(st.text(max_size=20))
def test_any_text_is_parsed_or_refused_by_name(text: str) -> None:
    try:
        assert str(parse_id(text)) == text
    except EnvIdError as error:
        assert "Namespace/Name-vN" in str(error)


def test_a_version_may_be_left_out_of_a_lookup() -> None:
    assert parse_id("Mappa/Math-Chat") == EnvId("Mappa", "Math-Chat", None)


def test_a_version_may_not_be_left_out_of_a_registration() -> None:
    with pytest.raises(EnvIdError, match="'Mappa/Chat-v0'"):
        parse_id("Mappa/Chat", versioned=True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "MathChat-v0",
        "Mappa/",
        "/MathChat-v0",
        "a/b/C-v0",
        "Mappa/Chat-v01",
        "Mappa/Chat-v",
        "Mappa/Chat-v1-v2",
        "Mappa/Chat_v1",
        "Mappa/Chat_v1-v2",
        "Mappa/Ch at-v0",
        "Mappa/Chat-v0\n",
        "Mäppa/Chat-v0",
        "Ma.ppa/Chat-v0",
        "Mappa/Chat-v" + "9" * 5000,
        "Mappa/Chat-v\N{ARABIC-INDIC DIGIT ONE}",
        None,
        7,
    ],
)
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(EnvIdError):
        parse_id(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("pkg.mod:A/B-v0", ("pkg.mod", "A/B-v0")),
        ("A/B-v0", (None, "A/B-v0")),
        (":A/B-v0", ("", "A/B-v0")),
        ("a:b:A/B-v0", ("a", "b:A/B-v0")),
    ],
)
def test_the_module_prefix_ends_at_the_first_colon(text: str, parts: tuple[str | None, str]) -> None:
    assert split_module(text) == parts
