"""Chats to token ids and ids to actions: the template is applied once, here, and the ids are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from jinja2 import TemplateError

from mappa_envs.thoughts import OPENING, TAG, opens_thought, visible_text
from mappa_envs.transcript import Message
from mappa_rl.errors import PolicyError

# For base models without a template of their own.
PLAIN_TEMPLATE = (
    "{% for m in messages %}### {{ m['role'] }}\n{{ m['content'] }}\n\n{% endfor %}"
    "{% if add_generation_prompt %}### assistant\n{% endif %}"
)

_HEAD_SHARE = 4
_TAIL = 32


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model reads before it takes a turn."""

    ids: list[int]
    cut: int
    """Tokens left out of the middle."""
    thinking: bool
    """The prompt ends within a think block that the template opened."""


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """How chats become prompts and sampled ids become actions.

    Each action is a training row with a prompt of its own, so a template that strips or adds think blocks in earlier
    turns changes what later turns are conditioned on, and never the ids that are trained on.
    """

    max_prompt_tokens: int = 4096
    """Longer prompts are cut in the middle."""
    think: Literal["drop", "keep"] = "drop"
    """Whether tools, judges and other agents see what is in think blocks. It is trained on in either case."""
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Variables of the chat template, e.g. `enable_thinking`."""

    def encode(self, tokenizer: Any, messages: Sequence[Message]) -> Prompt:
        """Return the prompt of a chat.

        Raises:
            PolicyError: If the template cannot take the chat.
        """
        ids, cut = fit_prompt(encode_chat(tokenizer, messages, **self.template_kwargs), self.max_prompt_tokens)
        return Prompt(ids, cut, opens_thought(tokenizer.decode(ids[-_TAIL:])))

    def decode(self, tokenizer: Any, ids: Sequence[int], prompt: Prompt) -> str:
        """Return the action of response ids: their text, without special tokens and, as set, without thoughts.

        Thoughts that are kept stay thoughts for whoever reads the action: a block that the prompt opened is opened
        in the action.
        """
        text = response_text(tokenizer, ids)
        if self.think == "keep":
            return OPENING + text if prompt.thinking else text
        seen = visible_text(text, thinking=prompt.thinking)
        return seen if seen == text else seen.lstrip()


def response_text(tokenizer: Any, ids: Sequence[int]) -> str:
    """Return ids as text without special tokens, save those that are tags of thoughts."""
    added = tokenizer.added_tokens_decoder.items()
    tags = {token_id: str(token) for token_id, token in added if token.special and TAG.fullmatch(str(token))}
    parts: list[str] = []
    start = 0
    for at, token_id in enumerate(ids):
        if token_id in tags:
            parts += [tokenizer.decode(list(ids[start:at]), skip_special_tokens=True), tags[token_id]]
            start = at + 1
    return "".join([*parts, tokenizer.decode(list(ids[start:]), skip_special_tokens=True)])


def encode_chat(tokenizer: Any, messages: Sequence[Message], **template_kwargs: Any) -> list[int]:
    """Return the prompt ids of a chat, ready for the assistant's next turn.

    Models whose template refuses a system message get it at the head of the first user message.

    Args:
        tokenizer: A transformers tokenizer; without a chat template a plain one is used.
        messages: System message first, then user and assistant in turn.
        **template_kwargs: Variables of the template.

    Raises:
        PolicyError: If the template cannot take the chat.
    """
    try:
        return _apply(tokenizer, [_plain(m) for m in messages], template_kwargs)
    except TemplateError:
        merged = _without_system(messages)
    try:
        return _apply(tokenizer, merged, template_kwargs)
    except TemplateError as error:
        raise PolicyError(
            "the model's chat template refuses this chat",
            expected="user and assistant messages in turn",
            got=str(error),
            fix="set a chat template on the tokenizer",
        ) from error


def _apply(tokenizer: Any, messages: list[dict[str, str]], variables: Mapping[str, Any]) -> list[int]:
    template = None if tokenizer.chat_template else PLAIN_TEMPLATE
    text = tokenizer.apply_chat_template(
        messages, tokenize=False, add_generation_prompt=True, chat_template=template, **variables
    )
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
