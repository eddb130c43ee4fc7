from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from mappa_rl.report.metrics import MetricsWriter


def record(step: int) -> dict[str, Any]:
    return {"step": step, "success": step / 10, "scores/a_0": [1, 0, step]}


def test_numbers_and_histograms_reach_tensorboard(tmp_path: Path) -> None:
    with MetricsWriter(tmp_path) as writer:
        writer.write(record(1))
        writer.write(record(2))
        writer.show({"step": 0, "eval/success": 0.25})
    assert [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()] == [
        record(1),
        record(2),
    ]
    board = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(event.step, round(event.value, 6)) for event in board.Scalars("success")] == [(1, 0.1), (2, 0.2)]
    assert [(event.step, event.value) for event in board.Scalars("eval/success")] == [(0, 0.25)]
    assert "step" not in board.Tags()["scalars"]
    last = board.Histograms("scores/a_0")[-1].histogram_value
    assert (last.num, last.sum, last.bucket_limit, last.bucket) == (3, 0.5 + 2 * 2.5, [1, 2, 3], [1, 0, 2])


def test_a_resumed_run_drops_later_records_and_a_torn_line(tmp_path: Path) -> None:
    with MetricsWriter(tmp_path) as writer:
        for step in (1, 2, 3):
            writer.write(record(step))
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "succ')
    with MetricsWriter(tmp_path, keep_until=2) as writer:
        assert writer.records == [record(1), record(2)]
        writer.write(record(3))
    assert [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()] == [
        record(1),
        record(2),
        record(3),
    ]
    board = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [event.step for event in board.Scalars("success")] == [1, 2, 3]
