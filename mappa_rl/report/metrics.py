"""Where a run's numbers go: a JSONL file, and TensorBoard."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mappa_rl.files import write_text


class MetricsWriter:
    """Appends records to `metrics.jsonl`, and their numbers and histograms to TensorBoard files in `tensorboard/`.

    Args:
        run_dir: The run's folder.
        keep_until: Records after this step are dropped first: the run goes on from its checkpoint.
    """

    def __init__(self, run_dir: Path, *, keep_until: int = 0) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.path = run_dir / "metrics.jsonl"
        self.records = [record for record in _read(self.path) if record["step"] <= keep_until]
        write_text(self.path, "".join(json.dumps(r) + "\n" for r in self.records))
        self._board = SummaryWriter(str(run_dir / "tensorboard"), purge_step=keep_until + 1)

    def write(self, record: Mapping[str, Any]) -> None:
        """Append one record, which is on disk when this returns.

        Args:
            record: Holds `step`; numbers by name, and as lists the counts of histograms whose bins are one wide.
        """
        self.records.append(dict(record))
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(dict(record)) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.show(record)

    def show(self, record: Mapping[str, Any]) -> None:
        """Send a record to TensorBoard alone."""
        for key, value in record.items():
            if isinstance(value, list):
                self._histogram(key, value, record["step"])
            elif isinstance(value, int | float) and key != "step":
                self._board.add_scalar(key, value, record["step"])
        self._board.flush()

    def _histogram(self, key: str, counts: Sequence[int], step: int) -> None:
        middles = [i + 0.5 for i in range(len(counts))]
        self._board.add_histogram_raw(
            key,
            min=0,
            max=len(counts),
            num=sum(counts),
            sum=sum(c * m for c, m in zip(counts, middles, strict=True)),
            sum_squares=sum(c * m * m for c, m in zip(counts, middles, strict=True)),
            bucket_limits=[i + 1 for i in range(len(counts))],
            bucket_counts=list(counts),
            global_step=step,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._board.close()


def _read(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file up to the first line that a crash has torn."""
    records: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            records.append(json.loads(line))
        except ValueError:
            break
    return records
