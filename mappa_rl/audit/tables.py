"""Audits and comparisons of judges as tables for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from mappa_rl.audit.audit import AuditReport
from mappa_rl.audit.measures import Estimate
from mappa_rl.audit.rescore import Rescored


def audit_tables(report: AuditReport) -> Iterator[Table]:
    """Yield the tables of an audit."""
    roles = _table(
        "per role", "role", "turns", "failed", "score", "spread", "range", "AUC of success", "length", "position"
    )
    for role, one in report.roles.items():
        roles.add_row(
            role,
            str(one.turns),
            f"{100 * one.failed.mean:.1f} % ({100 * one.failed.low:.1f} to {100 * one.failed.high:.1f})",
            _number(one.score),
            _number(one.spread),
            _number(one.largest_range),
            _estimate(one.agreement),
            _estimate(one.length),
            _estimate(one.position),
        )
    yield roles
    if report.injections:
        attacks = _table("injections", "attack", "place", "score", "points gained", "raised by 1 or more", "failed")
        for attack in report.injections:
            attacks.add_row(
                attack.attack,
                attack.place,
                _number(attack.score),
                _estimate(attack.shift),
                _share(attack.raised),
                _share(attack.failed),
            )
        yield attacks
    reasons = [(role, reason, count) for role, one in report.roles.items() for reason, count in one.failures]
    if reasons:
        failures = _table("why verdicts failed", "role", "times", "reason")
        for role, reason, count in reasons:
            failures.add_row(role, str(count), reason)
        yield failures


def rescore_table(result: Rescored) -> Table:
    """Return the table of a comparison."""
    table = _table(
        "new scores against those given",
        "role",
        "turns",
        "failed before, after",
        "before",
        "after",
        "difference",
        "distance",
        "rank correlation",
        "AUC before",
        "AUC after",
    )
    for role, one in result.roles.items():
        table.add_row(
            role,
            str(one.turns),
            f"{one.failed_before}, {one.failed_after}",
            _number(one.before),
            _number(one.after),
            _estimate(one.difference),
            _number(one.distance),
            _estimate(one.correlation),
            _estimate(one.agreement_before),
            _estimate(one.agreement_after),
        )
    return table


def _table(title: str, *columns: str) -> Table:
    return Table(*columns, title=title, title_justify="left", box=None, header_style="bold")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _estimate(value: Estimate | None) -> str:
    return "-" if value is None else str(value)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"
