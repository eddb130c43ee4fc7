from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import envs_registry
import mappa_envs  # noqa: F401
from mappa_envs.tasks.math.base import MathTask
from mappa_envs.transcript import Outcome, Transcript, Turn, Verdict
from mappa_rl.errors import EvaluationError, TrainingError
from mappa_rl.evaluation.episode_log import EpisodeLog
from mappa_rl.evaluation.evaluate import (
    NO_AGENT,
    UNCLEAR,
    Evaluation,
    compare,
    eval_specs,
    evaluate,
    first_fault,
    summarise,
)
from mappa_rl.evaluation.records import EpisodeRecord
from mappa_rl.policy.base import Policy, PolicyRequest, Sample, Sampling
from mappa_rl.rollout.collector import Collector

AGENTS = ("solver_0", "coder_0", "verifier_0")


def ok(score: float) -> Verdict:
    return Verdict.ok(score, "", "j")


def episode(
    task: int = 0,
    sample: int = 0,
    *,
    success: bool | None = True,
    answer: str | None = "1",
    scores: Sequence[float | None] = (10, 10, 10),
    kind: str = "k",
    truncated: Sequence[bool] = (False, False, False),
    finals: tuple[Verdict, ...] | None = None,
) -> EpisodeRecord:
    verdicts = [Verdict.failed("down", "j") if score is None else ok(score) for score in scores]
    turns = tuple(Turn(i, i, AGENTS[i], AGENTS[i][:-2], (), "text", (), v) for i, v in enumerate(verdicts))
    outcome = Outcome(success, float(bool(success)), "", {"answer": answer})
    transcript = Transcript("e", "chain", f"task-{task}", kind, sample, None, turns, outcome, finals)
    return EpisodeRecord(task, sample, transcript, tuple(truncated))


def transcript_of(record: EpisodeRecord) -> Transcript:
    assert record.transcript is not None
    return record.transcript


def lost(task: int, sample: int) -> EpisodeRecord:
    return EpisodeRecord(task, sample, None, failure="the machine is gone")


# Summaries -------------------------------------------------------------------------------------------------------


def test_nothing_to_evaluate_is_an_error() -> None:
    with pytest.raises(TrainingError, match="nothing to evaluate"):
        summarise([])
    with pytest.raises(TrainingError, match="nothing to evaluate"):
        summarise([lost(0, 0)])


def test_an_evaluation_plays_each_task_equally_often() -> None:
    specs = eval_specs(5, 2, size=3)
    assert [(s.task_index, s.seed) for s in specs] == [(i, s) for i in range(3) for s in range(2)]
    assert len(eval_specs(5, 1, size=None)) == 5


def test_the_numbers_of_a_small_evaluation_by_hand() -> None:
    records = [
        # Task 0: one of three right, and the majority is wrong.
        episode(0, 0, success=False, answer="7", scores=(10, 4, 2)),
        episode(0, 1, success=True, answer="5"),
        episode(0, 2, success=False, answer="7.0", scores=(10, 10, 2)),
        # Task 1: two of three right, and the majority is right though a wrong answer came first.
        episode(1, 0, success=False, answer="1/3", scores=(5, 10, 10), kind="l"),
        episode(1, 1, success=True, answer="1/2", kind="l"),
        episode(1, 2, success=True, answer="0.5", kind="l"),
    ]
    result = summarise(records)
    assert (result.tasks, result.samples, result.undecided, result.failed) == (2, 3, 0, 0)
    assert result.success.mean == pytest.approx((1 / 3 + 2 / 3) / 2)
    # Of the 3 pairs of samples, those with a success: 2 of task 0, all of task 1.
    assert {k: v.mean for k, v in result.pass_at.items()} == pytest.approx({1: 0.5, 2: (2 / 3 + 1) / 2, 3: 1.0})
    assert result.majority is not None
    assert result.majority.mean == 0.5
    assert {task: r.majority for task, r in result.by_task.items()} == {"task-0": False, "task-1": True}
    assert result.by_kind == {"k": pytest.approx(1 / 3), "l": pytest.approx(2 / 3)}
    assert result.faults == {"solver_0": 1, "coder_0": 1, "verifier_0": 1}
    assert result.scores["solver_0"] == pytest.approx(55 / 6)
    assert list(result.agents) == list(AGENTS)


def test_the_order_in_which_episodes_finished_changes_nothing() -> None:
    rng = random.Random(3)
    records = [
        episode(t, s, success=rng.random() < 0.5, answer=str(rng.randrange(3)), scores=(10, rng.randrange(11), 10))
        for t in range(6)
        for s in range(4)
    ]
    shuffled = list(records)
    rng.shuffle(shuffled)
    assert summarise(shuffled) == summarise(records)


def test_lost_and_undecided_episodes_are_counted_apart() -> None:
    result = summarise([episode(0, 0), lost(0, 1), episode(1, 0, success=None), lost(2, 0)])
    assert (result.tasks, result.failed, result.undecided) == (2, 2, 1)
    assert result.success.mean == 0.5
    assert sum(result.faults.values()) == 0


def test_pass_at_k_is_over_the_tasks_with_enough_samples() -> None:
    result = summarise([episode(0, 0), episode(0, 1), episode(1, 0, success=False), lost(1, 1)])
    assert result.pass_at[1].mean == 0.5
    assert result.pass_at[2].mean == 1.0


def test_teams_without_final_answers_have_no_majority() -> None:
    records = [episode(0, s) for s in range(3)]
    bare = [replace(r, transcript=replace(transcript_of(r), outcome=Outcome(True, 1.0, ""))) for r in records]
    assert summarise(bare).majority is None
    assert summarise([episode(0, 0, success=False, answer=None)]).by_task["task-0"].majority is False


def test_agents_have_shares_of_failed_verdicts_and_of_cut_actions() -> None:
    records = [
        episode(0, 0, scores=(None, 8, 10), truncated=(False, True, False)),
        episode(0, 1, scores=(None, 4, 10), truncated=(False, True, True)),
    ]
    agents = summarise(records).agents
    assert (agents["solver_0"].score, agents["solver_0"].failed, agents["solver_0"].truncated) == (None, 1.0, 0.0)
    assert (agents["coder_0"].score, agents["coder_0"].failed, agents["coder_0"].truncated) == (6.0, 0.0, 1.0)
    assert agents["verifier_0"].truncated == 0.5
    assert "solver_0" not in summarise(records).scores


@pytest.mark.parametrize(
    ("scores", "blamed"),
    [
        ((10, 10, 5), "verifier_0"),
        ((10, 9.9, 5), "coder_0"),
        ((0, 10, 10), "solver_0"),
        ((10, 10, 10), NO_AGENT),
        ((None, 10, 5), UNCLEAR),
        ((9, None, 5), "solver_0"),
    ],
)
def test_the_first_agent_to_lose_points_is_blamed(scores: Sequence[float | None], blamed: str) -> None:
    assert first_fault(transcript_of(episode(success=False, scores=scores))) == blamed


def test_a_verdict_on_the_whole_episode_blames_nobody() -> None:
    shared = transcript_of(episode(success=False, finals=(ok(0), ok(0), ok(0))))
    assert first_fault(shared) == UNCLEAR
    own = transcript_of(episode(success=False, finals=(ok(10), ok(3), ok(0))))
    assert first_fault(own) == "coder_0"


def test_only_decided_failures_are_blamed() -> None:
    records = [
        episode(0, 0, success=True, scores=(5, 5, 5)),
        episode(0, 1, success=None, scores=(5, 5, 5)),
        episode(0, 2, success=False, scores=(10, 10, 10)),
    ]
    assert summarise(records).faults == {"solver_0": 0, "coder_0": 0, "verifier_0": 0, NO_AGENT: 1}


def test_evaluations_and_records_survive_json() -> None:
    records = [episode(t, s, success=t == 0, truncated=(True, False, False)) for t in range(3) for s in range(2)]
    records.append(lost(3, 0))
    result = summarise(records)
    assert Evaluation.from_json(json.loads(json.dumps(result.to_json()))) == result
    assert [EpisodeRecord.from_json(json.loads(json.dumps(r.to_json()))) for r in records] == records
    with pytest.raises(EvaluationError, match="not the result"):
        Evaluation.from_json({"success": 1})
    with pytest.raises(EvaluationError, match="not the record"):
        EpisodeRecord.from_json({"sample": 1})


def test_evaluations_are_compared_on_the_tasks_that_both_have() -> None:
    before = summarise([episode(t, 0, success=False) for t in range(8)])
    after = summarise([*(episode(t, 0, success=t < 6) for t in range(7)), lost(7, 0)])
    result = compare(after, before)
    assert (result.tasks, result.better, result.worse) == (7, 6, 0)
    assert result.p_value == pytest.approx(2 / 64)
    with pytest.raises(TrainingError, match="nothing to compare"):
        compare(after, summarise([episode(20, 0)]))


# Playing, with interruptions -------------------------------------------------------------------------------------


class Gambler(Policy):
    """Solves each maths task with chance 1/2, by its seed; stops the program before a given call."""

    def __init__(self, tasks: Sequence[MathTask], stop_before: int | None = None) -> None:
        self.tasks = {task.prompt: task for task in tasks}
        self.calls, self.stop_before = 0, stop_before

    def act(self, requests: Sequence[PolicyRequest], sampling: Sampling, *, seed: int) -> list[Sample]:
        if self.calls == self.stop_before:
            raise KeyboardInterrupt
        self.calls += 1
        rng = np.random.default_rng(seed)
        return [self._turn(request, bool(rng.random() < 0.5)) for request in requests]

    def _turn(self, request: PolicyRequest, right: bool) -> Sample:
        text = request.messages[1]["content"]
        task = next(task for prompt, task in self.tasks.items() if text.startswith(f"Problem:\n{prompt}"))
        value = task.answers[0] if right else "12345"
        if request.agent == "solver_0":
            return Sample(f"Compute: {value}")
        if request.agent == "coder_0":
            return Sample(f"```python\nprint({value})\n```", truncated=not right)
        return Sample(f"\\boxed{{{value}}}")


TASKS, SAMPLES, CHUNK = 5, 2, 4


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., tuple[Evaluation, list[EpisodeRecord]]]:
    env = envs_registry.make("Mappa/MathChat-v0", split="eval")
    tasks = [env.tasks.task(i) for i in range(TASKS)]

    def run(log: bool = True, stop_before: int | None = None) -> tuple[Evaluation, list[EpisodeRecord]]:
        specs = eval_specs(TASKS, SAMPLES, None)
        collector = Collector(
            lambda: envs_registry.make("Mappa/MathChat-v0", split="eval"),
            Gambler(tasks, stop_before),
            concurrency=CHUNK,
        )
        file = EpisodeLog(tmp_path / "e.jsonl", {"seed": 3}, specs=specs, chunk=CHUNK) if log else None
        try:
            return evaluate(collector, specs, Sampling(), seed=3, log=file)
        finally:
            collector.close()

    return run


def test_an_interrupted_evaluation_ends_as_if_it_had_never_stopped(
    play: Callable[..., tuple[Evaluation, list[EpisodeRecord]]], tmp_path: Path
) -> None:
    whole, episodes = play(log=False)
    assert 0 < whole.success.mean < 1
    # Three turns a chunk: it stops in the second chunk, then in the third.
    for stop_before, done in ((4, 4), (4, 8)):
        with pytest.raises(KeyboardInterrupt):
            play(stop_before=stop_before)
        assert len((tmp_path / "e.jsonl").read_text().splitlines()) == 1 + done
    resumed, records = play()
    assert records == episodes
    assert resumed == whole
    again, _ = play(stop_before=0)
    assert again == whole


def test_a_chunk_that_a_crash_has_torn_is_played_again(
    play: Callable[..., tuple[Evaluation, list[EpisodeRecord]]], tmp_path: Path
) -> None:
    whole, _ = play()
    file = tmp_path / "e.jsonl"
    data = file.read_bytes()
    for cut in (data[:-1], data[: len(data) // 2], data.split(b"\n")[0], data[:10], b""):
        file.write_bytes(cut)
        resumed, _ = play()
        assert resumed == whole
        assert file.read_bytes() == data


def test_a_log_of_other_chunks_is_refused(tmp_path: Path) -> None:
    log = EpisodeLog(tmp_path / "e.jsonl", {}, specs=eval_specs(2, 1, None), chunk=3)
    collector = Collector(lambda: envs_registry.make("Mappa/MathChat-v0"), Gambler([]), concurrency=4)
    with pytest.raises(EvaluationError, match=r"chunks of 4(.|\n)*chunks of 3"):
        evaluate(collector, eval_specs(2, 1, None), Sampling(), seed=0, log=log)
