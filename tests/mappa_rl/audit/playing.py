"""Stored episodes of the maths chain without code, half of them won, and judges with planted faults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

from mappa_envs.envs.math_chat import MathChat
from mappa_envs.judges.base import Judge, JudgeRequest
from mappa_envs.transcript import Cost, Transcript, Verdict
from mappa_rl.audit.stored import Case, cases_of


class ByRule(Judge):
    """Scores by a function of the request; a result of None fails."""

    def __init__(self, rule: Callable[[JudgeRequest], float | None], name: str = "planted-1") -> None:
        self.rule, self.id = rule, name
        self.asked: list[JudgeRequest] = []

    async def score(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        self.asked += requests
        return [self._verdict(self.rule(request)) for request in requests]

    def _verdict(self, score: float | None) -> Verdict:
        if score is None:
            return Verdict.failed("no number in the reply", self.id, Cost(calls=1))
        return Verdict.ok(score, "planted", self.id, Cost(calls=1))


class WholeEpisodes(ByRule):
    """The same, at the end of the episode."""

    scope: ClassVar[Literal["turn", "episode"]] = "episode"

    async def score_episode(self, transcript: Transcript, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        assert [turn.action for turn in transcript.turns] == [request.action for request in requests]
        return await ByRule.score(self, requests)


def env() -> MathChat:
    return MathChat(split="eval", judge=ByRule(lambda request: 5.0, "given-1"))  # type: ignore[arg-type]


def episodes(count: int = 8, *, first: int = 0) -> list[Transcript]:
    """Play `count` tasks; those of an even index are won. Each has a plan, two turns without code, and an answer."""
    played = env()
    made = []
    for index in range(first, first + count):
        played.reset(seed=index, options={"task_index": index})
        right = index % 2 == 0
        answer = played.task.answers[0] if right else "-1234567"  # type: ignore[attr-defined]
        for action in ("A plan" + "." * (7 * index % 5), "no code", "no code either", f"\\boxed{{{answer}}}"):
            played.step(action)
        assert played.transcript.outcome is not None
        assert played.transcript.outcome.success is right
        made.append(played.transcript)
    return made


def cases(count: int = 8) -> list[Case]:
    return cases_of(episodes(count), [env()])
