from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from teams import LengthJudge, make_env

from mappa_envs.judges.requests import GroundTruth, requests_of
from mappa_envs.transcript import Transcript


@pytest.mark.parametrize("ground_truth", ["all", "answer", "none"])
def test_the_requests_of_a_stored_episode_are_those_that_its_judge_was_asked(ground_truth: GroundTruth) -> None:
    judge = LengthJudge()
    env = make_env(judge=judge, ground_truth=ground_truth)
    env.reset(seed=1)
    for action in ("a plan", "```python\nprint(1 / 0)\n```", "```python\nprint(1)\n```", "done"):
        env.step(action)
    stored = Transcript.from_json(json.loads(json.dumps(env.transcript.to_json())))
    rebuilt = requests_of(stored, env.topology, env.task, ground_truth)
    assert rebuilt == judge.requests
    assert [r.truth is not None for r in rebuilt] == [
        ground_truth == "all" or (ground_truth == "answer" and r.role == "verifier") for r in rebuilt
    ]
