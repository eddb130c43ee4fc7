from __future__ import annotations

import pytest

import mappa_envs
from mappa_envs.errors import MappaError
from mappa_envs.topologies import CHAIN, get_domain, get_topology
from mappa_rl.policy.base import Sampling
from mappa_rl.policy.scripted import math_oracle
from mappa_rl.rollout.collector import Collector, EpisodeSpec

NAMES = ("solo", "chain", "debate", "mixture", "prover_verifier", "star")


def outcomes(topology: str, tasks: int) -> list[tuple[bool | None, list[float | None]]]:
    env = mappa_envs.make("Mappa/MathChat-v0", topology=topology)
    oracle = math_oracle([env.tasks.task(i) for i in range(tasks)], env.topology)
    collector = Collector(lambda: mappa_envs.make("Mappa/MathChat-v0", topology=topology), oracle, concurrency=tasks)
    played = collector.collect([EpisodeSpec(i, i) for i in range(tasks)], Sampling(), seed=0)
    collector.close()
    transcripts = [episode.transcript for episode in played]
    assert all(transcript is not None and transcript.outcome is not None for transcript in transcripts)
    return [(t.outcome.success, [turn.verdict.score for turn in t.turns]) for t in transcripts if t and t.outcome]


def test_the_oracle_plays_a_team_whose_duties_are_not_the_chains() -> None:
    ((success, scores),) = outcomes("star", 1)
    assert success is True and scores == [10.0] * 6


@pytest.mark.slow
@pytest.mark.parametrize("topology", NAMES)
def test_the_oracle_solves_every_task_in_every_topology_with_full_marks(topology: str) -> None:
    for success, scores in outcomes(topology, 10):
        assert success is True and set(scores) == {10.0}


def test_the_oracle_does_not_play_what_it_does_not_know() -> None:
    assert math_oracle([], CHAIN).scripts.keys() == {"solver", "coder", "verifier"}
    with pytest.raises(MappaError, match="cannot play this team"):
        math_oracle([], get_topology("chain", get_domain("tables")))
