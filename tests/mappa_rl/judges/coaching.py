"""Short coach prompts and requests, so that the embedded model answers quickly."""

from __future__ import annotations

from pathlib import Path

from mappa_envs.judges.base import JudgeRequest


def short_prompt(folder: Path) -> str:
    """Write a prompt of a few words and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "system.txt").write_text("Score the action.", encoding="utf-8")
    (folder / "user.txt").write_text("$boundary\n$action\n$tools\n$reply", encoding="utf-8")
    (folder / "reply_text.txt").write_text("SCORE: number", encoding="utf-8")
    return str(folder)


def ask(action: str) -> JudgeRequest:
    return JudgeRequest(
        task_prompt="What is 2 + 2?",
        task_kind="sum",
        agent="solver_0",
        role="solver",
        duty="solve",
        messages=({"role": "user", "content": "Problem:\nWhat is 2 + 2?"},),
        action=action,
        tools=(),
        earlier=(),
        truth=None,
    )
