"""Files and folders that are whole or not there, whenever the process or the machine stops."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

UNFINISHED = ".unfinished"


def write_text(path: Path, text: str) -> None:
    """Write or replace a text file (UTF-8); it is on disk when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + UNFINISHED)
    with unfinished.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)
    _sync(path.parent)


def write_folder(folder: Path, fill: Callable[[Path], None]) -> None:
    """Write or replace a folder; it is on disk when this returns.

    Args:
        folder: Its place.
        fill: Writes the contents into the folder that it is given.
    """
    unfinished = folder.with_name(folder.name + UNFINISHED)
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    fill(unfinished)
    for path in [*unfinished.rglob("*"), unfinished]:
        _sync(path)
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)
    _sync(folder.parent)


def _sync(path: Path) -> None:
    if path.is_dir() and os.name != "posix":
        return  # folders cannot be opened there
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
