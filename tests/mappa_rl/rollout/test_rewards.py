from __future__ import annotations

import pytest

from mappa_envs.transcript import Outcome, Transcript
from mappa_rl.rollout.collector import Episode, EpisodeSpec
from mappa_rl.rollout.rewards import mix_outcome
from mappa_rl.rollout.row import Row


def row(episode: int, reward: float, status: str = "ok") -> Row:
    return Row((1,), (2,), (-0.1,), reward, "a_0", "a", status, False, episode, 0, 0, "k", 0.0)  # type: ignore[arg-type]


def episode(outcome: Outcome | None) -> Episode:
    return Episode(EpisodeSpec(0, 0), transcript=Transcript("e", "t", "1", "k", 0, None, outcome=outcome))


EPISODES = [
    episode(Outcome(True, 1.0, "right")),
    episode(Outcome(False, 0.25, "near")),
    episode(Outcome(None, 0.0, "?")),
]


@pytest.mark.parametrize(
    ("weight", "expected"),
    [(0.0, [0.4, 0.8]), (0.25, [0.75 * 0.4 + 0.25, 0.75 * 0.8 + 0.25 * 0.25]), (1.0, [1.0, 0.25])],
)
def test_the_reward_is_the_weighted_mean_of_verdict_and_outcome(weight: float, expected: list[float]) -> None:
    mixed = mix_outcome([row(0, 0.4), row(1, 0.8)], EPISODES, weight)
    assert [r.reward for r in mixed] == pytest.approx(expected)
    assert [r.status for r in mixed] == ["ok", "ok"]


def test_an_undecided_outcome_and_a_failed_verdict_leave_no_reward_to_learn_from() -> None:
    mixed = mix_outcome([row(2, 0.4), row(0, 0.0, "failed"), row(0, 0.0, "skipped")], EPISODES, 0.5)
    assert [(r.status, r.reward, r.trainable) for r in mixed] == [
        ("failed", 0.0, False),
        ("failed", 0.0, False),
        ("skipped", 0.0, False),
    ]
