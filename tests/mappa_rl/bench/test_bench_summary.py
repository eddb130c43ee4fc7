from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mappa_envs.transcript import Cost, Outcome, Transcript, Turn, Verdict
from mappa_rl.bench.cost import EpisodeCost, episode_cost, mean_cost
from mappa_rl.bench.grid import Cell
from mappa_rl.bench.plot import plot_cells
from mappa_rl.bench.report import cell_rows, markdown, read_cells
from mappa_rl.bench.summary import CellSummary, against, contrasts, difference, pareto_front
from mappa_rl.errors import EvaluationError
from mappa_rl.evaluation.records import EpisodeRecord
from mappa_rl.evaluation.stats import mean_interval

BASE = Cell("maths", "chain", "base", None)
TRAINED = Cell("maths", "chain", "trained", "reinforce_pp")


def cell(
    name: Cell, wins: Sequence[int] = (1, 0), tokens: float = 100, *, episodes: int = 1, tasks: str = "t"
) -> CellSummary:
    shares = [w / episodes for w in wins]
    return CellSummary(
        cell=name,
        scripted=name.policy == "oracle",
        tasks_sha256=tasks,
        success=mean_interval(shares),
        by_seed={"0": sum(shares) / len(shares)},
        by_task={f"task-{i}": (w, episodes) for i, w in enumerate(wins)},
        undecided=0,
        lost=0,
        cost=EpisodeCost(3, tokens * 0.75, tokens * 0.25, 0, 0, 0, 0.5),
        train_seconds=None,
    )


def test_costs_are_means_over_finished_episodes() -> None:
    def turn(index: int, calls: int) -> Turn:
        verdict = Verdict.ok(5, "", "j", Cost(calls=calls, prompt_tokens=10, completion_tokens=2, money=0.5))
        return Turn(index, index, "a_0", "a", (), "text", (), verdict)

    def episode(*calls: int) -> EpisodeRecord:
        turns = tuple(turn(i, n) for i, n in enumerate(calls))
        transcript = Transcript("e", "chain", "t", "k", 0, None, turns, Outcome(True, 1.0, ""))
        tokens = tuple(10 * (i + 1) for i in range(len(calls)))
        return EpisodeRecord(0, 0, transcript, (False,) * len(calls), tokens, (7,) * len(calls))

    lost = EpisodeRecord(1, 0, None, failure="gone")
    cost = episode_cost([episode(1, 2), lost, episode(4)], seconds=1.5)
    assert cost == EpisodeCost(
        actions=1.5,
        prompt_tokens=(30 + 10) / 2,
        response_tokens=(14 + 7) / 2,
        judge_calls=3.5,
        judge_tokens=18.0,
        judge_money=0.75,
        seconds=1.5,
    )
    assert cost.tokens == 30.5
    other = replace(cost, actions=2.5, seconds=None)
    assert mean_cost([cost, other]) == replace(cost, actions=2.0)
    assert mean_cost([other]).seconds is None


def test_only_cells_that_differ_in_one_thing_are_compared() -> None:
    debate = replace(BASE, topology="debate")
    grpo = replace(TRAINED, algorithm="grpo")
    assert difference(BASE, debate) == ("topology", "maths / base", "chain", "debate")
    assert difference(BASE, TRAINED) == ("policy", "maths / chain", "base", "trained / reinforce_pp")
    assert difference(TRAINED, grpo) == ("algorithm", "maths / chain / trained", "reinforce_pp", "grpo")
    assert difference(debate, TRAINED) is None
    assert difference(replace(grpo, topology="debate"), TRAINED) is None
    assert difference(replace(grpo, policy="other"), TRAINED) is None
    assert difference(BASE, replace(BASE, environment="data")) is None


def test_contrasts_put_the_better_cell_first_and_adjust_for_their_number() -> None:
    cells = [
        cell(BASE, [0] * 8),
        cell(replace(BASE, topology="debate"), [1] * 8),
        cell(replace(BASE, topology="solo"), [1, 0, 0, 0, 0, 0, 0, 0]),
        cell(replace(BASE, policy="oracle"), [1] * 8),
    ]
    by_pair = {(c.first, c.second): c for c in contrasts(cells)}
    assert set(by_pair) == {("debate", "chain"), ("solo", "chain"), ("debate", "solo")}
    # Sign-flip tests: 8 of 8 differ one way, 2 of 2^8 patterns as far out; 1 of 1, 2 of 2; 7 of 7, 2 of 2^7.
    assert [by_pair[p].paired.p_value for p in by_pair] == pytest.approx([2 / 256, 1.0, 2 / 128])
    assert [by_pair[p].p_holm for p in by_pair] == pytest.approx([6 / 256, 1.0, 4 / 128])
    assert by_pair["debate", "chain"].paired.difference.mean == 1.0


def test_an_older_benchmark_is_compared_cell_by_cell() -> None:
    gone, other_tasks = replace(BASE, topology="solo"), replace(BASE, topology="star")
    old = [cell(BASE, [0, 0, 0, 0]), cell(gone), cell(other_tasks, tasks="t1")]
    new = [cell(BASE, [1, 1, 1, 0]), cell(TRAINED), cell(other_tasks, tasks="t2")]
    made, notes = against(new, old)
    assert [(c.what, c.where, c.first, c.second) for c in made] == [("benchmark", str(BASE), "new", "old")]
    assert made[0].paired.difference.mean == 0.75
    assert notes == [
        "maths / chain / trained / reinforce_pp: only in the new benchmark",
        "maths / star / base: played on other tasks, so not compared",
        "maths / solo / base: only in the old benchmark",
    ]


def test_the_front_holds_what_no_cell_beats() -> None:
    points = {"a": (0, 10), "b": (2, 50), "c": (1, 60), "d": (3, 90), "dear": (3, 95), "tie": (2, 50)}
    cells = [cell(replace(BASE, topology=n), [1] * w + [0] * (4 - w), tokens) for n, (w, tokens) in points.items()]
    cells.append(cell(replace(BASE, policy="oracle"), [1] * 4, 0))
    assert [c.cell.topology for c in pareto_front(cells)] == ["a", "b", "d"]
    assert pareto_front([]) == []


def test_summaries_survive_json_and_other_files_are_refused(tmp_path: Path) -> None:
    one = cell(TRAINED, [2, 1, 0], episodes=2)
    assert CellSummary.from_json(json.loads(json.dumps(one.to_json()))) == one
    path = tmp_path / "bench.json"
    for text in ("[1", "[]", '{"format": 99, "cells": []}', '{"format": 1, "cells": [{"cell": {}}]}'):
        path.write_text(text)
        with pytest.raises(EvaluationError):
            read_cells(path)
    with pytest.raises(EvaluationError, match="cannot be read"):
        read_cells(tmp_path / "missing.json")


def test_the_table_shows_only_axes_that_vary() -> None:
    rows = cell_rows([cell(BASE, [1, 1, 0, 0]), cell(replace(BASE, topology="debate"), [1, 0, 0, 0])])
    assert rows[0][:3] == ["topology", "success %", "95 % interval"]
    assert [row[:2] + row[-1:] for row in rows[1:]] == [["chain", "50.0", "front"], ["debate", "25.0", ""]]
    assert [row[4:9] for row in rows[1:]] == [["3.0", "75", "25", "0.0", "0.50"]] * 2
    lines = markdown([["a", "b"], ["x|y", "z"]]).splitlines()
    assert lines == ["| a    | b |", "|------|---|", "| x\\|y | z |"]


def test_the_picture_is_drawn_with_and_without_tokens(tmp_path: Path) -> None:
    cells = [
        cell(BASE),
        cell(TRAINED, tokens=300),
        cell(replace(BASE, policy="oracle"), [1, 1], 0),
        cell(replace(BASE, environment="data", policy="oracle"), [1, 1], 0),
    ]
    plot_cells(tmp_path / "p.png", cells)
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
