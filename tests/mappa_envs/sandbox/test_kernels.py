"""What a well-meant cell can expect, at every level; and the public bug reports about kernels."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from conftest import Box, eventually, open_box

from mappa_envs import background
from mappa_envs.errors import SandboxError
from mappa_envs.sandbox import Level, SandboxConfig
from mappa_envs.sandbox.doctor import LACKS

ROOT = str(Path(__file__).parents[3])


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("1 + 1", "2\n"),
        ("print('a'); 'b'", "a\n'b'\n"),
        ("print('a', end=''); 'b'", "a\n'b'\n"),
        ("import math; math.floor(2.5)", "2\n"),
        ("from math import *\nround(pi, 3)", "3.142\n"),
        ("import numpy as np; int(np.arange(4).sum())", "6\n"),
        ("import pandas as pd; pd.DataFrame({'a': [1]})", "   a\n0  1\n"),
        ("import sympy; sympy.factor(sympy.sympify('x**2-1'))", "(x - 1)*(x + 1)\n"),
        ("from sklearn.tree import *\nint(DecisionTreeClassifier().fit([[0], [1]], [0, 1]).predict([[1]])[0])", "1\n"),
        ("import sklearn.svm, sklearn.cluster, sqlite3, decimal; 'lazy imports'", "'lazy imports'\n"),
        ("import sys; print('err', file=sys.stderr)", "err\n"),
        ("import os; os.system('echo from a shell'); None", "from a shell\n"),
        ("!echo from the magic", "from the magic\n"),
        ("x = !echo captured\nx[0]", "'captured'\n"),
        ("%%bash\necho from bash", "from bash\n"),
        ("import asyncio; await asyncio.sleep(0.01, 'awaited')", "'awaited'\n"),
        ("print('\\ud800 ok')\nprint('more')", "? ok\nmore\n"),
        ("raise ValueError('\\ud800')", "error"),
        ("None", ""),
        ("", ""),
        ("x = 5;", ""),
        ("def f(:\n", None),
    ],
)  # fmt: skip
def test_ordinary_cells(full: Box, code: str, output: str | None) -> None:
    result = full.cell(code)
    if output == "error":
        assert result.output.endswith("ValueError: ?\n")
    elif output is None:
        assert result.error_name == "SyntaxError"
    else:
        assert (result.status, result.output) == ("ok", output)


@pytest.mark.parametrize(
    "claim",
    [
        "get_ipython().kernel.shell is get_ipython()",
        "get_ipython().parent is get_ipython().kernel",
        "get_ipython().user_ns is get_ipython().kernel.user_ns is globals()",
        "get_ipython().kernel.session.pid == os.getpid()",
        "sys.stdout.session is sys.displayhook.session is get_ipython().display_pub.session",
        "[str(path) for path in _dh] == [get_ipython().starting_dir] == [os.environ['HOME']]",
        "get_ipython().profile_dir.location.startswith(get_ipython().ipython_dir + '/')",
        "get_ipython().ipython_dir.startswith(os.environ['HOME'])",
        "tempfile.gettempdir() == os.environ['TMPDIR']",
        "sys.modules['__main__'].__dict__ is globals() and __name__ == '__main__'",
        "'__mp_main__' not in sys.modules and 'mappa_envs.sandbox.zygote' not in sys.modules",
        "(get_ipython().execution_count, len(In)) == (3, 3)",
        "not [name for name in get_ipython().run_line_magic('who_ls', '') if name not in ('os', 'sys', 'tempfile')]",
    ],
)
def test_what_was_prepared_before_the_fork_became_the_kernels_own(box: Box, claim: str) -> None:
    result = box.cell("import os, sys, tempfile", claim)
    assert (result.status, result.output) == ("ok", "True\n")


def test_kernels_do_not_share_a_session_id(box: Box) -> None:
    code = "get_ipython().kernel.session.session, get_ipython().kernel.session.msg_id"
    assert box.cell(code).output != box.cell(code).output


def test_errors_carry_their_name_and_a_plain_traceback(box: Box) -> None:
    result = box.cell("print('before')\n1 / 0")
    assert (result.status, result.error_name) == ("error", "ZeroDivisionError")
    assert result.output.startswith("before\nTraceback") and result.output.endswith(
        "ZeroDivisionError: division by zero\n"
    )
    assert "\x1b" not in result.output


def test_a_figure_is_returned_as_png_and_text(box: Box) -> None:
    result = box.cell("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
    assert result.output == "<Figure size 640x480 with 1 Axes>\n"
    assert [image.mime for image in result.images] == ["image/png"]
    assert result.images[0].data.startswith(b"\x89PNG") and len(result.images[0].data) > 5000


def test_exact_bytes_and_exit_status_of_other_programs(box: Box) -> None:
    result = box.cell("!printf 'abcdefghij'; exit 7\n_exit_code")
    assert result.output == "abcdefghij\n7\n"
    long = box.cell("import os; status = os.system('for i in 1 2 3 4 5 6 7 8 9; do echo $i; done'); print(status >> 8)")
    assert sorted(long.output.split()) == sorted("1 2 3 4 5 6 7 8 9 0".split())


def test_output_of_another_program_does_not_run_into_the_next_cell(box: Box) -> None:
    with box.episode() as (_, kernel):
        first = background.run(kernel.execute("import os; os.system('seq 20000'); None"))
        second = background.run(kernel.execute("print('mine')"))
        assert first.output.startswith("1\n2\n") and first.output.endswith("20000\n")
        assert second.output == "mine\n"


def test_forked_children_may_print_and_compute(box: Box) -> None:
    code = """
import multiprocessing as mp
def square(x):
    print('child', x, flush=True)
    return x * x
with mp.get_context('fork').Pool(2) as pool:
    print(pool.map(square, [3]))
"""
    result = box.cell(code, timeout=15)
    if box.level == Level.LANDLOCK:
        assert result.error_name == "PermissionError"
        assert any("multiprocessing" in lack for lack in LACKS[Level.LANDLOCK])
        fork = "import os, time\nif os.fork() == 0:\n    print('child', flush=True); os._exit(0)\n"
        assert box.cell(fork + "os.wait(); time.sleep(0.3)").output == "child\n"
    else:
        assert "child 3\n" in result.output and "[9]\n" in result.output


def test_files_of_the_workspace_can_be_imported_and_printing_imports_do_not_deadlock(box: Box) -> None:
    code = """
open('helper.py', 'w').write('''
import threading
lock = threading.Lock()
def work():
    with lock: print("thread")
threads = [threading.Thread(target=work) for _ in range(4)]
with lock: print("importing")
[t.start() for t in threads]; [t.join() for t in threads]
value = 42
''')
import helper
helper.value
"""
    result = box.cell(code)
    assert result.output.startswith("importing\n") and result.output.endswith("42\n")
    assert result.output.count("thread\n") == 4


def test_fresh_kernels_draw_different_random_numbers_and_a_seed_makes_them_equal(full: Box) -> None:
    code = "import random, numpy; (random.random(), numpy.random.rand())"
    assert len({full.cell(code).output for _ in range(8)}) == 8
    seeded = open_box(Level.FULL, seed=7)
    try:
        assert len({seeded.cell(code).output for _ in range(3)}) == 1
    finally:
        background.run(seeded.sandbox.close())


def test_hash_order_is_the_same_in_every_kernel(full: Box) -> None:
    assert len({full.cell("print({'a', 'b', 'c', 'd', 'e'}, hash('x'))").output for _ in range(2)}) == 1


def test_cells_of_one_kernel_queue_up(full: Box) -> None:
    async def two(kernel: object) -> list[str]:
        cells = (
            kernel.execute(f"import time; time.sleep(0.1); order = globals().get('order', []) + [{i}]; order")
            for i in range(3)
        )  # type: ignore[attr-defined]
        return [result.output for result in await asyncio.gather(*cells)]

    with full.episode() as (_, kernel):
        assert background.run(two(kernel)) == ["[0]\n", "[0, 1]\n", "[0, 1, 2]\n"]


def test_kernels_that_die_at_once_together_are_results_not_sandbox_errors(box: Box) -> None:
    async def many() -> list[str]:
        async def one() -> str:
            space = await box.sandbox.workspace()
            kernel = await box.sandbox.kernel(space)
            result = await kernel.execute("import os; os._exit(1)")
            await kernel.close()
            await space.close()
            return result.status

        return await asyncio.gather(*(one() for _ in range(8)))

    assert background.run(many()) == ["died"] * 8


def test_a_dead_or_closed_kernel_says_so_and_a_new_one_works(box: Box) -> None:
    with box.episode() as (space, kernel):
        background.run(kernel.execute("import os; os._exit(0)"))
        with pytest.raises(SandboxError, match="cannot run cells any more"):
            background.run(kernel.execute("1"))
        fresh = background.run(box.sandbox.kernel(space))
        assert background.run(fresh.execute("1")).output == "1\n"
        background.run(fresh.close())
        background.run(fresh.close())
        with pytest.raises(SandboxError, match="closed"):
            background.run(fresh.execute("1"))


def test_a_kernel_killed_by_the_system_in_mid_cell_ends_as_died(full: Box) -> None:
    async def killed(kernel: object) -> str:
        running = asyncio.ensure_future(kernel.execute("print('x', flush=True)\nwhile True: pass", timeout=60))  # type: ignore[attr-defined]
        await asyncio.sleep(0.3)
        kernel.process.signal(9)  # type: ignore[attr-defined]
        return (await asyncio.wait_for(running, 5)).output

    with full.episode() as (_, kernel):
        assert background.run(killed(kernel)) == "x\n[the Python process ended: killed by SIGKILL]\n"


def test_closing_a_busy_kernel_ends_its_cell_and_is_bounded(box: Box) -> None:
    async def closed(kernel: object) -> str:
        running = asyncio.ensure_future(kernel.execute("while True: pass", timeout=60))  # type: ignore[attr-defined]
        await asyncio.sleep(0.2)
        await asyncio.wait_for(kernel.close(), 8)  # type: ignore[attr-defined]
        return (await asyncio.wait_for(running, 5)).status

    with box.episode() as (_, kernel):
        assert background.run(closed(kernel)) == "died"


def test_cancelling_a_cell_ends_its_kernel(full: Box) -> None:
    async def cancelled(kernel: object) -> bool:
        running = asyncio.ensure_future(kernel.execute("while True: pass", timeout=60))  # type: ignore[attr-defined]
        await asyncio.sleep(0.2)
        running.cancel()
        await asyncio.wait({running})
        await asyncio.wait_for(asyncio.shield(kernel.process.exited), 5)  # type: ignore[attr-defined]
        return bool(kernel.alive)  # type: ignore[attr-defined]

    with full.episode() as (_, kernel):
        assert background.run(cancelled(kernel)) is False


def test_sockets_are_files_named_prefix_and_port_and_are_gone_afterwards(full: Box) -> None:
    with full.episode() as (_, kernel):
        folder = Path(kernel.process.prefix).parent
        assert {f"k-{port}" for port in (1, 2, 3, 4)} <= {path.name for path in folder.iterdir()}
        assert len(f"{kernel.process.prefix}-1") < 100
    assert not folder.exists()


def _descriptors_after(box: Box, rounds: int) -> tuple[int, int]:
    def used() -> int:
        return len(os.listdir("/proc/self/fd"))

    box.cell("1")
    assert eventually(lambda: not box.sandbox._server._processes)
    before = used()
    for _ in range(rounds):
        box.cell("1")
    assert eventually(lambda: used() <= before)
    sockets = list((box.sandbox._server.folder / "sockets").iterdir())
    assert sockets == []
    return before, used()


def test_descriptors_and_socket_files_return_to_their_number(box: Box) -> None:
    before, after = _descriptors_after(box, 8)
    assert after <= before


@pytest.mark.slow
def test_two_hundred_starts_and_stops_leave_no_descriptor_and_no_process(full: Box) -> None:
    processes = len(psutil.Process(full.sandbox._server._popen.pid).children(recursive=True))
    before, after = _descriptors_after(full, 200)
    assert after <= before
    tree = psutil.Process(full.sandbox._server._popen.pid)
    assert eventually(lambda: len(tree.children(recursive=True)) <= processes)


@pytest.mark.slow
def test_sixty_four_episodes_at_once(full: Box) -> None:
    async def episode(number: int) -> str:
        space = await full.sandbox.workspace()
        kernel = await full.sandbox.kernel(space)
        result = await kernel.execute(f"import pandas as pd; int(pd.Series([{number}]).sum())", timeout=30)
        await kernel.close()
        await space.close()
        return result.output

    async def all_of_them() -> list[str]:
        return await asyncio.gather(*(episode(number) for number in range(64)))

    assert background.run(all_of_them()) == [f"{number}\n" for number in range(64)]


def test_a_server_that_was_killed_is_replaced(_canary: None) -> None:
    box = open_box(Level.FULL)
    try:
        space = background.run(box.sandbox.workspace())
        kernel = background.run(box.sandbox.kernel(space))
        box.sandbox._server._popen.kill()
        box.sandbox._server._popen.wait()
        assert eventually(lambda: not kernel.alive)
        assert box.cell("1 + 1").output == "2\n"
        background.run(kernel.close())
        background.run(space.close())
    finally:
        background.run(box.sandbox.close())


def test_a_closed_sandbox_says_so_and_closing_twice_is_fine() -> None:
    box = open_box(Level.FULL)
    folder = box.sandbox._server.folder
    background.run(box.sandbox.close())
    background.run(box.sandbox.close())
    assert not folder.exists()
    with pytest.raises(SandboxError, match="closed"):
        background.run(box.sandbox.workspace())


def test_a_workspace_of_another_sandbox_is_refused(full: Box, landlocked: Box) -> None:
    with full.episode(agents=0) as (space,), pytest.raises(SandboxError, match="open workspace of this sandbox"):
        background.run(landlocked.sandbox.kernel(space))


DRIVER = """
import asyncio, json, os, sys
sys.path.insert(0, {root!r})
from mappa_envs.sandbox import SandboxConfig, open_sandbox
async def main():
    sandbox = await open_sandbox(SandboxConfig(max_level={level}, require_level={level}))
    space = await sandbox.workspace()
    kernel = await sandbox.kernel(space)
    code = "import subprocess; p = subprocess.Popen(['sleep', '{marker}'], start_new_session=True)"
    result = await kernel.execute(code)
    print(json.dumps([result.status, sandbox._server._popen.pid, str(sandbox._server.folder)]), flush=True)
    {end}
asyncio.run(main())
"""


def _driver(level: int, marker: str, end: str) -> subprocess.Popen[str]:
    code = DRIVER.format(root=ROOT, level=level, marker=marker, end=end)
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("level", [3, 2])
def test_everything_dies_with_a_host_process_that_is_killed(level: int, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("full" if level == 3 else "landlocked")
    from conftest import processes_with

    marker = f"45678.{level}"
    with _driver(level, marker, "await asyncio.sleep(60)") as driver:
        assert driver.stdout is not None
        status, server, folder = json.loads(driver.stdout.readline())
        assert status == "ok" and processes_with(marker)
        driver.kill()
        driver.wait()
    assert eventually(lambda: not processes_with(marker) and not psutil.pid_exists(server), 10)
    shutil.rmtree(folder)  # a killed process cannot delete its own


def test_leaving_without_closing_neither_hangs_nor_leaves_processes(full: Box) -> None:
    from conftest import processes_with

    marker = "56789.1"
    with _driver(3, marker, "return") as driver:
        assert driver.stdout is not None
        folder = json.loads(driver.stdout.readline())[2]
        assert driver.wait(timeout=30) == 0
        assert not Path(folder).exists()
    assert eventually(lambda: not processes_with(marker), 10)


def test_a_server_whose_packages_are_missing_names_them(full: Box) -> None:
    from dataclasses import replace

    from mappa_envs.sandbox.layout import find_layout
    from mappa_envs.sandbox.server import Server

    layout = replace(find_layout(), packages=("/nonexistent",))
    started = time.monotonic()
    with pytest.raises(SandboxError, match="No module named"):
        background.run(Server.launch(Level.FULL, SandboxConfig(), layout))
    assert time.monotonic() - started < 30
