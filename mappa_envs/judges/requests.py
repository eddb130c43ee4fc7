"""What a judge is asked for a turn: the same while the episode runs and from its stored transcript."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from mappa_envs.inspection import without_graded
from mappa_envs.judges.base import JudgeRequest
from mappa_envs.tasks.base import Task
from mappa_envs.topology import Topology
from mappa_envs.transcript import FileRecord, Message, ToolResult, Transcript, Turn

GroundTruth = Literal["all", "answer", "none"]
"""Which turns a judge sees the hidden answer for: every role's, the answer role's only (as the paper), or none."""


def make_request(
    topology: Topology,
    task: Task,
    ground_truth: GroundTruth,
    *,
    agent: str,
    messages: tuple[Message, ...],
    action: str,
    tools: tuple[ToolResult, ...],
    earlier: tuple[Turn, ...],
    files: tuple[FileRecord, ...] = (),
    facts: Mapping[str, Any] | None = None,
) -> JudgeRequest:
    """Return the request for one turn; the keywords are the fields of `JudgeRequest`.

    Args:
        topology: Gives the agent's role.
        task: The task, hidden answer included.
        ground_truth: Which turns the judge may see the hidden answer for.
        agent: PettingZoo agent id.
        messages: What it saw.
        action: What it wrote.
        tools: What its tools gave.
        earlier: The turns of earlier layers.
        files: The workspace after the action.
        facts: What was found out about them.
    """
    role = topology.role_of(agent)
    told = ground_truth == "all" or (ground_truth == "answer" and role.name == topology.answer_role)
    return JudgeRequest(
        task_prompt=task.prompt,
        task_kind=task.kind,
        agent=agent,
        role=role.name,
        duty=role.duty,
        messages=messages,
        action=action,
        tools=tools,
        earlier=earlier if told else tuple(replace(turn, facts=without_graded(turn.facts)) for turn in earlier),
        truth=task if told else None,
        files=files,
        choices={choice.name: choice.duty for choice in topology.choices(role.name)},
        facts=(facts or {}) if told else without_graded(facts or {}),
    )


def requests_of(
    transcript: Transcript, topology: Topology, task: Task, ground_truth: GroundTruth
) -> list[JudgeRequest]:
    """Return what a judge was asked for each turn of a transcript, in order.

    Args:
        transcript: A finished or running episode.
        topology: The topology that it was played with.
        task: Its task.
        ground_truth: Which turns the judge may see the hidden answer for.
    """
    return [
        make_request(
            topology,
            task,
            ground_truth,
            agent=turn.agent,
            messages=turn.messages,
            action=turn.action,
            tools=turn.tools,
            earlier=tuple(t for t in transcript.turns if t.layer < turn.layer),
            files=turn.files,
            facts=turn.facts,
        )
        for turn in transcript.turns
    ]
