"""A small real team without tools: two thinkers side by side, then a speaker, twice at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mappa_envs.judges.base import Judge, JudgeRequest
from mappa_envs.tasks.base import Task
from mappa_envs.team_env import TeamEnv
from mappa_envs.topology import Act, Chain, Layer, Loop, Role, Says, Topology, View
from mappa_envs.transcript import Outcome, Turn, Verdict

TEAM = Topology(
    name="think_speak",
    roles=(
        Role("thinker", "Think.", "think", sees=(View("speaker"),)),
        Role("speaker", "Speak.", "speak", sees=(View("thinker"),)),
    ),
    flow=Loop(
        Chain((Layer((Act("thinker", seat=0), Act("thinker", seat=1))), Act("speaker"))),
        2,
        until=Says("speaker", "DONE"),
    ),
    answer_role="speaker",
)
THINKERS = ("thinker_0", "thinker_1")


@dataclass(frozen=True)
class Sums:
    name: str = "sums"
    size: int | None = None

    def task(self, index: int) -> Task:
        return Task(id=f"sum-{index}", prompt=f"What is {index} + 1?", kind="sum", source=self.name)


class LengthJudge(Judge):
    """Scores an action by its length; cannot score an empty one."""

    id = "length-1"

    async def score(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        return [
            Verdict.ok(len(r.action) % 11, "length", self.id) if r.action else Verdict.failed("empty", self.id)
            for r in requests
        ]


async def said_done(task: Task, topology: Topology, turns: tuple[Turn, ...]) -> Outcome:
    done = "DONE" in turns[-1].action
    return Outcome(done, float(done), "said DONE" if done else "never said DONE")


def team(judge: Judge | None = None, render_mode: str | None = None) -> TeamEnv:
    return TeamEnv(
        env_id="Toy/ThinkSpeak-v0",
        topology=TEAM,
        tasks=Sums(),
        judge=judge or LengthJudge(),
        outcome=said_done,
        render_mode=render_mode,
    )
