"""Chats to token ids: the template is applied once, here, and the ids are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jinja2 import TemplateError

from mappa_envs.transcript import Message
from mappa_rl.errors import PolicyError

# For base models without a template of their own.
PLAIN_TEMPLATE = (
    "{% for m in messages %}### {{ m['role'] }}\n{{ m['content'] }}\n\n{% endfor %}"
    "{% if add_generation_prompt %}### assistant\n{% endif %}"
)

_HEAD_SHARE = 4


def encode_chat(tokenizer: Any, messages: Sequence[Message]) -> list[int]:
    """Return the prompt ids of a chat, ready for the assistant's next turn.

    Models whose template refuses a system message get it at the head of the first user message.

    Args:
        tokenizer: A transformers tokenizer; without a chat template a plain one is used.
        messages: System message first, then user and assistant in turn.

    Raises:
        PolicyError: If the template cannot take the chat.
    """
    try:
        return _apply(tokenizer, [_plain(m) for m in messages])
    except TemplateError:
        merged = _without_system(messages)
    try:
        return _apply(tokenizer, merged)
    except TemplateError as error:
        raise PolicyError(
            "the model's chat template refuses this chat",
            expected="user and assistant messages in turn",
            got=str(error),
            fix="set a chat template on the tokenizer",
        ) from error


def _apply(tokenizer: Any, messages: list[dict[str, str]]) -> list[int]:
    template = None if tokenizer.chat_template else PLAIN_TEMPLATE
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, chat_template=template)
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


def _without_system(messages: Sequence[Message]) -> list[dict[str, str]]:
    system = "\n\n".join(m["content"] for m in messages if m["role"] == "system")
    rest = [_plain(m) for m in messages if m["role"] != "system"]
    if rest and system:
        rest[0] = {**rest[0], "content": f"{system}\n\n{rest[0]['content']}"}
    return rest


def fit_prompt(ids: Sequence[int], limit: int) -> tuple[list[int], int]:
    """Cut a prompt to `limit` tokens out of its middle and say how many were left out.

    The head holds the instructions and the tail the newest text and the assistant header; a cut at the end, as is
    common, would lose the header.
    """
    over = len(ids) - limit
    if over <= 0:
        return list(ids), 0
    head = limit // _HEAD_SHARE
    return [*ids[:head], *ids[len(ids) - (limit - head) :]], over


def _plain(message: Message) -> dict[str, str]:
    return {"role": message["role"], "content": message["content"]}
