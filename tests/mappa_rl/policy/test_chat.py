from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mappa_envs.transcript import Message
from mappa_rl.errors import PolicyError
from mappa_rl.policy.chat import encode_chat, fit_prompt
from mappa_rl.policy.loading import load_base

CHAT: tuple[Message, ...] = (
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": "Bye"},
)


@pytest.fixture
def tokenizer() -> object:
    return load_base("tiny", device="cpu").tokenizer


def test_the_template_is_applied_once(tokenizer: object) -> None:
    text = tokenizer.decode(encode_chat(tokenizer, CHAT))  # type: ignore[attr-defined]
    assert text == (
        "<|system|>Be brief.<|end|><|user|>Hi<|end|><|assistant|>Hello<|end|><|user|>Bye<|end|><|assistant|>"
    )


def test_a_template_without_a_system_message_gets_it_in_the_first_user_message(tokenizer: object) -> None:
    tokenizer.chat_template = (  # type: ignore[attr-defined]
        "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        "[{{ m['role'] }}]{{ m['content'] }}{% endfor %}"
    )
    text = tokenizer.decode(encode_chat(tokenizer, CHAT))  # type: ignore[attr-defined]
    assert text == "[user]Be brief.\n\nHi[assistant]Hello[user]Bye"


def test_a_base_model_without_a_template_gets_a_plain_one(tokenizer: object) -> None:
    tokenizer.chat_template = None  # type: ignore[attr-defined]
    text = tokenizer.decode(encode_chat(tokenizer, CHAT))  # type: ignore[attr-defined]
    assert text.startswith("### system\nBe brief.")
    assert text.endswith("### assistant\n")


def test_a_template_that_refuses_everything_is_named(tokenizer: object) -> None:
    tokenizer.chat_template = "{{ raise_exception('never') }}"  # type: ignore[attr-defined]
    with pytest.raises(PolicyError, match="refuses this chat"):
        encode_chat(tokenizer, CHAT)


@given(st.lists(st.integers(0, 99), max_size=60), st.integers(1, 40))
def test_a_fitted_prompt_keeps_head_and_tail(ids: list[int], limit: int) -> None:
    fitted, cut = fit_prompt(ids, limit)
    assert len(fitted) == min(len(ids), limit)
    assert cut == len(ids) - len(fitted)
    head = limit // 4
    assert fitted[:head] == ids[:head]
    if cut:
        assert fitted[head:] == ids[len(ids) - (limit - head) :]
