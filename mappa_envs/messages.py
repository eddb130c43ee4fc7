"""What an agent sees: the chat built from the task and the turns that its role's views let through."""

from __future__ import annotations

from collections.abc import Sequence

from mappa_envs.topology import Role, Topology, View
from mappa_envs.transcript import FileRecord, Message, ToolResult, Turn

MAX_LISTED = 40
"""Files that a listing names; agents could make thousands."""
_MAX_NAME_CHARS = 120

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


def files_text(files: Sequence[FileRecord]) -> str:
    """Return the workspace's files as the agent reads them: name, size, writer, turn."""
    lines = [f"- {_cut(file.name)}, {file.size} bytes, {_origin(file)}" for file in files[:MAX_LISTED]]
    lines += [f"- and {len(files) - MAX_LISTED} more"] if len(files) > MAX_LISTED else []
    return "\n".join(["Files in the workspace:", *lines])


def _cut(name: str) -> str:
    return name if len(name) <= _MAX_NAME_CHARS else f"{name[:_MAX_NAME_CHARS]}..."


def _origin(file: FileRecord) -> str:
    return "part of the task" if file.turn is None else f"written by {file.writer} in turn {file.turn + 1}"


def build_messages(
    topology: Topology,
    task_prompt: str,
    turns: Sequence[Turn],
    agent: str,
    files: Sequence[FileRecord] = (),
) -> tuple[Message, ...]:
    """Return the chat that `agent` sees after `turns`.

    The system message holds the role's instructions, the first user message the problem and what the role sees of
    others, then come the agent's own turns as assistant messages with their tool results as user messages. Roles
    alternate strictly, as every chat template wants. Where agents share files, each user message lists those that the
    role's views show, as they are when the agent acts on it.

    Args:
        topology: Gives the roles and their views.
        task_prompt: The problem statement.
        turns: Turns of *complete* layers, oldest first.
        agent: PettingZoo agent id.
        files: The workspace before the first turn; empty in environments without shared files.
    """
    role = topology.role_of(agent)
    parts = [f"Problem:\n{task_prompt}"]
    for view in role.sees:
        parts += _shared(topology, view, turns, agent)
    messages: list[Message] = [{"role": "system", "content": role.instructions}]
    workspace = _listed(topology, agent, files)
    for turn in turns:
        if turn.agent == agent:
            messages.append({"role": "user", "content": _with_files(parts, workspace)})
            messages.append({"role": "assistant", "content": turn.action})
            parts = [tool_text(turn.tools) or "Continue."]
        workspace = _listed(topology, agent, turn.files)
    messages.append({"role": "user", "content": _with_files(parts, workspace)})
    return tuple(messages)


def _listed(topology: Topology, agent: str, files: Sequence[FileRecord]) -> list[FileRecord]:
    """Return the files that an agent is told of: the task's, its own, and those of roles whose files its views show."""
    shown = {view.role for view in topology.role_of(agent).sees if view.files}
    return [f for f in files if f.turn is None or f.writer == agent or topology.role_of(f.writer).name in shown]


def _with_files(parts: Sequence[str], files: Sequence[FileRecord]) -> str:
    return "\n\n".join([*parts, files_text(files)] if files else parts)


def _shared(topology: Topology, view: View, turns: Sequence[Turn], agent: str) -> list[str]:
    seen = [t for t in turns if t.role == view.role and t.agent != agent]
    if view.turns == "last":
        seen = list({t.agent: t for t in seen}.values())
    seats = len({a for a in topology.agents if topology.role_of(a).name == view.role})
    parts = []
    for turn in seen:
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
