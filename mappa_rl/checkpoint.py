"""Checkpoints: adapters in PEFT's format, optimisers, the step; a crash leaves the last one whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch.optim import Optimizer

from mappa_rl.errors import CheckpointError
from mappa_rl.policy.lora_team import LoraTeam

STATE_FILE = "state.json"


def checkpoint_folder(run_dir: Path, step: int) -> Path:
    """Return where the checkpoint after `step` optimiser steps lives."""
    return run_dir / "checkpoints" / f"step-{step:06d}"


def latest_checkpoint(run_dir: Path) -> Path | None:
    """Return the newest complete checkpoint of a run, or None."""
    found = sorted((run_dir / "checkpoints").glob("step-??????"))
    return next((folder for folder in reversed(found) if (folder / STATE_FILE).is_file()), None)


def save_checkpoint(
    folder: Path, team: LoraTeam, optimizers: Mapping[str, Optimizer], state: Mapping[str, Any]
) -> None:
    """Write a checkpoint; it appears under its name only when it is complete.

    Args:
        folder: Final place; replaced if it exists.
        team: Its adapters are written to `adapters/<agent>/`.
        optimizers: One per agent.
        state: JSON data, e.g. the step.
    """
    unfinished = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    team.save(unfinished / "adapters")
    torch.save({agent: opt.state_dict() for agent, opt in optimizers.items()}, unfinished / "optimizers.pt")
    (unfinished / STATE_FILE).write_text(json.dumps(dict(state), indent=2) + "\n", encoding="utf-8")
    for path in sorted(unfinished.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)


def load_checkpoint(folder: Path, team: LoraTeam, optimizers: Mapping[str, Optimizer]) -> dict[str, Any]:
    """Load adapters and optimisers in place and return the state.

    Raises:
        CheckpointError: If a file is missing, unreadable, or belongs to another team.
    """
    team.load(folder / "adapters")
    try:
        states = torch.load(folder / "optimizers.pt", map_location=team.device, weights_only=True)
        state: dict[str, Any] = json.loads((folder / STATE_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RuntimeError, EOFError) as error:
        raise CheckpointError(
            f"checkpoint {folder} cannot be read",
            got=str(error).split("\n")[0],
            fix="use an earlier checkpoint",
        ) from error
    if set(states) != set(optimizers):
        raise CheckpointError(
            f"checkpoint {folder} is of another team",
            expected=", ".join(sorted(optimizers)),
            got=", ".join(sorted(states)),
        )
    for agent, optimizer in optimizers.items():
        optimizer.load_state_dict(states[agent])
    return state
