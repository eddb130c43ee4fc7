"""Requests for the coach's tests."""

from __future__ import annotations

from typing import Any

from mappa_envs.judges import JudgeRequest


def request(action: str = "Six times seven.\nCompute: 6 * 7", **fields: Any) -> JudgeRequest:
    made: dict[str, Any] = {
        "task_prompt": "What is 6 * 7?",
        "task_kind": "arithmetic",
        "agent": "solver_0",
        "role": "solver",
        "duty": "solve",
        "messages": (
            {"role": "system", "content": "You are the Problem Solver."},
            {"role": "user", "content": "Problem:\nWhat is 6 * 7?"},
        ),
        "tools": (),
        "earlier": (),
        "truth": None,
    }
    return JudgeRequest(**{**made, **fields}, action=action)
