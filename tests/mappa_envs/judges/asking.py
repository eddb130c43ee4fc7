"""Requests and simple judges that the tests of composed judges share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mappa_envs.judges.base import Judge, JudgeRequest
from mappa_envs.transcript import Cost, Verdict


def ask(action: str, *, role: str = "analyst", kind: str = "classification") -> JudgeRequest:
    return JudgeRequest(
        task_prompt="a task",
        task_kind=kind,
        agent=f"{role}_0",
        role=role,
        duty="answer",
        messages=({"role": "user", "content": "a task"},),
        action=action,
        tools=(),
        earlier=(),
        truth=None,
    )


class Scores(Judge):
    """Scores the number that the action is, after a change; what is no number fails."""

    def __init__(
        self, name: str, change: Callable[[float, JudgeRequest], float] = lambda score, request: score
    ) -> None:
        self.id, self.change = name, change
        self.asked: list[JudgeRequest] = []
        self.commits = 0

    async def score(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        self.asked += requests
        return [self._one(request) for request in requests]

    def _one(self, request: JudgeRequest) -> Verdict:
        try:
            score = self.change(float(request.action), request)
        except ValueError:
            return Verdict.failed("no number", self.id, Cost(calls=1))
        return Verdict.ok(score, f"{self.id} says so", self.id, Cost(calls=1, money=0.25))

    def commit(self) -> None:
        self.commits += 1

    def state(self) -> dict[str, int]:
        return {"commits": self.commits}

    def restore(self, state: object) -> None:
        self.commits = state["commits"]  # type: ignore[index]
