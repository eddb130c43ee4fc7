from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mappa_envs.thoughts import visible_text
from mappa_envs.transcript import Message
from mappa_rl.errors import PolicyError
from mappa_rl.policy.chat import ChatFormat, Prompt, encode_chat, fit_prompt
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


@pytest.mark.parametrize(
    ("text", "thinking", "seen"),
    [
        ("plain\n", False, "plain\n"),
        ("<think>\n2 + 2\n</think>\n\nIt is 4.", False, "It is 4."),
        ("2 + 2\n</think>\n\nIt is 4.", True, "It is 4."),
        ("</think>It is 4.", True, "It is 4."),
        ("</think>", False, ""),
        ("<think>2 + 2 is", False, ""),
        ("2 + 2 is", True, ""),
        ("<think>a</think><think>b", False, ""),
        ("<think>a</think><think>b</think>c", False, "c"),
        ("print(1)\n<think>a</think>", False, "print(1)\n"),
        ("print(1)\n<THINKING>a", False, "print(1)\n"),
        ("<Thought>2 + 2 is</Thought>\n4", False, "4"),
    ],
)
def test_what_others_see_of_a_response_with_thoughts(tokenizer: Any, text: str, thinking: bool, seen: str) -> None:
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    prompt = Prompt([], 0, thinking)
    assert ChatFormat().decode(tokenizer, ids, prompt) == seen
    kept = ChatFormat(think="keep").decode(tokenizer, ids, prompt)
    assert kept.removeprefix("<think>" if thinking else "") == text
    assert visible_text(kept).lstrip() == seen.lstrip()


def test_tags_that_are_special_tokens_are_tags_all_the_same(tokenizer: Any) -> None:
    tokenizer.add_special_tokens({"additional_special_tokens": ["<think>", "</think>"]})
    ids = tokenizer("a<think>2 + 2</think>4<|end|>", add_special_tokens=False)["input_ids"]
    assert "think" not in tokenizer.decode(ids, skip_special_tokens=True)
    assert ChatFormat().decode(tokenizer, ids, Prompt([], 0, False)) == "a4"
    assert ChatFormat(think="keep").decode(tokenizer, ids, Prompt([], 0, False)) == "a<think>2 + 2</think>4"


# Opens a think block for the next turn and strips the blocks of earlier turns, as Qwen3's and R1's templates do.
THINKING = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'].split('</think>')[-1] }}<|end|>{% endfor %}"
    "<|assistant|>{% if think is not defined or think %}<think>\n{% else %}<think>\n\n</think>\n\n{% endif %}"
)


def test_a_template_that_opens_a_think_block_is_noticed_and_its_variables_can_be_set(tokenizer: Any) -> None:
    # prime-rl 1334: the template strips earlier thoughts, so a turn is no extension of the ids before; every action
    # has a prompt of its own instead, and exactly one block is opened for it.
    tokenizer.chat_template = THINKING
    chat: tuple[Message, ...] = (
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "</think>Hello"},
        {"role": "user", "content": "Bye"},
    )
    prompt = ChatFormat().encode(tokenizer, chat)
    assert prompt.thinking
    assert (
        tokenizer.decode(prompt.ids)
        == "<|user|>Hi<|end|><|assistant|>Hello<|end|><|user|>Bye<|end|><|assistant|><think>\n"
    )
    ids = tokenizer("2 + 2</think>4", add_special_tokens=False)["input_ids"]
    assert ChatFormat().decode(tokenizer, ids, prompt) == "4"
    assert ChatFormat(think="keep").decode(tokenizer, ids, prompt) == "<think>2 + 2</think>4"
    closed = ChatFormat(template_kwargs={"think": False}).encode(tokenizer, chat)
    assert not closed.thinking and tokenizer.decode(closed.ids).count("<think>") == 1
