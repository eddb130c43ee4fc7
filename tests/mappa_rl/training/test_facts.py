from __future__ import annotations

from dataclasses import replace

import pytest

from mappa_envs.transcript import Outcome, Transcript, Turn, Verdict
from mappa_rl.errors import TrainingError
from mappa_rl.rollout.collector import Episode, EpisodeSpec
from mappa_rl.rollout.row import Row
from mappa_rl.training.facts import EpisodeFacts, TurnFacts, facts_of, rollout_metrics
from mappa_rl.training.failures import check_failures


def turn(score: float | None = 5.0, failure: str | None = None, *, cut: bool = False, agent: str = "a_0") -> TurnFacts:
    return TurnFacts(agent, 0, score, failure, cut, failure is None and not cut, tokens=4, logprob=-2.0)


def episode(*turns: TurnFacts, success: bool | None = True, lost: str | None = None) -> EpisodeFacts:
    return EpisodeFacts(0, lost, success, turns)


def test_numbers_by_hand() -> None:
    long = replace(turn(10.0), tokens=6, logprob=-1.0)
    found = rollout_metrics(
        3,
        [
            episode(turn(0.0), turn(9.5, cut=True), success=True),
            episode(long, turn(None, "down"), success=None),
            episode(turn(2.5, agent="b_0"), success=False),
            episode(lost="no kernel", success=None),
        ],
    )
    assert found == {
        "step": 3,
        "episodes": 4,
        "lost_episodes": 1,
        "success": pytest.approx(1 / 3),
        "undecided": 1,
        "score/a_0": 6.5,
        "scores/a_0": [1, 0, 0, 0, 0, 0, 0, 0, 0, 2],
        "failed/a_0": 0.25,
        "truncated/a_0": 0.25,
        "tokens/a_0": 4.5,
        # Of the two turns that are trained on: 3 nats in 10 tokens.
        "entropy/a_0": pytest.approx(0.3),
        "score/b_0": 2.5,
        "scores/b_0": [0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
        "failed/b_0": 0.0,
        "truncated/b_0": 0.0,
        "tokens/b_0": 4.0,
        "entropy/b_0": 0.5,
    }


def test_an_agent_without_a_usable_verdict_has_no_score() -> None:
    found = rollout_metrics(1, [episode(turn(None, "down"))])
    assert "score/a_0" not in found and "entropy/a_0" not in found
    assert found["failed/a_0"] == 1.0


def test_some_failures_are_allowed() -> None:
    episodes = [episode(*[turn()] * 9, turn(None, "the judge is down"))]
    check_failures(episodes, 0.1)
    with pytest.raises(TrainingError, match=r"1 of 10 verdicts failed(.|\n)*the judge is down"):
        check_failures(episodes, 0.05)
    with pytest.raises(TrainingError, match=r"1 of 2 episodes failed(.|\n)*no kernel"):
        check_failures([episode(turn()), episode(lost="no kernel")], 0.1)
    check_failures([], 0.0)


def test_facts_tell_a_failed_verdict_from_an_undecided_outcome() -> None:
    verdicts = (Verdict.ok(4, "fine", "j"), Verdict.failed("no reply", "j"))
    turns = tuple(Turn(i, i, "a_0", "a", (), "text", (), verdict) for i, verdict in enumerate(verdicts))
    transcript = Transcript("e", "t", "1", "k", 0, None, turns, Outcome(None, 0.0, "unreadable"))
    played = Episode(EpisodeSpec(0, 0), transcript)
    judged = [
        Row((1,), (2, 3), (-0.5, -0.25), 0.4, "a_0", "a", "ok", False, 0, 0, 0, "k", 0.0),
        Row((1,), (2,), (-0.1,), 0.0, "a_0", "a", "failed", True, 0, 0, 1, "k", 0.0),
    ]
    facts = facts_of(6, played, judged, judged)
    assert (facts.position, facts.lost, facts.success) == (6, None, None)
    assert facts.turns == (
        TurnFacts("a_0", 0, 4.0, None, False, True, 2, -0.75),
        TurnFacts("a_0", 1, None, "no reply", True, False, 1, -0.1),
    )
    mixed = [replace(judged[0], status="failed", reward=0.0), judged[1]]
    facts = facts_of(6, played, judged, mixed)
    assert [t.failure for t in facts.turns] == ["outcome undecided: unreadable", "no reply"]
    assert [t.score for t in facts.turns] == [4.0, None]
    assert facts_of(2, Episode(EpisodeSpec(0, 0), failure="no kernel"), [], []) == EpisodeFacts(2, "no kernel", None)
