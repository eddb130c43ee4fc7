"""What an agent sees: the chat built from the task and the turns that its role's views let through."""

from __future__ import annotations

from collections.abc import Sequence

from mappa_envs.topology import Role, Topology, View
from mappa_envs.transcript import Message, ToolResult, Turn

_TOOL_TITLES = {
    "ok": "Output",
    "error": "Output (the code raised an error)",
    "timeout": "Output (stopped at the time limit)",
    "timeout_killed": "Output (killed at the time limit, variables are lost)",
    "died": "Output (the Python process died, variables are lost)",
    "missing": "Output",
}


def tool_text(tools: Sequence[ToolResult]) -> str:
    """Return tool results as the agent reads them."""
    return "\n".join(f"{_TOOL_TITLES[tool.status]}:\n{tool.output.rstrip()}" for tool in tools)


def build_messages(topology: Topology, task_prompt: str, turns: Sequence[Turn], agent: str) -> tuple[Message, ...]:
    """Return the chat that `agent` sees after `turns`.

    The system message holds the role's instructions, the first user message the problem and what the role sees of
    others, then come the agent's own turns as assistant messages with their tool results as user messages. Roles
    alternate strictly, as every chat template wants.

    Args:
        topology: Gives the roles and their views.
        task_prompt: The problem statement.
        turns: Turns of *complete* layers, oldest first.
        agent: PettingZoo agent id.
    """
    role = topology.role_of(agent)
    parts = [f"Problem:\n{task_prompt}"]
    for view in role.sees:
        parts += _shared(topology, view, turns, agent)
    messages: list[Message] = [
        {"role": "system", "content": role.instructions},
        {"role": "user", "content": "\n\n".join(parts)},
    ]
    for turn in (t for t in turns if t.agent == agent):
        messages.append({"role": "assistant", "content": turn.action})
        messages.append({"role": "user", "content": tool_text(turn.tools) or "Continue."})
    return tuple(messages)


def _shared(topology: Topology, view: View, turns: Sequence[Turn], agent: str) -> list[str]:
    seen = [t for t in turns if t.role == view.role and t.agent != agent]
    seats = len({a for a in topology.agents if topology.role_of(a).name == view.role})
    parts = []
    for turn in seen[-1:] if view.turns == "last" else seen:
        title = _title(topology.role_of(turn.agent)) + (f" {turn.agent}" if seats > 1 else "")
        if view.text:
            parts.append(f"{title} wrote:\n{turn.action.strip()}")
        if view.tools and turn.tools:
            parts.append(tool_text(turn.tools))
    return parts


def _title(role: Role) -> str:
    return role.name.capitalize()


def flatten(messages: Sequence[Message]) -> str:
    """Return a chat as one text, for observations and people; models get the messages themselves."""
    return "\n\n".join(f"[{m['role']}]\n{m['content']}" for m in messages)
