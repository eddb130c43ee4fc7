from __future__ import annotations

import json
import math

import pytest

from envs_registry.errors import ConfigError
from mappa_envs.transcript import Cost, Outcome, ToolResult, Transcript, Turn, Verdict


def test_a_reward_is_a_tenth_of_the_score() -> None:
    verdict = Verdict.ok(7, "good", "j")
    assert (verdict.score, verdict.reward, verdict.status) == (7.0, 0.7, "ok")


@pytest.mark.parametrize("score", [-0.1, 10.1, 85, math.nan, math.inf])
def test_a_score_out_of_range_is_refused_not_clamped(score: float) -> None:
    with pytest.raises(ConfigError, match="out of range"):
        Verdict.ok(score, "", "j")


def test_a_failed_verdict_has_no_score() -> None:
    assert Verdict.failed("no answer", "j").score is None
    with pytest.raises(ConfigError, match="a score belongs to status ok"):
        Verdict("failed", 5.0, 0.5, "", "j")
    with pytest.raises(ConfigError, match="a score belongs to status ok"):
        Verdict("ok", None, 0.0, "", "j")


def test_costs_stay_out_of_what_agents_and_seed_tests_see() -> None:
    dear = Verdict.ok(5, "", "j", Cost(calls=3, money=0.1))
    assert "cost" not in dear.public()
    assert dear == Verdict.ok(5, "", "j")


def example() -> Transcript:
    tool = ToolResult("python", "print(1)", "ok", "1")
    turn = Turn(0, 0, "a_0", "a", ({"role": "user", "content": "hi"},), "text", (tool,), Verdict.ok(5, "so so", "j"))
    return Transcript(
        env_id="Mappa/MathChat-v0",
        topology="t",
        task_id="1",
        task_kind="k",
        seed=3,
        sandbox_level=2,
        turns=(turn,),
        outcome=Outcome(True, 1.0, "right"),
        final_verdicts=(Verdict.ok(10, "won", "o"),),
    )


def test_a_transcript_survives_json() -> None:
    assert Transcript.from_json(json.loads(json.dumps(example().to_json()))) == example()


def test_the_final_verdict_is_the_one_to_learn_from() -> None:
    assert example().verdict(0).score == 10


@pytest.mark.parametrize("data", [{}, {"turns": 3}, {**example().to_json(), "extra": 1}])
def test_something_else_is_not_a_transcript(data: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="not a transcript"):
        Transcript.from_json(data)
