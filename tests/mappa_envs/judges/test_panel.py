from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from asking import Scores, ask

from mappa_envs.errors import ConfigError, JudgeError
from mappa_envs.judges.base import Judge
from mappa_envs.judges.hindsight import HindsightJudge
from mappa_envs.judges.outcome import OutcomeJudge
from mappa_envs.judges.panel import PanelJudge
from mappa_envs.transcript import Verdict


def shifted(name: str, by: float) -> Scores:
    return Scores(name, lambda score, request: score + by)


class Broken(Scores):
    async def score(self, requests: object) -> list[Verdict]:
        return [Verdict.failed("connection lost", self.id) for _ in requests]  # type: ignore[attr-defined]


class Silent(Scores):
    async def score(self, requests: object) -> list[Verdict]:
        return []


def verdicts(judge: Judge, *actions: str) -> list[Verdict]:
    return asyncio.run(judge.score([ask(action) for action in actions]))


def test_an_odd_panel_gives_the_middle_score_and_says_how_far_the_members_are_apart() -> None:
    panel = PanelJudge([shifted("low", -2), shifted("mid", 0.5), shifted("high", 3)])
    (verdict,) = verdicts(panel, "4")
    assert (verdict.score, verdict.reward) == (4.5, 0.45)
    assert verdict.reason == "median of 3 of 3, they differ by up to 5 (low: 2; mid: 4.5; high: 7)"
    assert (verdict.cost.calls, verdict.cost.money) == (3, 0.75)
    assert verdict.judge == "panel-1(low, mid, high; quorum 2)"


def test_an_even_panel_gives_the_mean_of_the_middle_two() -> None:
    panel = PanelJudge([shifted(str(by), by) for by in (0, 1, 2, 6)])
    assert verdicts(panel, "3")[0].score == 4.5


def test_a_failed_member_has_no_vote_and_is_named() -> None:
    panel = PanelJudge([Broken("down"), shifted("mid", 0), shifted("high", 4)])
    (verdict,) = verdicts(panel, "4")
    assert verdict.score == 6
    assert "median of 2 of 3" in verdict.reason
    assert "down: connection lost" in verdict.reason


def test_too_few_scores_are_a_failure_not_one_opinion() -> None:
    panel = PanelJudge([Broken("down"), Broken("also down"), shifted("mid", 0)])
    (verdict,) = verdicts(panel, "4")
    assert (verdict.status, verdict.score, verdict.reward) == ("failed", None, 0.0)
    assert "1 scores, the quorum is 2" in verdict.reason
    assert verdicts(PanelJudge(panel.members, quorum=1), "4")[0].score == 4
    assert verdicts(PanelJudge([shifted("a", 0), Broken("b")], quorum=2), "4")[0].status == "failed"


def test_each_request_has_its_own_median() -> None:
    panel = PanelJudge([shifted("a", 0), shifted("b", 1), shifted("c", 2)])
    assert [v.score for v in verdicts(panel, "1", "7", "not a number", "0")] == [2, 8, None, 1]


def test_a_member_that_breaks_its_contract_is_an_error() -> None:
    with pytest.raises(JudgeError, match="'silent' broke its contract"):
        verdicts(PanelJudge([shifted("a", 0), Silent("silent")]), "4")


@pytest.mark.parametrize("quorum", [0, 4, True, 1.5])
def test_a_quorum_that_cannot_be_met_is_refused(quorum: int) -> None:
    with pytest.raises(ConfigError, match="bad quorum"):
        PanelJudge([shifted("a", 0)] * 3, quorum=quorum)


def test_members_must_be_two_judges_of_turns() -> None:
    with pytest.raises(ConfigError, match="at least two judges"):
        PanelJudge([shifted("a", 0)])
    for member in (OutcomeJudge(), HindsightJudge(shifted("a", 0))):
        with pytest.raises(ConfigError, match="cannot be a member"):
            PanelJudge([shifted("a", 0), member])


def test_the_state_of_the_members_is_kept() -> None:
    first, second = shifted("a", 0), shifted("b", 0)
    panel = PanelJudge([first, second])
    panel.commit()
    second.commit()
    saved = json.loads(json.dumps(panel.state()))
    panel.commit()
    panel.restore(saved)
    assert (first.commits, second.commits) == (1, 2)
    with pytest.raises(ConfigError, match="not the state of this panel"):
        panel.restore({})
