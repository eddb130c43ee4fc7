from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from teams import make_env

from envs_registry.errors import ConfigError
from mappa_envs.errors import JudgeError
from mappa_envs.judges import OutcomeJudge, ReplayJudge, get_judge
from mappa_envs.judges.math_rules import MathRules
from mappa_envs.transcript import Outcome, Transcript


def play(env: object, *actions: str) -> Transcript:
    env.reset(seed=0)  # type: ignore[attr-defined]
    for action in actions:
        env.step(action)  # type: ignore[attr-defined]
    return env.transcript  # type: ignore[attr-defined,no-any-return]


ACTIONS = ("a plan", "```python\nprint(1)\n```", "done")


@pytest.mark.parametrize(("last", "score"), [("done", 10.0), ("lost", 0.0)])
def test_the_outcome_is_shared_by_every_action(last: str, score: float) -> None:
    env = make_env(judge=OutcomeJudge())
    transcript = play(env, *ACTIONS[:2], last)
    assert [transcript.verdict(i).score for i in range(3)] == [score] * 3
    assert env.rewards == dict.fromkeys(env.possible_agents, score / 10)


def test_an_undecided_outcome_is_a_failed_verdict_not_a_zero() -> None:
    transcript = replace(play(make_env(), *ACTIONS), outcome=Outcome(None, 0.0, "ran out of time"))
    assert {v.status for v in asyncio.run(OutcomeJudge().score_episode(transcript, []))} == {"failed"}


def test_turns_and_unfinished_episodes_are_not_scored_by_outcome() -> None:
    with pytest.raises(JudgeError, match="scores episodes"):
        asyncio.run(OutcomeJudge().score([]))
    unfinished = replace(play(make_env(), *ACTIONS), outcome=None)
    with pytest.raises(JudgeError, match="no outcome yet"):
        asyncio.run(OutcomeJudge().score_episode(unfinished, []))


def test_recorded_verdicts_come_again_for_the_same_turns_only(tmp_path: Path) -> None:
    first = play(make_env(), *ACTIONS)
    file = tmp_path / "transcripts.jsonl"
    file.write_text(json.dumps(first.to_json()) + "\n", encoding="utf-8")
    again = play(make_env(judge=ReplayJudge.from_file(file)), *ACTIONS)
    assert [t.verdict for t in again.turns] == [t.verdict for t in first.turns]
    other = play(make_env(judge=ReplayJudge.from_file(file)), "another plan", *ACTIONS[1:])
    assert other.turns[0].verdict.status == "failed"


def test_a_recording_that_is_missing_or_malformed_is_named(tmp_path: Path) -> None:
    with pytest.raises(JudgeError, match="no such transcript file"):
        ReplayJudge.from_file(tmp_path / "none.jsonl")
    file = tmp_path / "bad.jsonl"
    file.write_text('{"turns": []}\n', encoding="utf-8")
    with pytest.raises(JudgeError, match=r"bad.jsonl, line 1: not a transcript"):
        ReplayJudge.from_file(file)


def test_judges_are_found_by_name() -> None:
    assert isinstance(get_judge("rules", rules=MathRules), MathRules)
    with pytest.raises(ConfigError, match="did you mean 'outcome'"):
        get_judge("outcom", rules=MathRules)
