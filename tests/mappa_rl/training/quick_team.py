"""A team without tools and judges with memory, for runs that take a second; importable by worker processes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mappa_envs.errors import BudgetError
from mappa_envs.judges.base import Judge, JudgeRequest
from mappa_envs.topologies import CHAIN
from mappa_envs.topology import Topology, View, chain
from mappa_envs.transcript import Verdict
from mappa_rl.config import TrainConfig, load_config

PAIR = Topology(
    name="pair",
    roles=(CHAIN.role_of("solver_0"), replace(CHAIN.role_of("verifier_0"), sees=(View("solver"),))),
    flow=chain("solver", "verifier"),
    answer_role="verifier",
)


class LetterJudge(Judge):
    """Scores by letters alone."""

    id = "letters-1"

    async def score(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        return [Verdict.ok(sum(map(ord, r.action)) % 11, "letters", self.id) for r in requests]


class CountingJudge(Judge):
    """Scores by letters and by how many turns it was asked about in earlier steps."""

    id = "counting-1"

    def __init__(self) -> None:
        self.seen, self.new = 0, 0

    async def score(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        self.new += len(requests)
        return [Verdict.ok((sum(map(ord, r.action)) + self.seen) % 11, "letters", self.id) for r in requests]

    def commit(self) -> None:
        self.seen, self.new = self.seen + self.new, 0

    def state(self) -> dict[str, Any]:
        return {"seen": self.seen}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.seen, self.new = state["seen"], 0


class PaidJudge(CountingJudge):
    """Has money for so many turns."""

    def __init__(self, budget: int) -> None:
        super().__init__()
        self.budget = budget

    async def score(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        if self.seen + self.new + len(requests) > self.budget:
            raise BudgetError("the budget is used up", fix="raise budget")
        return await super().score(requests)


def quick_config(*more: str) -> TrainConfig:
    """Return settings of a run of three steps."""
    return load_config(
        TrainConfig,
        None,
        [
            "steps=3",
            "save_every=1",
            "policy.device=cpu",
            "env.kwargs.topology=quick_team:PAIR",
            "env.kwargs.judge=quick_team:CountingJudge",
            "rollout.tasks_per_step=2",
            "rollout.concurrency=4",
            "optim.minibatches=2",
            "eval.tasks=2",
            "eval.every=1",
            *more,
        ],
    )


def written(run_dir: Path) -> dict[str, bytes]:
    """Return all files of a run that must not depend on how often it was interrupted."""
    files = {
        path.relative_to(run_dir).as_posix(): path.read_bytes()
        for path in run_dir.rglob("*")
        if path.is_file() and path.parent.name != "tensorboard"
    }
    summary = json.loads(files.pop("summary.json"))
    del summary["seconds"]
    return {**files, "summary.json": json.dumps(summary).encode()}
