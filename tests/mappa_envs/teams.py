"""Small real parts that the tests of several modules share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from mappa_envs.judges.base import Judge, JudgeRequest
from mappa_envs.tasks.base import Task
from mappa_envs.tasks.math.base import MathTask
from mappa_envs.team_env import TeamEnv
from mappa_envs.topologies import CHAIN
from mappa_envs.topology import Topology
from mappa_envs.transcript import Outcome, Transcript, Turn, Verdict


class Sums:
    """Three sums."""

    name = "sums"
    size: int | None = 3

    def task(self, index: int) -> MathTask:
        return MathTask(
            id=f"sum-{index}", prompt=f"What is {index} + 1?", kind="sum", source=self.name, answers=(str(index + 1),)
        )


class LengthJudge(Judge):
    """Scores a tenth of a point per character, and fails on the word `fail`."""

    id = "length-1"

    def __init__(self) -> None:
        self.requests: list[JudgeRequest] = []

    async def score(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        self.requests += requests
        return [
            Verdict.failed("told to fail", self.id)
            if "fail" in r.action
            else Verdict.ok(min(10, len(r.action) / 10), "length", self.id)
            for r in requests
        ]


class EndJudge(LengthJudge):
    """Scores whole episodes by the number of turns."""

    scope: ClassVar[Literal["turn", "episode"]] = "episode"

    async def score_episode(self, transcript: Transcript, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        return [Verdict.ok(len(transcript.turns), "turns", self.id) for _ in transcript.turns]


async def says_done(task: Task, topology: Topology, turns: tuple[Turn, ...]) -> Outcome:
    """The team wins when its last word is `done`."""
    won = turns[-1].action.endswith("done")
    return Outcome(won, float(won), "said done" if won else "did not say done")


def make_env(topology: Topology = CHAIN, judge: Judge | None = None, **kwargs: object) -> TeamEnv:
    return TeamEnv(
        env_id="Test/Team-v0",
        topology=topology,
        tasks=Sums(),
        judge=judge or LengthJudge(),
        outcome=says_done,
        **kwargs,  # type: ignore[arg-type]
    )
