"""Where a run's numbers go: a JSONL file, and TensorBoard."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class MetricsWriter:
    """Appends records to `metrics.jsonl` and their numbers to TensorBoard event files in `tensorboard/`.

    Args:
        run_dir: The run's folder.
        keep_until: When a run goes on from a checkpoint, records after this step are dropped first.
    """

    def __init__(self, run_dir: Path, *, keep_until: int | None = None) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.path = run_dir / "metrics.jsonl"
        self.records: list[dict[str, Any]] = []
        if keep_until is not None and self.path.exists():
            lines = [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]
            self.records = [record for record in lines if record["step"] <= keep_until]
        self.path.write_text("".join(json.dumps(r) + "\n" for r in self.records), encoding="utf-8")
        self._board = SummaryWriter(str(run_dir / "tensorboard"), purge_step=keep_until)

    def write(self, record: Mapping[str, Any]) -> None:
        """Append one record; it must hold `step`."""
        self.records.append(dict(record))
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(dict(record)) + "\n")
        for key, value in record.items():
            if isinstance(value, int | float) and key != "step":
                self._board.add_scalar(key, value, record["step"])
        self._board.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._board.close()
