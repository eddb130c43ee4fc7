"""Scores from checked facts: criteria with points, and the verdict that accounts for every one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mappa_envs.transcript import MAX_SCORE, Verdict


@dataclass(frozen=True, slots=True)
class Criterion:
    """One checked fact."""

    points: float
    fact: str
    """Past tense, as it reads when met, e.g. `code ran without error`. Never text of an agent."""
    met: bool | None
    """None: it could not be checked and does not count."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A criterion before it is checked."""

    key: str
    points: float
    fact: str
    counts: str = "always"
    """When it counts, for people."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What the check of one rule came to."""

    met: bool | None
    note: str = ""
    """Why, where the fact alone does not say it. Never text of an agent."""


def criteria_from(rules: Sequence[Rule], findings: Mapping[str, Finding]) -> list[Criterion]:
    """Put the findings to their rules, in the order of the rules.

    Args:
        rules: The rules of one duty.
        findings: One per key of `rules`.
    """
    made = []
    for rule in rules:
        finding = findings[rule.key]
        made.append(Criterion(rule.points, f"{rule.fact} ({finding.note})" if finding.note else rule.fact, finding.met))
    return made


def verdict_from(criteria: Sequence[Criterion], judge: str) -> Verdict:
    """Add criteria up to a score of 0 to 10 with a reason that accounts for every point.

    The score is `10 * earned / checkable`, over the criteria that could be checked.

    Args:
        criteria: At least one of them must be checkable.
        judge: Id of the judge.
    """
    counted = [c for c in criteria if c.met is not None]
    total = sum(c.points for c in counted)
    earned = sum(c.points for c in counted if c.met)
    parts = [f"{'+' if c.met else 'missed '}{c.points:g} {c.fact}" for c in counted]
    reason = "; ".join([*parts, f"{earned:g} of {total:g} points"])
    return Verdict.ok(MAX_SCORE * earned / total, reason, judge)
