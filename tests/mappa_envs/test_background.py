from __future__ import annotations

import subprocess
import sys

AT_EXIT = """
import asyncio, atexit
from mappa_envs import background

async def late():
    print(await asyncio.to_thread(max, 1, 2))
    try:
        await asyncio.to_thread(int, "x")
    except ValueError as error:
        print(type(error).__name__)

atexit.register(lambda: background.run(late()))
background.run(asyncio.sleep(0))
"""


def test_threads_are_to_be_had_until_the_interpreter_is_gone() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", AT_EXIT], capture_output=True, text=True, timeout=120)
    assert (done.stdout.split(), done.stderr) == (["2", "ValueError"], "")
