"""A judge's request as the chat that a coach reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

from mappa_envs.inspection import GRADED, without_graded
from mappa_envs.judges.base import Hindsight, JudgeRequest
from mappa_envs.judges.coach.markers import boundary_for, defuse
from mappa_envs.judges.coach.prompt import Prompt, load_prompt
from mappa_envs.judges.coach.settings import Limits
from mappa_envs.tasks.base import Task
from mappa_envs.transcript import FileRecord, Message, Turn

ReplyForm = Literal["json", "text"]


_LIMITS = Limits()


def render_request(
    request: JudgeRequest,
    prompt: Prompt | None = None,
    *,
    form: ReplyForm = "text",
    limits: Limits = _LIMITS,
) -> list[Message]:
    """Return the chat that asks a coach for the score of one turn.

    The same request gives the same chat in every process. All that is not the prompt's own text stands in fences
    whose mark does not occur in it, with markers defused (see `markers`), put in by one substitution: no brace,
    dollar sign, tag or mark in it has an effect.

    Args:
        request: What may be looked at; ground truth is shown exactly if `request.truth` is set.
        prompt: The texts; None: the built-in ones.
        form: How the coach is to reply.
        limits: Longest texts.
    """
    prompt = prompt or load_prompt()
    parts = {
        "task": [("task", _shorten(request.task_prompt, limits.task))],
        "earlier": [piece for turn in request.earlier for piece in _earlier(turn, limits.earlier)],
        "seen": [(f"{m['role']} message", _shorten(m["content"], limits.seen)) for m in request.messages],
        "action": [("action", _shorten(request.action, limits.action))],
        "tools": [(f"{tool.tool} ({tool.status})", _shorten(tool.output, limits.tool)) for tool in request.tools],
        "files": [
            *_files(request.files, limits.files),
            *_facts("findings", without_graded(request.facts), limits.facts),
        ],
        "truth": [*_truth(request.truth), *_facts("grading", request.facts.get(GRADED), limits.facts)],
        "later": _later(request.hindsight, limits.earlier),
    }
    safe = {name: [(_title(t), defuse(text)) for t, text in pieces] for name, pieces in parts.items()}
    boundary = boundary_for(text for pieces in safe.values() for piece in pieces for text in piece)
    sections = {name: _fence(pieces, boundary) or _ABSENT[name] for name, pieces in safe.items()}
    reply = prompt.reply_json if form == "json" else prompt.reply_text
    later = sections.pop("later")
    if request.hindsight is not None:
        reply = f"{prompt.hindsight.substitute(later=later)}\n\n{reply}"
    duty = prompt.duties.get(request.duty, "see its instructions, in the first message that it saw.")
    user = prompt.user.substitute(
        sections, agent=request.agent, role=request.role, duty=duty, boundary=boundary, reply=reply
    )
    return [{"role": "system", "content": prompt.system}, {"role": "user", "content": user}]


_ABSENT = {
    "task": "none",
    "earlier": "none, this is the first turn that could be seen",
    "seen": "nothing",
    "action": "none",
    "tools": "nothing was run",
    "files": "none",
    "truth": "not shown",
    "later": "none",
}


def head_and_tail(text: str, limit: int) -> str:
    """Return text of at most about `limit` characters: the middle of a longer one is left out, and said to be.

    A traceback's message comes last, so the tail is as long as the head.
    """
    if len(text) <= limit:
        return text
    head, tail = limit - limit // 2, limit // 2
    return f"{text[:head]}\n[... {len(text) - head - tail} characters left out ...]\n{text[len(text) - tail :]}"


def _shorten(text: str, limit: int) -> str:
    return head_and_tail(text.rstrip(), limit)


def _earlier(turn: Turn, limit: int) -> list[tuple[str, str]]:
    name = f"turn {turn.index} {turn.agent}"
    results = [(f"{name} {tool.tool} ({tool.status})", _shorten(tool.output, limit)) for tool in turn.tools]
    return [(name, _shorten(turn.action, limit)), *results]


def _later(hindsight: Hindsight | None, limit: int) -> list[tuple[str, str]]:
    if hindsight is None:
        return []
    pieces = []
    for turn in hindsight.later:
        score = "no score" if turn.verdict.score is None else f"{turn.verdict.score:g} of 10"
        pieces += [*_earlier(turn, limit), (f"hindsight on turn {turn.index} {turn.agent}", score)]
    outcome = hindsight.outcome
    word = {True: "success", False: "failure", None: "undecided"}[outcome.success]
    return [*pieces, ("outcome", f"{word}: {outcome.reason}")]


def _files(files: Sequence[FileRecord], limit: int) -> list[tuple[str, str]]:
    # Names are quoted as JSON: one with a line feed must not read as two files.
    lines = [
        f"{json.dumps(f.name, ensure_ascii=False)}, {f.size} bytes, last written by {f.writer}"
        + (f" in turn {f.turn}" if f.turn is not None else "")
        for f in files[:limit]
    ]
    if len(files) > limit:
        lines.append(f"[... {len(files) - limit} more files ...]")
    return [("files", "\n".join(lines))] if lines else []


def _facts(title: str, facts: Mapping[str, Any] | None, limit: int) -> list[tuple[str, str]]:
    """Return what the environment's inspector found out; requests hold graded facts only where truth is shown."""
    return [(title, _shorten(json.dumps(facts, indent=1, ensure_ascii=False), limit))] if facts else []


def _truth(task: Task | None) -> list[tuple[str, str]]:
    """Return what a task knows beyond what every task has, as far as it can be said in a line each."""
    if task is None:
        return []
    common = {f.name for f in fields(Task)}
    facts = {f.name: getattr(task, f.name) for f in fields(task) if f.name not in common and f.repr}
    lines = [f"{name}: {_value(value)}" for name, value in facts.items() if value not in (None, (), "")]
    return [("ground truth", "\n".join(lines))] if lines else []


def _value(value: object) -> str:
    return " | ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _title(title: str) -> str:
    return "".join(c if c.isalnum() or c in " _()-" else "_" for c in title)


def _fence(pieces: Sequence[tuple[str, str]], boundary: str) -> str:
    return "\n".join(f"[BEGIN {title} {boundary}]\n{text}\n[END {title} {boundary}]" for title, text in pieces)
