from __future__ import annotations

import asyncio
import json
import random
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from asking import Scores, ask

from mappa_envs.errors import ConfigError
from mappa_envs.judges.base import JudgeRequest
from mappa_envs.judges.outcome import OutcomeJudge
from mappa_envs.judges.panel import PanelJudge
from mappa_envs.judges.stateful import Level, StatefulCoach
from mappa_envs.transcript import Verdict

KINDS = ("regression", "classification")
BIAS = 1.5


def likes_regression(score: float, request: JudgeRequest) -> float:
    return score + (BIAS if request.task_kind == "regression" else 0.0)


def batch(rng: random.Random, size: int, lead: float = 0.0) -> list[JudgeRequest]:
    """Actions of true quality 2 to 6, on regression better by `lead`."""
    made = []
    for i in range(size):
        kind = KINDS[i % 2]
        quality = rng.uniform(2, 6) + (lead if kind == "regression" else 0.0)
        made.append(ask(f"{quality:.6f}", kind=kind))
    return made


def score(judge: StatefulCoach, requests: list[JudgeRequest]) -> list[Verdict]:
    return asyncio.run(judge.score(requests))


def errors(judge: StatefulCoach, requests: list[JudgeRequest]) -> dict[str, list[float]]:
    """Return, per kind, by how much each score is over the true quality."""
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for request, verdict in zip(requests, score(judge, requests), strict=True):
        assert verdict.score is not None
        found[request.task_kind].append(verdict.score - float(request.action))
    return found


def gap(judge: StatefulCoach, requests: list[JudgeRequest]) -> float:
    """Return by how many points regression is favoured over classification."""
    found = errors(judge, requests)
    return fmean(found["regression"]) - fmean(found["classification"])


def trained(judge: StatefulCoach, *, steps: int = 5, lead: float = 0.0, seed: int = 0) -> StatefulCoach:
    rng = random.Random(seed)
    for _ in range(steps):
        score(judge, batch(rng, 100, lead))
        judge.commit()
    return judge


def test_a_planted_bias_of_one_and_a_half_points_is_removed() -> None:
    fresh = batch(random.Random(99), 400)
    raw = StatefulCoach(Scores("coach", likes_regression), bias=False)
    assert gap(trained(raw), fresh) == pytest.approx(BIAS)
    # 250 scores per kind with a standard deviation of 1.15: the standard error of the gap is 0.10.
    assert abs(gap(trained(StatefulCoach(Scores("coach", likes_regression))), fresh)) < 0.3


def test_with_a_reference_the_bias_goes_and_a_true_lead_stays() -> None:
    fresh = batch(random.Random(99), 400, lead=1.0)
    judge = StatefulCoach(Scores("coach", likes_regression), reference=Scores("facts"))
    # The reference sees the true quality of each action, so that the record holds the bias alone.
    assert gap(trained(judge, lead=1.0), fresh) == pytest.approx(0.0, abs=1e-9)


def test_without_a_reference_a_true_lead_goes_too_but_no_more_than_max_shift() -> None:
    fresh = batch(random.Random(99), 400, lead=1.0)
    lost = gap(trained(StatefulCoach(Scores("coach")), lead=1.0), fresh)
    assert -1.3 < lost < -0.7
    bounded = trained(StatefulCoach(Scores("coach"), max_shift=0.25), lead=1.0)
    assert gap(bounded, fresh) == pytest.approx(-0.5)
    assert (bounded.shift("analyst", "regression"), bounded.shift("analyst", "classification")) == (0.25, -0.25)


def test_differences_within_a_kind_stay_exactly() -> None:
    judge = trained(StatefulCoach(Scores("coach", likes_regression)))
    for found in errors(judge, batch(random.Random(5), 60)).values():
        assert max(found) - min(found) < 1e-12


def test_roles_have_records_of_their_own() -> None:
    judge = StatefulCoach(Scores("coach"), enough=1)
    score(judge, [ask("9", role="solver", kind=kind) for kind in KINDS] + [ask("2", kind=kind) for kind in KINDS])
    judge.commit()
    assert [judge.shift(role, kind) for role in ("solver", "analyst") for kind in KINDS] == [0.0] * 4


def test_drift_is_held_where_the_reference_shows_no_progress() -> None:
    lenience = [0.0]
    coach = Scores("coach", lambda score, request: score + lenience[0])
    judge = trained(StatefulCoach(coach, reference=Scores("facts"), drift=True, horizon=100))
    fresh = batch(random.Random(99), 50)
    lenience[0] = 2.0
    assert fmean(errors(judge, fresh)["regression"]) == pytest.approx(2.0)
    trained(judge, steps=40)
    assert fmean(errors(judge, fresh)["regression"]) == pytest.approx(0.0, abs=1e-6)
    # Progress is not drift: the reference sees it.
    better = [ask(f"{float(request.action) + 2:.6f}", kind=request.task_kind) for request in fresh]
    assert fmean(errors(judge, better)["regression"]) == pytest.approx(0.0, abs=1e-6)


def test_nothing_is_corrected_before_enough_scores_or_before_a_commit() -> None:
    judge = StatefulCoach(Scores("coach", likes_regression), enough=51)
    requests = batch(random.Random(0), 100)
    plain = [v.score for v in asyncio.run(Scores("coach", likes_regression).score(requests))]
    assert [v.score for v in score(judge, requests)] == plain
    judge.commit()
    assert [v.score for v in score(judge, requests)] == plain
    judge.commit()
    assert [v.score for v in score(judge, requests)] != plain


def test_the_order_of_scores_within_a_step_does_not_matter() -> None:
    requests = batch(random.Random(3), 101)
    shuffled = random.Random(4).sample(requests, len(requests))
    levels = []
    for order in (requests, shuffled):
        judge = StatefulCoach(Scores("coach", likes_regression), reference=Scores("facts"))
        for request in order:
            score(judge, [request])
        judge.commit()
        levels.append(judge.levels)
    assert levels[0] == levels[1]


def test_the_level_is_the_discounted_mean_and_spread() -> None:
    level = Level(0.0, 0.0, 0.0, None).with_scores([2.0, 4.0], horizon=2, enough=2).with_scores([9.0], 2, 2)
    # The first two count a half each now: (1 + 2 + 9) / 2 = 6 and (2 + 8 + 81) / 2 - 36 = 9.5.
    assert (level.weight, level.mean, level.first) == (2.0, 6.0, 3.0)
    assert level.spread == pytest.approx(9.5**0.5)


def test_the_reason_shows_the_score_as_given_and_the_scale_keeps_its_ends() -> None:
    judge = trained(StatefulCoach(Scores("coach", likes_regression)))
    low, high = score(judge, [ask("0", kind="classification"), ask("8.5", kind="regression")])
    assert low.score is not None and 0.6 < low.score < 0.9
    assert low.reason.startswith("0 as given, +0.7") and "for analyst on classification" in low.reason
    assert high.reason.startswith("10 as given, -0.7")
    zero = score(judge, [ask("-1.5", kind="regression")])[0]
    assert zero.score == 0.0


def test_failed_verdicts_pass_and_leave_the_record() -> None:
    judge = StatefulCoach(Scores("coach"), reference=Scores("facts", lambda s, r: float("x")), enough=1)
    failed, unreferenced = score(judge, [ask("none"), ask("5")])
    assert (failed.status, failed.reason, failed.judge) == ("failed", "no number", judge.id)
    assert unreferenced.score == 5
    judge.commit()
    assert judge.levels == {}


def test_a_restored_record_goes_on_as_if_it_had_never_stopped() -> None:
    def make() -> StatefulCoach:
        inner = PanelJudge([Scores("a", likes_regression), Scores("b")])
        return StatefulCoach(inner, reference=Scores("facts"), drift=True)

    through = trained(trained(make()), seed=1)
    first, second = trained(make()), make()
    second.restore(json.loads(json.dumps(first.state())))
    trained(second, seed=1)
    assert second.levels == through.levels
    assert second.state() == through.state()
    fresh = batch(random.Random(2), 20)
    assert score(second, fresh) == score(through, fresh)
    # What was not committed is forgotten.
    through.restore(first.state())
    through.commit()
    assert through.levels == first.levels


@pytest.mark.parametrize("state", [{}, {"levels": [{}]}, {"levels": 3, "judge": {}, "reference": {}}])
def test_a_state_of_something_else_is_refused(state: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="not its state"):
        StatefulCoach(Scores("coach")).restore(state)


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"drift": True}, "cannot be told from the team's progress"),
        ({"max_shift": -1}, "bad max_shift"),
        ({"enough": 0}, "bad enough"),
        ({"horizon": float("inf")}, "bad horizon"),
        ({"horizon": True}, "bad horizon"),
        ({"reference": OutcomeJudge()}, "cannot use 'outcome-1'"),
    ],
)
def test_bad_settings_are_refused(kwargs: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        StatefulCoach(Scores("coach"), **kwargs)
