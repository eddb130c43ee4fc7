from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "mappa_envs"))
from teams import EndJudge, make_env

import envs_registry
import mappa_envs  # noqa: F401
from mappa_envs.errors import SandboxError
from mappa_rl.evaluation.evaluate import eval_specs, evaluate
from mappa_rl.policy.base import Policy, PolicyRequest, Sample, Sampling
from mappa_rl.policy.scripted import ScriptedPolicy, math_oracle
from mappa_rl.rollout.collector import Collector, EpisodeSpec, derive_seed, rows_of
from mappa_rl.rollout.row import Row, micro_batches

CODE = "```python\nprint(1)\n```"
SCRIPT = ScriptedPolicy({"solver": lambda r: "plan", "coder": lambda r: CODE, "verifier": lambda r: "done"})


def test_the_oracle_solves_everything_and_every_verdict_is_full() -> None:
    def env() -> object:
        return envs_registry.make("Mappa/MathChat-v0", split="eval")

    tasks = [env().tasks.task(i) for i in range(10)]  # type: ignore[attr-defined]
    collector = Collector(env, math_oracle(tasks), concurrency=4)  # type: ignore[arg-type]
    result, episodes = evaluate(collector, eval_specs(10, 1, None), Sampling(), seed=0)
    collector.close()
    assert result.success.mean == 1.0
    assert result.scores == {"coder_0": 10.0, "solver_0": 10.0, "verifier_0": 10.0}
    assert {len(e.truncated) for e in episodes} == {3}


def test_rows_hold_one_action_each_with_its_own_reward() -> None:
    collector = Collector(make_env, SCRIPT, concurrency=2)
    episodes = collector.collect([EpisodeSpec(i, group=7, seed=i) for i in range(3)], Sampling(), seed=0)
    collector.close()
    rows = rows_of(episodes)
    assert [(r.episode, r.agent, r.turn) for r in rows[:4]] == [
        (0, "solver_0", 0),
        (0, "coder_0", 1),
        (0, "verifier_0", 2),
        (1, "solver_0", 0),
    ]
    assert rows[0].reward == len("plan") / 100
    assert {r.group for r in rows} == {7}
    assert {r.outcome for r in rows} == {1.0}


def test_rewards_of_an_episode_judge_are_its_final_ones() -> None:
    collector = Collector(lambda: make_env(judge=EndJudge()), SCRIPT)
    rows = rows_of(collector.collect([EpisodeSpec(0, 0)], Sampling(), seed=0))
    collector.close()
    assert [r.reward for r in rows] == pytest.approx([0.3] * 3)
    assert {r.status for r in rows} == {"ok"}


def test_failed_and_truncated_rows_are_not_trained_on() -> None:
    class Cut(Policy):
        def act(self, requests: Sequence[PolicyRequest], sampling: Sampling, *, seed: int) -> list[Sample]:
            return [Sample("fail", (1,), (2,), (0.0,), truncated=r.agent == "coder_0") for r in requests]

    collector = Collector(make_env, Cut())
    rows = rows_of(collector.collect([EpisodeSpec(0, 0)], Sampling(), seed=0))
    assert {r.status for r in rows} == {"failed"}
    assert not any(r.trainable for r in rows)


def test_a_lost_sandbox_loses_its_episode_only(monkeypatch: pytest.MonkeyPatch) -> None:
    envs = []

    def env() -> object:
        made = make_env()
        envs.append(made)
        if len(envs) == 2:

            async def broken(agent: str, action: str) -> object:
                raise SandboxError("the machine is gone")

            monkeypatch.setattr(made, "_run_tools", broken)
        return made

    collector = Collector(env, SCRIPT, concurrency=3)  # type: ignore[arg-type]
    episodes = collector.collect([EpisodeSpec(i, 0) for i in range(3)], Sampling(), seed=0)
    collector.close()
    assert [e.failure for e in episodes] == [None, "the machine is gone", None]
    assert {r.episode for r in rows_of(episodes)} == {0, 2}


def test_seeds_are_stable_and_distinct() -> None:
    assert derive_seed(1, 2, 3) == derive_seed(1, 2, 3)
    assert len({derive_seed(a, b) for a in range(20) for b in range(20)}) == 400
    assert 0 <= derive_seed(0) < 2**63


def test_micro_batches_hold_every_row_once_within_the_limit() -> None:
    rows = [
        Row((1,) * n, (2,), (0.0,), 0.0, "a_0", "a", "ok", False, 0, 0, 0, "k", 0.0) for n in (5, 50, 7, 300, 6, 40)
    ]
    groups = list(micro_batches(rows, [0, 1, 2, 3, 4], 100))
    assert sorted(i for g in groups for i in g) == [0, 1, 2, 3, 4]
    for group in groups:
        longest = max(len(rows[i].prompt_ids) + 1 for i in group)
        assert len(group) == 1 or len(group) * longest <= 100
