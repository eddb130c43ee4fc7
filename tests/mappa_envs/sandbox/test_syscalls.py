"""System calls that change this process, each tried in a process of its own."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

COLLAPSE = """
import os, re
from mappa_envs.sandbox import syscalls

def huge() -> int:
    with open("/proc/self/smaps_rollup") as file:
        return int(re.search(r"AnonHugePages: +(\\d+) kB", file.read()).group(1)) * 1024

# From `bytes`, so that no page of it is the shared zero page.
block = bytearray(os.urandom(1 << 16) * 256)
known, before = hash(bytes(block)), huge()
done = syscalls.collapse_memory()
assert hash(bytes(block)) == known
print(done, huge() - before)
"""


def test_memory_is_put_on_huge_pages_and_keeps_its_content() -> None:
    run = subprocess.run([sys.executable, "-c", COLLAPSE], capture_output=True, text=True, check=True)
    done, gained = map(int, run.stdout.split())
    if not done:
        pytest.skip(f"Linux {platform.release()} has no huge pages for it: that costs time and changes nothing else")
    assert 0 < gained <= done and done % (2 << 20) == 0
