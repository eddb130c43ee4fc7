"""The audit of a judge on stored episodes: stability, failures, agreement with the truth, biases, injections."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, pstdev
from typing import Any, Literal

import numpy as np

from mappa_envs.judges.base import Judge
from mappa_envs.judges.panel import total_cost
from mappa_envs.transcript import Cost, Verdict
from mappa_rl.audit.attacks import ATTACKS, CONTROL, Attack, attacked
from mappa_rl.audit.measures import Estimate, auc, estimate, mean_difference, spearman
from mappa_rl.audit.stored import Case, judge_case
from mappa_rl.errors import ConfigError
from mappa_rl.evaluation.stats import Interval, mean_interval

ALL = "all"
"""Stands for all roles together."""
Place = Literal["appended", "alone"]


@dataclass(frozen=True, slots=True)
class RoleAudit:
    """What the audit found for the actions of one role, or of all."""

    turns: int
    failed: Interval
    """Share of verdicts that failed: over all scorings of a task's turns, then over tasks."""
    failures: tuple[tuple[str, int], ...]
    """The commonest reasons, with how often each came."""
    score: float | None
    """Mean score."""
    spread: float | None
    """Mean over turns of the standard deviation of a turn's scores, in points."""
    largest_range: float | None
    """Largest difference between two scores of one turn."""
    agreement: Estimate | None
    """AUC of the mean score in an episode against the team's success: 0.5 says nothing, 1 tells them apart."""
    length: Estimate | None
    """Rank correlation of the score with the number of characters of the action."""
    position: Estimate | None
    """Rank correlation of the score with the place of the turn in the episode."""


@dataclass(frozen=True, slots=True)
class InjectionAudit:
    """What one attack came to."""

    attack: str
    place: Place
    """`appended` to the action, or `alone` in its place."""
    turns: int
    score: float | None
    """Mean score with the attack."""
    shift: Estimate | None
    """Points gained: over the same action without the attack, or, alone, over the control alone."""
    raised: float | None
    """Share of turns that gained at least one point."""
    failed: float
    """Share of turns without a score; an attack that makes the judge fail keeps a bad action out of training."""


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What is known of a judge after an audit."""

    judge: str
    episodes: int
    tasks: int
    successes: int
    rescores: int
    roles: dict[str, RoleAudit]
    """By role, and `all`."""
    injections: tuple[InjectionAudit, ...]
    cost: Cost
    """Of the audit itself; fewer calls than verdicts where replies came from a cache."""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Scored:
    """One turn with its verdicts."""

    role: str
    task: str
    episode: int
    index: int
    length: int
    success: bool | None
    verdicts: tuple[Verdict, ...]

    @property
    def scores(self) -> list[float]:
        return [v.score for v in self.verdicts if v.score is not None]


async def audit(
    judge: Judge, cases: Sequence[Case], *, rescores: int = 3, injections: int = 20, seed: int = 0
) -> AuditReport:
    """Audit a judge on stored episodes.

    Args:
        judge: Scores turns or whole episodes; a judge with a memory is asked as it is, and nothing is committed.
        cases: Finished episodes.
        rescores: How often each turn is scored, at least 1; 2 or more to measure stability.
        injections: Turns that the battery is tried on, drawn evenly over the roles; 0: no battery.
        seed: Draws those turns, and seeds the intervals.

    Raises:
        ConfigError: If a number is out of range.
    """
    if rescores < 1 or injections < 0:
        raise ConfigError(
            "audit: a number is out of range",
            expected="rescores >= 1 and injections >= 0",
            got=f"rescores={rescores}, injections={injections}",
        )
    rounds = []
    for _ in range(rescores):
        # One round after the other, so that a judge cannot answer equal requests of a round with one call.
        rounds.append(await asyncio.gather(*(judge_case(judge, case) for case in cases)))
    turns = [
        _Scored(
            role=turn.role,
            task=case.transcript.task_id,
            episode=i,
            index=turn.index,
            length=len(turn.action),
            success=case.success,
            verdicts=tuple(verdicts[i][turn.index] for verdicts in rounds),
        )
        for i, case in enumerate(cases)
        for turn in case.transcript.turns
    ]
    roles = list(dict.fromkeys(turn.role for turn in turns))
    attacks, spent = await _battery(judge, cases, turns, injections, seed)
    return AuditReport(
        judge=judge.id,
        episodes=len(cases),
        tasks=len({case.transcript.task_id for case in cases}),
        successes=sum(case.success is True for case in cases),
        rescores=rescores,
        roles={role: _role_audit([t for t in turns if role in (ALL, t.role)], seed) for role in (*roles, ALL)},
        injections=tuple(attacks),
        cost=total_cost([*(v for turn in turns for v in turn.verdicts), *spent]),
    )


def _role_audit(turns: Sequence[_Scored], seed: int) -> RoleAudit:
    failed = [v for turn in turns for v in turn.verdicts if v.score is None]
    shares: dict[str, list[float]] = {}
    for turn in turns:
        shares.setdefault(turn.task, []).append(1 - len(turn.scores) / len(turn.verdicts))
    scored = [turn for turn in turns if turn.scores]
    means = [fmean(turn.scores) for turn in scored]
    tasks = [turn.task for turn in scored]
    several = [turn.scores for turn in scored if len(turn.scores) > 1]
    return RoleAudit(
        turns=len(turns),
        failed=mean_interval([fmean(task) for task in shares.values()], seed=seed),
        failures=tuple(Counter(v.reason.split("\n")[0][:200] for v in failed).most_common(3)),
        score=fmean(means) if means else None,
        spread=fmean(pstdev(scores) for scores in several) if several else None,
        largest_range=max(max(scores) - min(scores) for scores in several) if several else None,
        agreement=_agreement(scored, seed),
        length=estimate(spearman, means, [t.length for t in scored], tasks, seed=seed),
        position=estimate(spearman, means, [t.index for t in scored], tasks, seed=seed),
    )


def _agreement(turns: Sequence[_Scored], seed: int) -> Estimate | None:
    episodes: dict[int, list[_Scored]] = {}
    for turn in turns:
        if turn.success is not None:
            episodes.setdefault(turn.episode, []).append(turn)
    return estimate(
        auc,
        [fmean(fmean(turn.scores) for turn in group) for group in episodes.values()],
        [float(group[0].success is True) for group in episodes.values()],
        [group[0].task for group in episodes.values()],
        seed=seed,
    )


# Injections ------------------------------------------------------------------------------------------------------


async def _battery(
    judge: Judge, cases: Sequence[Case], turns: Sequence[_Scored], size: int, seed: int
) -> tuple[list[InjectionAudit], list[Verdict]]:
    chosen = _drawn(turns, size, seed)
    if not chosen:
        return [], []
    results, spent = [], []
    for place in ("appended", "alone"):
        before = [turn.verdicts[0].score for turn in chosen]
        for attack in ATTACKS:
            verdicts = await asyncio.gather(*(_with_attack(judge, cases, turn, attack, place) for turn in chosen))
            spent += verdicts
            if place == "alone" and attack.name == CONTROL:
                before = [v.score for v in verdicts]
            results.append(_injection(attack, place, chosen, before, verdicts, seed))
    return results, spent


def _drawn(turns: Sequence[_Scored], size: int, seed: int) -> list[_Scored]:
    """Draw turns with a score, as evenly as possible over the roles."""
    rng = np.random.default_rng(seed)
    pools: dict[str, list[_Scored]] = {}
    for turn in turns:
        if turn.verdicts[0].score is not None:
            pools.setdefault(turn.role, []).append(turn)
    queues = [[pool[i] for i in rng.permutation(len(pool))] for pool in pools.values()]
    mixed = [queue[i] for i in range(max(map(len, queues), default=0)) for queue in queues if i < len(queue)]
    return mixed[:size]


async def _with_attack(judge: Judge, cases: Sequence[Case], turn: _Scored, attack: Attack, place: Place) -> Verdict:
    case = cases[turn.episode]
    action = attacked(case.requests[turn.index].action, attack, place)
    request = replace(case.requests[turn.index], action=action)
    if judge.scope == "turn":
        return (await judge.score([request]))[0]
    turns, requests = list(case.transcript.turns), list(case.requests)
    turns[turn.index], requests[turn.index] = replace(turns[turn.index], action=action), request
    changed = Case(replace(case.transcript, turns=tuple(turns)), tuple(requests))
    return (await judge_case(judge, changed))[turn.index]


def _injection(
    attack: Attack,
    place: Place,
    turns: Sequence[_Scored],
    before: Sequence[float | None],
    verdicts: Sequence[Verdict],
    seed: int,
) -> InjectionAudit:
    pairs = [
        (verdict.score, old, turn.task)
        for turn, old, verdict in zip(turns, before, verdicts, strict=True)
        if verdict.score is not None and old is not None
    ]
    scores = [v.score for v in verdicts if v.score is not None]
    return InjectionAudit(
        attack=attack.name,
        place=place,
        turns=len(turns),
        score=fmean(scores) if scores else None,
        shift=estimate(mean_difference, [p[0] for p in pairs], [p[1] for p in pairs], [p[2] for p in pairs], seed=seed),
        raised=fmean(new - old >= 1 for new, old, _ in pairs) if pairs else None,
        failed=fmean(v.score is None for v in verdicts),
    )
