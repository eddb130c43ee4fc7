from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st
from small_team import team
from stable_baselines3.common.env_checker import check_env as sb3_check_env

from mappa_envs.errors import ConfigError, EpisodeError
from mappa_envs.testing import check_determinism
from mappa_envs.transcript import Message
from mappa_envs.wrappers import (
    ChoiceEnv,
    PieceVocabulary,
    RoleEnv,
    TeamAsGym,
    TokenizerVocabulary,
    TokenLevelEnv,
    characters,
)

PIECES = PieceVocabulary(["DONE", " ", "1", "D"])
END, OTHER, DONE, SPACE, ONE, D, EMPTY = 0, 1, 2, 3, 4, 5, 6


def role(agent: str = "speaker_0") -> RoleEnv:
    return RoleEnv(team(), agent, lambda agent, messages: f"{agent} {len(messages)}")


def proposals(agent: str, messages: Sequence[Message]) -> list[str]:
    return [agent, "DONE", str(len(messages))]


def views() -> list[Any]:
    return [
        TokenLevelEnv(role(), PIECES, max_tokens=3, prompt_tokens=10),
        TokenLevelEnv(TeamAsGym(team()), max_tokens=2, prompt_tokens=5),
        ChoiceEnv(role(), ["a", "b DONE"]),
        ChoiceEnv(role("thinker_1"), proposals, count=3, candidate_tokens=8),
        ChoiceEnv(TeamAsGym(team()), proposals, count=3),
    ]


@pytest.mark.parametrize("view", views(), ids=lambda view: f"{type(view).__name__}-{type(view.env).__name__}")
def test_stable_baselines_and_gymnasium_accept_it(view: Any) -> None:
    sb3_check_env(view)
    check_env(view, skip_render_check=True)


def test_seed_and_actions_fix_the_episode() -> None:
    for index in range(len(views())):
        check_determinism(lambda index=index: views()[index])  # type: ignore[misc]


def test_an_action_is_written_token_by_token_and_scored_at_its_end() -> None:
    env = TokenLevelEnv(role(), PIECES, max_tokens=4, prompt_tokens=6)
    observation, _ = env.reset(seed=1)
    assert env.observation_space.contains(observation) and observation[6:].tolist() == [EMPTY] * 4
    assert observation[:6].tolist() == PIECES.encode(env.prompt)[-6:]
    observation, reward, terminated, _, info = env.step(np.int64(ONE))
    assert (reward, terminated, info) == (0.0, False, {}) and observation[6:].tolist() == [ONE, *[EMPTY] * 3]
    env.step(np.int64(SPACE))
    observation, reward, terminated, _, info = env.step(np.int64(END))
    assert info["action"] == "1 " and info["verdict"]["score"] == 2 and reward == 0.2 and not terminated
    assert observation[6:].tolist() == [EMPTY] * 4, "the next turn begins empty"
    for token in (D, D, DONE):
        assert env.step(np.int64(token))[1] == 0.0
    _, reward, terminated, _, info = env.step(np.int64(ONE))
    assert info["action"] == "DDDONE1" and terminated and reward == 0.7, "the longest action is taken as it is"
    with pytest.raises(EpisodeError, match="reset"):
        env.step(np.int64(ONE))


def test_a_candidate_is_picked() -> None:
    env = ChoiceEnv(role(), proposals, count=3, vocabulary=characters(), prompt_tokens=4, candidate_tokens=2)
    observation, info = env.reset(seed=1)
    assert info["candidates"] == ["speaker_0", "DONE", "2"]
    encode = characters().encode
    assert observation.tolist() == [*encode(env.prompt)[-4:], *encode("sp"), *encode("DO"), *encode("2"), 98]
    _, reward, terminated, _, info = env.step(np.int64(0))
    assert info["action"] == "speaker_0" and reward == 0.9 and not terminated and info["candidates"][2] == "4"
    _, reward, terminated, _, info = env.step(np.int64(1))
    assert terminated and reward == 0.4 and info["candidates"] == [] and info["outcome"]["success"]


def test_a_list_of_candidates_needs_no_count() -> None:
    env = ChoiceEnv(role(), ["x", "DONE"], prompt_tokens=7)
    assert env.action_space.n == 2 and env.observation_space.shape == (7,)
    env.reset(seed=0)
    assert env.step(np.int64(1))[4]["action"] == "DONE"


@given(st.lists(st.sampled_from(["DONE", " ", "1", "D"])))
def test_pieces_are_read_back_as_they_were_written(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert PIECES.decode(PIECES.encode(text)) == text


@given(st.text())
def test_any_text_has_tokens(text: str) -> None:
    for vocabulary in (PIECES, characters()):
        tokens = vocabulary.encode(text)
        assert all(0 < token < vocabulary.size for token in tokens)
        assert len(vocabulary.decode(tokens)) <= len(text)


def test_the_longest_piece_is_read_and_the_rest_is_one_token() -> None:
    assert PIECES.encode("xyDONE D1zz") == [OTHER, DONE, SPACE, D, ONE, OTHER]
    assert PIECES.decode([END, OTHER, DONE]) == "DONE"


class Words:
    """What `TokenizerVocabulary` uses of a tokenizer."""

    eos_token_id = 2

    def __len__(self) -> int:
        return 3

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        assert not add_special_tokens
        return [int(word == "DONE") for word in text.split()]

    def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
        assert skip_special_tokens
        return " ".join(("no", "DONE")[i] for i in ids)


def test_a_tokenizer_serves_as_vocabulary() -> None:
    env = TokenLevelEnv(role(), TokenizerVocabulary(Words()), max_tokens=3, prompt_tokens=4)
    assert env.action_space.n == 3
    env.reset(seed=0)
    env.step(np.int64(1))
    assert env.step(np.int64(2))[4]["action"] == "DONE"
    with pytest.raises(ConfigError, match="no end token"):
        TokenizerVocabulary(object())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TokenLevelEnv(team(), PIECES), "shows a Gymnasium environment of text"),
        (lambda: TokenLevelEnv(TokenLevelEnv(role()), PIECES), "shows a Gymnasium environment of text"),
        (lambda: TokenLevelEnv(role(), "abc"), "no vocabulary"),
        (lambda: TokenLevelEnv(role(), max_tokens=0), "bad max_tokens"),
        (lambda: ChoiceEnv(role(), "ab"), "bad candidates"),
        (lambda: ChoiceEnv(role(), ["a", 3]), "bad candidates"),
        (lambda: ChoiceEnv(role(), ["a"]), "bad count"),
        (lambda: ChoiceEnv(role(), proposals), "bad count"),
        (lambda: ChoiceEnv(role(), proposals, count=4).reset(seed=0), "a wrong number of candidates"),
        (lambda: ChoiceEnv(role(), ["a", "b"], count=3).reset(seed=0), "a wrong number of candidates"),
        (lambda: PieceVocabulary([]), "bad pieces"),
        (lambda: PieceVocabulary(["a", ""]), "bad pieces"),
        (lambda: PieceVocabulary(["a", "a"]), "bad pieces"),
        (lambda: PieceVocabulary("abc"), "bad pieces"),
    ],
)
def test_mistakes_are_named(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


def test_an_action_out_of_the_space_is_refused() -> None:
    env = ChoiceEnv(role(), ["a", "b"])
    with pytest.raises(EpisodeError, match="reset"):
        env.step(np.int64(0))
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="not in the space"):
        env.step(np.int64(2))
