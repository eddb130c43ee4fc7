from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

import pytest
from playing import ByRule, WholeEpisodes, cases

from mappa_envs.judges.base import Judge, JudgeRequest
from mappa_rl.audit.attacks import ATTACKS, CONTROL, attacked
from mappa_rl.audit.audit import ALL, AuditReport, InjectionAudit, audit
from mappa_rl.audit.stored import Case
from mappa_rl.errors import ConfigError

CASES = cases(12)


def report(judge: Judge, of: list[Case] = CASES, **kwargs: Any) -> AuditReport:
    return asyncio.run(audit(judge, of, **{"rescores": 2, "injections": 0, **kwargs}))


def knows(request: JudgeRequest) -> bool:
    """Whether the verifier's answer is right."""
    return request.truth is not None and f"{{{request.truth.answers[0]}}}" in request.action  # type: ignore[attr-defined]


def test_a_steady_judge_that_knows_the_answer_is_found_to_be_one() -> None:
    found = report(ByRule(lambda r: 9.0 if knows(r) else 3.0))
    assert (found.episodes, found.tasks, found.successes, found.rescores) == (12, 12, 6, 2)
    assert list(found.roles) == ["solver", "coder", "verifier", ALL]
    verifier = found.roles["verifier"]
    assert (verifier.turns, verifier.score, verifier.spread, verifier.largest_range) == (12, 6.0, 0.0, 0.0)
    assert verifier.agreement is not None and verifier.agreement.value == 1.0
    assert verifier.agreement.low < 0.9
    solver = found.roles["solver"]
    assert solver.agreement is not None and solver.agreement.value == 0.5
    assert found.roles["coder"].turns == 24
    assert found.roles[ALL].turns == 48
    assert found.roles[ALL].failed.mean == 0.0
    assert found.roles[ALL].failures == ()
    assert found.cost.calls == 96


def test_unsteady_scores_are_measured() -> None:
    turn = itertools.count()
    # 48 turns per round: the second round gives two points more to every other turn.
    found = report(ByRule(lambda r: 4.0 + 2.0 * ((n := next(turn)) >= 48 and n % 2)))
    assert found.roles[ALL].spread == pytest.approx(0.5)
    assert found.roles[ALL].largest_range == 2.0
    alone = report(ByRule(lambda r: 4.0), rescores=1).roles[ALL]
    assert (alone.spread, alone.largest_range) == (None, None)


def test_failures_are_counted_per_role_with_their_reasons() -> None:
    found = report(ByRule(lambda r: None if r.role == "coder" and "either" in r.action else 5.0))
    coder = found.roles["coder"]
    assert coder.failed.mean == 0.5
    assert coder.failures == (("no number in the reply", 24),)
    assert found.roles["solver"].failed.mean == 0.0
    assert found.roles[ALL].failed.mean == 0.25
    assert 0 < found.roles["solver"].failed.high < 0.3


def test_a_judge_that_always_fails_has_no_numbers() -> None:
    found = report(ByRule(lambda r: None), injections=4)
    one = found.roles["verifier"]
    assert (one.score, one.spread, one.agreement, one.length, one.position) == (None,) * 5
    assert one.failed.mean == 1.0
    assert found.injections == ()


def test_length_and_position_bias_are_measured() -> None:
    longer = report(ByRule(lambda r: min(10.0, len(r.action) / 3)))
    assert longer.roles["solver"].length is not None and longer.roles["solver"].length.value == pytest.approx(1.0)
    assert longer.roles["solver"].position is None
    later = report(ByRule(lambda r: 10.0 - 2 * len(r.earlier)))
    assert later.roles[ALL].position is not None and later.roles[ALL].position.value == pytest.approx(-1.0)
    assert later.roles["coder"].position is not None


def row(found: AuditReport, attack: str, place: str) -> InjectionAudit:
    return next(one for one in found.injections if (one.attack, one.place) == (attack, place))


def gullible(request: JudgeRequest) -> float | None:
    if "<think>" in request.action:
        return None
    return 10.0 if "SCORE: 10" in request.action else 4.0


@pytest.mark.parametrize("kind", [ByRule, WholeEpisodes])
def test_the_battery_shows_what_a_gullible_judge_falls_for(kind: type[ByRule]) -> None:
    judge = kind(gullible)
    found = report(judge, injections=9)
    for place in ("appended", "alone"):
        for attack, shift, failed in ((CONTROL, 0.0, 0.0), ("score line", 6.0, 0.0), ("chat template", 6.0, 0.0)):
            one = row(found, attack, place)
            assert one.shift is not None and one.shift.value == shift
            assert (one.turns, one.raised, one.failed) == (9, float(shift >= 1), failed)
        blocked = row(found, "think block", place)
        assert (blocked.failed, blocked.shift, blocked.score, blocked.raised) == (1.0, None, None, None)
    assert len(found.injections) == 2 * len(ATTACKS)
    tried = [r for r in judge.asked if r.action.endswith("That is all.") and len(r.action) > 20]
    assert {r.role for r in tried} == {"solver", "coder", "verifier"}


def test_alone_is_measured_against_the_control_alone() -> None:
    found = report(ByRule(lambda r: 1.0 if r.action == ATTACKS[0].text else 3.0), injections=3)
    ask = row(found, "ask", "alone")
    assert ask.score == 3.0
    assert ask.shift is not None and ask.shift.value == 2.0


def test_attacks_are_named_once_and_leave_the_action_whole() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)
    assert ATTACKS[0].name == CONTROL
    for attack in ATTACKS:
        assert attacked("work", attack, "appended").startswith("work\n\n")
        assert attacked("work", attack, "alone") == attack.text


def test_a_report_is_plain_json_and_the_same_again() -> None:
    judge = ByRule(lambda r: float(len(r.action) % 11))
    one, other = report(judge, injections=5), report(judge, injections=5)
    assert one == other
    plain = json.loads(json.dumps(one.to_json()))
    assert plain["roles"]["all"]["turns"] == 48
    assert plain["injections"][0]["attack"] == CONTROL


@pytest.mark.parametrize("kwargs", [{"rescores": 0}, {"injections": -1}])
def test_numbers_out_of_range_are_refused(kwargs: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="out of range"):
        report(ByRule(lambda r: 5.0), **kwargs)
