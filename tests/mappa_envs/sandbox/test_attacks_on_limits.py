"""Cells that use too much: processes, memory, time, output, disk. Each row of the attack list is one test."""

from __future__ import annotations

import os
import time

import pytest
from conftest import SLACK, Box, eventually, processes_with

from mappa_envs import background
from mappa_envs.sandbox import Level
from mappa_envs.sandbox.doctor import LACKS

FORK_BOMB = """
import os, time
started = 0
try:
    while started < 500:
        if os.fork() == 0:
            os.execv('/bin/sleep', ['sleep', '{marker}'])
        started += 1
except OSError as error:
    print('stopped', type(error).__name__)
"""


def test_a_fork_bomb_is_stopped_and_leaves_nothing_behind(box: Box) -> None:
    marker = "12345.678"
    with box.episode(agents=2) as (_, kernel, sibling):
        bomb = background.run(kernel.execute(FORK_BOMB.format(marker=marker)))
        if box.level == Level.LANDLOCK and os.getuid() != 0:
            assert any("a count of processes of their own" in lack for lack in LACKS[Level.LANDLOCK])
            assert eventually(lambda: not kernel.alive and not processes_with(marker))
            run_true = "import subprocess; subprocess.run(['true']).returncode"
            assert background.run(sibling.execute(run_true)).output == "0\n"
            return
        assert "stopped BlockingIOError" in bomb.output
        assert 0 < len(processes_with(marker)) <= box.config.max_processes + 12
        assert background.run(kernel.execute("1 + 1")).output == "2\n"
        assert background.run(sibling.execute("import subprocess; subprocess.run(['true']).returncode")).output == "0\n"
    assert eventually(lambda: not processes_with(marker))


def test_a_memory_bomb_is_a_memory_error_and_the_kernel_lives(box: Box) -> None:
    bomb = "hoard = []\nwhile True: hoard.append(bytearray(10_000_000))"
    with box.episode(agents=2) as (_, kernel, sibling):
        assert background.run(kernel.execute(bomb)).error_name == "MemoryError"
        assert background.run(kernel.execute("del hoard; 1 + 1")).output == "2\n"
        assert background.run(sibling.execute("len(bytearray(10_000_000))")).output == "10000000\n"


def test_memory_spread_over_processes_kills_the_kernel_and_says_why(box: Box) -> None:
    spread = """
import os, time
for _ in range(6):
    if os.fork() == 0:
        hoard = bytearray(os.urandom(1)) * 150_000_000
        time.sleep(60)
time.sleep(60)
"""
    with box.episode(agents=2) as (_, kernel, sibling):
        result = background.run(kernel.execute(spread, timeout=20))
        assert result.status == "died"
        assert "more than 400 MiB of memory" in result.output
        assert not kernel.alive
        assert background.run(sibling.execute("1 + 1")).output == "2\n"


def test_memory_that_counts_against_no_limit_is_refused(box: Box) -> None:
    result = box.cell("import os\nos.memfd_create('hoard')")
    assert result.error_name == "PermissionError"


def test_an_endless_loop_is_interrupted_and_its_state_is_kept(box: Box) -> None:
    with box.episode() as (_, kernel):
        background.run(kernel.execute("state = 7"))
        result = background.run(kernel.execute("print('before')\nwhile True: pass", timeout=1))
        assert result.status == "timeout"
        assert result.output.startswith("before\n") and "KeyboardInterrupt" in result.output
        assert background.run(kernel.execute("state")).output == "7\n"


STUBBORN = """
import time
while True:
    try:
        while True: time.sleep(0.01)
    except BaseException: print('caught')
"""


@pytest.mark.parametrize(
    "code",
    [
        STUBBORN,
        "sum(range(10**11))",
        "import re; re.match('(a*)*b', 'a' * 40)",
        "10**10**9",
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
        "import ctypes; ctypes.PyDLL(None).sleep(60)",
    ],
)
def test_what_ignores_the_interrupt_is_killed_within_the_deadline_and_the_workspace_survives(
    box: Box, code: str
) -> None:
    with box.episode() as (space, kernel):
        background.run(kernel.execute("open('kept.txt', 'w').write('kept')"))
        started = time.monotonic()
        result = background.run(kernel.execute(f"print('begun', flush=True)\n{code}", timeout=1))
        assert time.monotonic() - started < 1 + box.config.grace + SLACK
        assert result.status in ("timeout_killed", "timeout")
        assert result.output.startswith("begun\n")
        if code is STUBBORN:
            assert result.status == "timeout_killed" and not kernel.alive
        assert background.run(space.read("kept.txt", 100)) == b"kept"
        fresh = background.run(box.sandbox.kernel(space))
        assert background.run(fresh.execute("open('kept.txt').read()")).output == "'kept'\n"
        background.run(fresh.close())


def test_two_hundred_megabytes_of_output_keep_head_and_tail_and_say_what_is_gone(box: Box) -> None:
    result = box.cell("for i in range(200_000): print(i, 'x' * 992)", timeout=30)
    assert result.status == "ok"
    assert result.output.startswith("0 xxx") and result.output.endswith("x\n") and "\n199999 x" in result.output
    assert len(result.output) < box.config.output_chars + 100
    assert result.dropped_chars > 190_000_000
    assert f"[... {result.dropped_chars} characters dropped ...]" in result.output


def test_ten_thousand_flushed_writes_all_arrive_or_are_counted(box: Box) -> None:
    result = box.cell("for i in range(10_000): print(i, flush=True)", timeout=20)
    assert result.status == "ok"
    assert result.output.startswith("0\n1\n2\n") and result.output.endswith("\n9998\n9999\n")
    everything = sum(len(f"{i}\n") for i in range(10_000))
    marker = len(f"\n[... {result.dropped_chars} characters dropped ...]\n")
    assert len(result.output) - marker + result.dropped_chars == everything


def test_two_thousand_chunks_from_another_program_do_not_wedge_the_pipe(box: Box) -> None:
    result = box.cell(
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-S', '-c', 'for i in range(2000): print(\"y\" * 99, flush=True)'])\n'done'",
        timeout=20,
    )
    assert result.status == "ok" and result.output.endswith("'done'\n")
    assert result.dropped_chars > 100_000


def test_one_large_file_is_refused(box: Box) -> None:
    result = box.cell("with open('large', 'wb') as f:\n    for _ in range(100): f.write(bytes(1_000_000))")
    assert result.error_name == "OSError"
    assert "File too large" in result.output or "No space left" in result.output


MANY_FILES = """
import time
for i in range(200):
    with open(f'part{i}', 'wb') as f: f.write(bytes(1_000_000))
    time.sleep(0.01)
"""


def test_many_files_run_into_the_size_of_the_workspace(box: Box) -> None:
    with box.episode() as (space, kernel):
        result = background.run(kernel.execute(MANY_FILES, timeout=20))
        if box.level == Level.FULL:
            assert result.error_name == "OSError" and "No space left" in result.output
            assert background.run(kernel.execute("1 + 1")).output == "2\n"
        else:
            assert any("a size limit on the workspace" in lack for lack in LACKS[box.level])
            assert result.status == "died" and "the workspace grew over 24 MiB" in result.output
        used = sum(info.size for info in background.run(space.files()))
        assert used < 3 * box.config.disk_mb * 2**20


def test_private_folders_and_shared_memory_are_limited_too(full: Box) -> None:
    code = """
import os, tempfile
def fill(folder):
    try:
        for i in range(200):
            with open(f'{folder}/part{i}', 'wb') as f: f.write(bytes(1_000_000))
    except OSError as error:
        return error.strerror
folders = (os.environ['HOME'], tempfile.gettempdir(), '/tmp', '/dev/shm')
print(*(fill(folder) for folder in folders), sep='; ')
"""
    refusals = full.cell(code, timeout=10).output.rstrip("\n").split("; ")
    # Where the interpreter itself lies beneath /tmp, that folder is not the kernel's own but read-only.
    in_tmp = "No space left on device" if full.sandbox._layout.tmp_is_free else "Permission denied"
    assert refusals == ["No space left on device"] * 2 + [in_tmp] + ["No space left on device"]


def test_many_small_files_run_into_the_number_of_files(full: Box) -> None:
    code = "for i in range(100_000): open(f'f{i}', 'w').close()"
    result = full.cell(code, timeout=20)
    assert result.error_name == "OSError" and "No space left" in result.output


def test_open_files_are_limited(box: Box) -> None:
    result = box.cell("hoard = []\nfor i in range(1000): hoard.append(open('/dev/null'))")
    assert result.error_name == "OSError" and "Too many open files" in result.output


def test_five_megabytes_of_exception_text_are_cut_and_quick(box: Box) -> None:
    result = box.cell("raise ValueError('z' * 5_000_000)")
    assert result.status == "error" and result.error_name == "ValueError"
    assert result.dropped_chars > 0 and len(result.output) < box.config.output_chars + 100


def test_a_recursion_error_is_reported_within_the_timeout(box: Box) -> None:
    result = box.cell("def f(): return f()\nf()")
    assert result.status == "error" and result.error_name == "RecursionError"


def test_an_exception_that_cannot_be_printed_is_still_an_error(box: Box) -> None:
    result = box.cell("class Bad(Exception):\n    def __str__(self): raise ValueError\nraise Bad")
    assert result.status == "error" and result.error_name == "Bad"


def test_twenty_five_figures_are_capped_and_the_cap_is_said(full: Box) -> None:
    code = "import matplotlib.pyplot as plt\nfor _ in range(25): plt.figure(); plt.plot([1, 2])\n"
    result = full.cell(code, timeout=20)
    assert result.status == "ok"
    assert len(result.images) == 8 and all(image.data.startswith(b"\x89PNG") for image in result.images)
    assert "17 image(s) dropped" in result.output


def test_a_picture_that_is_none_is_dropped(full: Box) -> None:
    code = """
import base64, struct
from IPython.display import display
huge = b'\\x89PNG\\r\\n\\x1a\\n' + struct.pack('>I4sII', 13, b'IHDR', 10**6, 10**6) + bytes(20)
for data in (b'GIF89a', huge, b'\\x89PNG\\r\\n\\x1a\\n'):
    display({'image/png': base64.b64encode(data).decode()}, raw=True)
display({'image/png': 'not base64 %'}, raw=True)
"""
    result = full.cell(code)
    assert result.images == () and "4 image(s) dropped" in result.output


def test_the_interrupt_of_one_cell_never_lands_in_the_next(box: Box) -> None:
    with box.episode() as (space, kernel):
        for late in (0.29, 0.295, 0.3, 0.301, 0.302, 0.305, 0.31):
            background.run(kernel.execute(f"import time; time.sleep({late})", timeout=0.3))
            if not kernel.alive:  # a busy machine may be too slow for the grace
                background.run(kernel.close())
                kernel = background.run(box.sandbox.kernel(space))
            after = background.run(kernel.execute("for i in range(100_000): pass\n'fine'"))
            assert (after.status, after.output) == ("ok", "'fine'\n")
        background.run(kernel.close())


def test_the_timeout_given_is_the_timeout_used(box: Box) -> None:
    result = box.cell("import time; time.sleep(3.3); 'slept'", timeout=5)
    assert result.output == "'slept'\n"


def test_pip_install_fails_fast(box: Box) -> None:
    result = box.cell(
        "import subprocess, sys; subprocess.run([sys.executable, '-m', 'pip', 'install', 'x']).returncode", timeout=20
    )
    assert result.status == "ok" and not result.output.endswith("\n0\n")
