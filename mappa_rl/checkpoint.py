"""Checkpoints: weights, optimisers, the step. A crash leaves the last one whole; damage is found before loading."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.optim import Optimizer

from mappa_rl.errors import CheckpointError, CheckpointWarning
from mappa_rl.files import write_folder
from mappa_rl.policy.team import Team

STATE_FILE = "state.json"
CHECKSUMS_FILE = "checksums.json"


def checkpoint_folder(run_dir: Path, step: int) -> Path:
    """Return where the checkpoint after `step` training steps lives."""
    return run_dir / "checkpoints" / f"step-{step:06d}"


def checkpoint_steps(run_dir: Path) -> list[int]:
    """Return the steps that have a checkpoint, in order."""
    names = [re.fullmatch(r"step-(\d{6,})", path.name) for path in (run_dir / "checkpoints").glob("step-*")]
    return sorted(int(name[1]) for name in names if name)


def save_checkpoint(folder: Path, team: Team, optimizers: Mapping[str, Optimizer], state: Mapping[str, Any]) -> None:
    """Write a checkpoint; it appears under its name only when it is complete and on disk.

    Args:
        folder: Final place; replaced if it exists.
        team: Its learners' weights are written to `adapters/<learner>/`.
        optimizers: One per learner.
        state: JSON data, e.g. the step.
    """

    def fill(place: Path) -> None:
        team.save(place / "adapters")
        torch.save({learner: opt.state_dict() for learner, opt in optimizers.items()}, place / "optimizers.pt")
        (place / STATE_FILE).write_text(json.dumps(dict(state), indent=2) + "\n", encoding="utf-8")
        (place / CHECKSUMS_FILE).write_text(json.dumps(_checksums(place), indent=2) + "\n", encoding="utf-8")

    write_folder(folder, fill)


def load_checkpoint(folder: Path, team: Team, optimizers: Mapping[str, Optimizer]) -> dict[str, Any]:
    """Load weights and optimisers in place and return the state.

    Raises:
        CheckpointError: If the checkpoint is damaged or belongs to another team.
    """
    check_checkpoint(folder)
    states = torch.load(folder / "optimizers.pt", map_location=team.device, weights_only=True)
    if set(states) != set(optimizers):
        raise CheckpointError(
            f"checkpoint {folder} is of another team",
            expected=", ".join(sorted(optimizers)),
            got=", ".join(sorted(states)),
            fix="resume with the settings of the run",
        )
    team.load(folder / "adapters")
    for learner, optimizer in optimizers.items():
        optimizer.load_state_dict(states[learner])
    state: dict[str, Any] = json.loads((folder / STATE_FILE).read_text(encoding="utf-8"))
    return state


def load_newest(run_dir: Path, team: Team, optimizers: Mapping[str, Optimizer]) -> dict[str, Any] | None:
    """Load the newest checkpoint of a run that is not damaged and return its state, or None if there is none yet.

    Every damaged one is named by a `CheckpointWarning`.

    Raises:
        CheckpointError: If all of them are damaged, or the checkpoint belongs to another team.
    """
    folders = [checkpoint_folder(run_dir, step) for step in reversed(checkpoint_steps(run_dir))]
    damage: list[str] = []
    for folder in folders:
        try:
            check_checkpoint(folder)
        except CheckpointError as error:
            damage.append(str(error))
            continue
        for text in damage:
            warnings.warn(f"{text}\n  the run goes on from {folder.name}", CheckpointWarning, stacklevel=2)
        return load_checkpoint(folder, team, optimizers)
    if damage:
        raise CheckpointError(
            f"all checkpoints of {run_dir} are damaged",
            expected="at least one whole checkpoint",
            got="; ".join(text.replace("\n", " ") for text in damage),
            fix=f"restore one, or delete {run_dir / 'checkpoints'} to start anew",
        )
    return None


def check_checkpoint(folder: Path) -> None:
    """Compare a checkpoint with its checksums.

    Raises:
        CheckpointError: If a file is missing or is not what was written; names it.
    """
    try:
        expected = json.loads((folder / CHECKSUMS_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"checkpoint {folder} is damaged",
            expected=f"a readable {CHECKSUMS_FILE}",
            got=str(error).split("\n")[0],
        ) from error
    found = _checksums(folder)
    wrong = sorted(name for name, digest in expected.items() if found.get(name) != digest)
    if wrong:
        missing = [name for name in wrong if name not in found]
        raise CheckpointError(
            f"checkpoint {folder} is damaged",
            expected=f"the files that {CHECKSUMS_FILE} lists",
            got=f"missing: {', '.join(missing)}" if missing else f"other contents in {', '.join(wrong)}",
        )


def prune_checkpoints(run_dir: Path, *, last: int, keep: Collection[int]) -> None:
    """Delete all checkpoints but the `last` newest and those after the steps of `keep`."""
    for step in checkpoint_steps(run_dir)[:-last]:
        if step not in keep:
            shutil.rmtree(checkpoint_folder(run_dir, step))


def _checksums(folder: Path) -> dict[str, str]:
    digests = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != CHECKSUMS_FILE:
            with path.open("rb") as file:
                digests[path.relative_to(folder).as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests
