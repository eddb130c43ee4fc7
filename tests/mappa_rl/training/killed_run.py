"""Trains in child processes that are killed at given places, then resumes; run by `test_resume.py`.

Forking after the imports makes a run cost seconds less. A place is a number: the how-manieth event, where events are
forward passes of the model and operations on files of the run folder; the process dies before it.

    python killed_run.py count FOLDER                   train; print the events
    python killed_run.py kill FOLDER PLACE [PLACE]...   train, die there, resume, ...; then resume to the end
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from quick_team import quick_config
from torch.nn.modules.module import register_module_forward_pre_hook

import mappa_envs.envs.math_chat  # noqa: F401
from mappa_rl.policy.make import make_team  # noqa: F401
from mappa_rl.trainer import Trainer


class Events:
    """Notes events from now on, and kills the process at one."""

    def __init__(self, folder: Path, fatal: int | None) -> None:
        self.folder, self.fatal = str(folder), fatal
        self.seen: list[str] = []
        sys.addaudithook(self.on_audit)
        register_module_forward_pre_hook(self.on_forward)

    def on_audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "os.rename", "os.remove", "os.mkdir", "shutil.rmtree"):
            path = str(arguments[0])
            if path.startswith(self.folder) and "tensorboard" not in path:
                self.note(f"{event} {path.removeprefix(self.folder)}")

    def on_forward(self, module: Any, arguments: Any) -> None:
        if type(module).__name__ == "LlamaModel":
            self.note("forward")

    def note(self, event: str) -> None:
        self.seen.append(event)
        if len(self.seen) == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)


def train(folder: Path, fatal: int | None) -> list[str]:
    events = Events(folder, fatal)
    Trainer(quick_config(), folder, resume=folder.exists()).run()
    return events.seen


def in_child(folder: Path, fatal: int | None) -> int:
    """Return the exit status of a child that trains."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            train(folder, fatal)
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


def main() -> None:
    mode, folder, places = sys.argv[1], Path(sys.argv[2]), [int(place) for place in sys.argv[3:]]
    if mode == "count":
        print(json.dumps(train(folder, None)))
        return
    for place in places:
        status = in_child(folder, place)
        if not os.WIFSIGNALED(status):
            sys.exit(f"the run did not die at event {place}: status {status}")
    if in_child(folder, None) != 0:
        sys.exit("the resumed run failed")


main()
