"""Stored episodes under another judge, without new rollouts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from mappa_envs.judges.base import Judge
from mappa_envs.judges.panel import total_cost
from mappa_envs.transcript import Cost, Transcript, Verdict
from mappa_rl.audit.audit import ALL
from mappa_rl.audit.measures import Estimate, auc, estimate, mean_difference, spearman
from mappa_rl.audit.stored import Case, judge_case
from mappa_rl.files import write_text


@dataclass(frozen=True, slots=True)
class RoleComparison:
    """New scores against those that the episodes carry, for one role or all."""

    turns: int
    both: int
    """Turns with a score on both sides; the comparisons are over these."""
    failed_before: int
    failed_after: int
    before: float | None
    """Mean score that the episodes carry."""
    after: float | None
    difference: Estimate | None
    """Mean of new minus old, in points."""
    distance: float | None
    """Mean absolute difference, in points."""
    correlation: Estimate | None
    """Rank correlation of new and old."""
    agreement_before: Estimate | None
    """AUC of the old score against the team's success."""
    agreement_after: Estimate | None


@dataclass(frozen=True, slots=True)
class Rescored:
    """Episodes with new final verdicts, and how these compare."""

    judge: str
    transcripts: tuple[Transcript, ...]
    roles: dict[str, RoleComparison]
    """By role, and `all`."""
    cost: Cost

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as plain JSON data, without the transcripts."""
        return {
            "judge": self.judge,
            "episodes": len(self.transcripts),
            "roles": {role: asdict(one) for role, one in self.roles.items()},
            "cost": asdict(self.cost),
        }


async def rescore(judge: Judge, cases: Sequence[Case], *, seed: int = 0) -> Rescored:
    """Score stored episodes with another judge.

    The new verdicts become the final ones; those that the turns were given stay in the turns.

    Args:
        judge: Scores turns or whole episodes.
        cases: Finished episodes.
        seed: Seeds the intervals.
    """
    verdicts = await asyncio.gather(*(judge_case(judge, case) for case in cases))
    triples = [
        (case, turn.role, case.transcript.verdict(turn.index), new[turn.index])
        for case, new in zip(cases, verdicts, strict=True)
        for turn in case.transcript.turns
    ]
    roles = list(dict.fromkeys(role for _, role, _, _ in triples))
    return Rescored(
        judge=judge.id,
        transcripts=tuple(
            replace(case.transcript, final_verdicts=tuple(new)) for case, new in zip(cases, verdicts, strict=True)
        ),
        roles={
            role: _comparison([(case, old, new) for case, own, old, new in triples if role in (ALL, own)], seed)
            for role in (*roles, ALL)
        },
        cost=total_cost([new for _, _, _, new in triples]),
    )


def write_rescored(path: Path, result: Rescored) -> None:
    """Write the episodes with their new final verdicts as JSONL; the file is whole or not there."""
    lines = [json.dumps(one.to_json(), ensure_ascii=False) + "\n" for one in result.transcripts]
    write_text(path, "".join(lines))


def _comparison(rows: Sequence[tuple[Case, Verdict, Verdict]], seed: int) -> RoleComparison:
    pairs = [(case, old.score, new.score) for case, old, new in rows if old.score is not None and new.score is not None]
    before, after = [old for _, old, _ in pairs], [new for _, _, new in pairs]
    tasks = [case.transcript.task_id for case, _, _ in pairs]
    decided = [(case, old, new) for case, old, new in pairs if case.success is not None]
    success = [float(case.success is True) for case, _, _ in decided]
    decided_tasks = [case.transcript.task_id for case, _, _ in decided]
    return RoleComparison(
        turns=len(rows),
        both=len(pairs),
        failed_before=sum(old.score is None for _, old, _ in rows),
        failed_after=sum(new.score is None for _, _, new in rows),
        before=fmean(before) if before else None,
        after=fmean(after) if after else None,
        difference=estimate(mean_difference, after, before, tasks, seed=seed),
        distance=fmean(abs(new - old) for _, old, new in pairs) if pairs else None,
        correlation=estimate(spearman, after, before, tasks, seed=seed),
        agreement_before=estimate(auc, [old for _, old, _ in decided], success, decided_tasks, seed=seed),
        agreement_after=estimate(auc, [new for _, _, new in decided], success, decided_tasks, seed=seed),
    )
