"""A run's folder: what is in it, whether a run may start or go on in it, and what is cut back when it goes on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mappa_rl.config import TrainConfig, dump_config, load_config
from mappa_rl.errors import CheckpointError, ConfigError
from mappa_rl.evaluation.episode_log import differing_settings
from mappa_rl.evaluation.evaluate import Evaluation
from mappa_rl.evaluation.records import EpisodeRecord
from mappa_rl.evaluation.result import read_result, write_result
from mappa_rl.files import write_text

FREE = ("run_dir", "save_every", "keep_last", "keep_transcripts", "rollout.max_failed_share", "eval.patience")
"""Settings that a resumed run may change, and the budgets of its judge: no number depends on them."""


class RunFolder:
    """The files of one run, but for its checkpoints and metrics.

    Args:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def start(self, config: TrainConfig, *, resume: bool) -> None:
        """Make the folder, or check that the run in it is this one.

        A run that was stopped before it wrote anything, or before its first checkpoint, starts anew in its folder.

        Raises:
            ConfigError: If a new run's folder is in use, or a resumed run's settings differ from its own.
            CheckpointError: If there is no run to resume.
        """
        used = self.path.is_dir() and any(self.path.iterdir())
        if used and not resume:
            raise ConfigError(
                f"run folder {self.path} is not empty",
                expected="a new folder",
                fix="choose another run_dir, or resume the run in it",
            )
        settings = self.path / "config.yaml"
        if resume:
            if not self.path.is_dir() or (used and not settings.is_file()):
                raise CheckpointError(
                    f"no run to resume in {self.path}",
                    expected="a run folder with its config.yaml",
                    fix="check the folder, or start a new run",
                )
            if settings.is_file():
                _check_settings(config, load_config(TrainConfig, settings), self.path)
        self.path.mkdir(parents=True, exist_ok=True)

    def write_settings(self, config: TrainConfig) -> None:
        """Write `config.yaml`, which says that there is a run in the folder."""
        write_text(self.path / "config.yaml", dump_config(config))

    def cut_back(self, step: int) -> dict[int, Evaluation]:
        """Delete what was written after a step and return the evaluations up to it.

        Training starts from the step's checkpoint, so what came later is made again.
        """
        for path in [*self.path.glob("eval-*.json"), *(self.path / "transcripts").glob("*.jsonl")]:
            number = re.fullmatch(r"(?:eval|train)-(\d{6,})\.jsonl?", path.name)
            if number and int(number[1]) > step:
                path.unlink()
        kept = {int(path.stem.removeprefix("eval-")): path for path in sorted(self.path.glob("eval-??????*.json"))}
        return {number: read_result(path).evaluation for number, path in kept.items()}

    def write_evaluation(
        self, step: int, result: Evaluation, records: Sequence[EpisodeRecord], tasks_sha256: str
    ) -> None:
        """Write an evaluation and its transcripts; the result last, as the sign that it is complete."""
        self.write_transcripts("eval", step, records)
        write_result(self.path / f"eval-{step:06d}.json", result, {"step": step, "tasks_sha256": tasks_sha256})

    def write_transcripts(self, name: str, step: int, records: Sequence[EpisodeRecord]) -> None:
        """Write finished episodes as JSONL, one transcript a line."""
        lines = [json.dumps(r.transcript.to_json(), ensure_ascii=False) for r in records if r.transcript]
        write_text(self.path / "transcripts" / f"{name}-{step:06d}.jsonl", "".join(line + "\n" for line in lines))

    def write_curve(self, evaluations: Mapping[int, Evaluation]) -> None:
        """Write held-out success by step, one evaluation a line."""
        lines = [
            {
                "step": step,
                "success": one.success.mean,
                "low": one.success.low,
                "high": one.success.high,
                "scores": one.scores,
            }
            for step, one in sorted(evaluations.items())
        ]
        write_text(self.path / "evaluations.jsonl", "".join(json.dumps(line) + "\n" for line in lines))

    def write_json(self, name: str, data: Any) -> None:
        """Write plain data."""
        write_text(self.path / name, json.dumps(data, indent=2) + "\n")


def _check_settings(config: TrainConfig, own: TrainConfig, path: Path) -> None:
    differing = [
        (key, now, then)
        for key, now, then in differing_settings(config.model_dump(mode="json"), own.model_dump(mode="json"))
        if key not in FREE and not (key.startswith("env.kwargs.judge.") and key.endswith(".budget"))
    ]
    if differing:
        raise ConfigError(
            f"the settings differ from those of the run in {path}",
            expected=", ".join(f"{key}={then}" for key, _, then in differing),
            got=", ".join(f"{key}={now}" for key, now, _ in differing),
            fix=f"leave them out, or start a new run; only {', '.join(FREE)} and a judge's budget may change",
        )
