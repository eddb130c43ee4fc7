from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mappa_envs.grading.answers import grade, grade_sync
from mappa_envs.grading.pool import AlgebraPool, Question, shared_pool

QUICK = Question("\\sqrt{8}", "2\\sqrt{2}")
ENDLESS = Question("x", "x + \\sum_{k=1}^{10^{10}} k^{k} + 10^{10^{10}}")


@pytest.fixture
def pool() -> Iterator[AlgebraPool]:
    made = AlgebraPool(size=1)
    yield made
    made.close()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_question_over_its_deadline_is_undecided_and_the_next_one_works(pool: AlgebraPool) -> None:
    assert pool.ask(QUICK, 10)[0].outcome == "equal"
    (before,) = pool.worker_pids()
    start = time.monotonic()
    reply, spent = pool.ask(ENDLESS, 0.5)
    assert reply.outcome == "undecided"
    assert "0.5 s" in reply.reason
    assert 0.5 <= spent < 2
    assert time.monotonic() - start < 5
    assert not _alive(before)
    assert pool.ask(QUICK, 10)[0].outcome == "equal"


def test_a_worker_killed_in_the_middle_is_undecided_with_the_reason(pool: AlgebraPool) -> None:
    assert pool.ask(QUICK, 10)[0].outcome == "equal"
    (pid,) = pool.worker_pids()
    killer = threading.Timer(0.5, os.kill, (pid, signal.SIGKILL))
    killer.start()
    reply, _ = pool.ask(ENDLESS, 30)
    killer.join()
    assert reply.outcome == "undecided"
    assert "died" in reply.reason
    assert "-9" in reply.reason
    assert pool.ask(QUICK, 10)[0].outcome == "equal"


def test_a_worker_killed_while_idle_costs_one_undecided_answer(pool: AlgebraPool) -> None:
    pool.ask(QUICK, 10)
    (pid,) = pool.worker_pids()
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.1)
    assert pool.ask(QUICK, 10)[0].outcome == "undecided"
    assert pool.ask(QUICK, 10)[0].outcome == "equal"


def test_memory_bombs_are_undecided(pool: AlgebraPool) -> None:
    assert pool.ask(Question("x", "x \\cdot 9^{9^{9^{9}}}"), 1.0)[0].outcome == "undecided"
    assert pool.ask(QUICK, 10)[0].outcome == "equal"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_kills_leak_no_file_descriptors_and_no_processes(pool: AlgebraPool) -> None:
    pool.ask(QUICK, 10)
    before = len(os.listdir("/proc/self/fd"))
    seen = set(pool.worker_pids())
    for _ in range(4):
        assert pool.ask(ENDLESS, 0.1)[0].outcome == "undecided"
        seen |= set(pool.worker_pids())
    pool.ask(QUICK, 10)
    assert len(os.listdir("/proc/self/fd")) == before
    assert len(pool.worker_pids()) == 1
    assert sum(_alive(pid) for pid in seen) == 1


def test_a_closed_pool_has_no_processes_and_answers_undecided() -> None:
    made = AlgebraPool(size=2)
    made.warm_up()
    pids = made.worker_pids()
    assert len(pids) == 2
    made.close()
    assert not any(_alive(pid) for pid in pids)
    assert made.ask(QUICK, 1)[0].outcome == "undecided"
    made.close()


def test_threads_share_the_workers_and_get_their_own_answers() -> None:
    questions = [(f"\\sqrt{{{2 * k * k}}}", f"{k}\\sqrt{{2}}", f"{k + 1}\\sqrt{{2}}") for k in range(2, 22)]
    with ThreadPoolExecutor(8) as threads:
        right = threads.map(lambda q: grade_sync(f"\\boxed{{{q[1]}}}", q[0]).verdict, questions)
        wrong = threads.map(lambda q: grade_sync(f"\\boxed{{{q[2]}}}", q[0]).verdict, questions)
        assert set(right) == {"correct"}
        assert set(wrong) == {"incorrect"}
    assert len(shared_pool().worker_pids()) <= shared_pool().size


def test_asyncio_grades_beside_a_hostile_answer() -> None:
    async def run() -> list[str]:
        texts = ["\\boxed{x + \\sum_{k=1}^{10^{10}} k^{k} + 10^{10^{10}}}", *["\\boxed{2\\sqrt{2}}"] * 6]
        return [item.verdict for item in await asyncio.gather(*(grade(text, "\\sqrt{8}") for text in texts))]

    assert asyncio.run(run()) == ["undecided", *["correct"] * 6]


def _grade_in_child(queue: multiprocessing.Queue[str]) -> None:
    queue.put(grade_sync("\\boxed{2\\sqrt{2}}", "\\sqrt{8}").verdict)


def test_a_spawned_process_grades_with_workers_of_its_own() -> None:
    context = multiprocessing.get_context("spawn")
    queue: multiprocessing.Queue[str] = context.Queue()
    child = context.Process(target=_grade_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=120) == "correct"
    child.join(30)
    assert child.exitcode == 0
    queue.close()
    queue.join_thread()


FORKING = """
import os, sys
from mappa_envs.grading.answers import grade_sync
from mappa_envs.grading.pool import shared_pool
box, gold = "\\\\boxed{2\\\\sqrt{2}}", "\\\\sqrt{8}"
assert grade_sync(box, gold).verdict == "correct"
mine = shared_pool().worker_pids()
child = os.fork()
if child == 0:
    code = 0 if grade_sync(box, gold).verdict == "correct" and not set(shared_pool().worker_pids()) & set(mine) else 1
    sys.exit(code)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert grade_sync(box, gold).verdict == "correct"
assert shared_pool().worker_pids() == mine
print(*mine)
"""


def test_a_forked_child_leaves_the_workers_of_its_parent_alone_and_all_end_at_exit() -> None:
    done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert not any(_alive(int(pid)) for pid in done.stdout.split())


HOSTILE = [
    "x^{10^{10^{10}}}",
    "\\sqrt{10^{10^{10}}}",
    "\\sqrt{2}^{10^{10^{10}}}",
    "\\sum_{k=1}^{10^{10}} \\frac{1}{k}",
    "\\prod_{k=1}^{10^{9}} (1+\\frac{1}{k^2})",
    "(x+1)^{100000}",
    "((x+1)^{1000}+1)^{1000}",
    "\\sqrt{" * 300 + "2" + "}" * 300,
    "\\frac{" * 200,
    "\\frac{1}{" * 150 + "2" + "}" * 150,
    "(" * 5000 + "x" + ")" * 5000,
    "[" * 400 + "1,2" + "]" * 400,
    "{" * 20000,
    "7" * 1_000_000,
    "+".join(["x"] * 400),
    "x!" * 100,
    "(10^9)!x",
    "\\binom{10^9}{5 \\cdot 10^8}",
    "\\int_0^1 x^{x^{x}} \\sin(\\cos(e^{x})) dx",
    "\\lim_{x\\to 0} \\frac{\\sin x}{x^{x^{x}}}",
    "__import__('os').system('touch PWNED')",
    "exec(\"open('PWNED','w')\")",
    "\\operatorname{__import__}(os)",
    "lambda: 0",
    "1e999999999",
    "0." + "3" * 900,
    ",".join(["7^{70000}/3^{9}"] * 60),
    "9^9^9^9!",
    "\\begin{pmatrix}" + "1&" * 300 + "\\end{pmatrix}",
    "\ud800",
]


@pytest.mark.parametrize("answer", HOSTILE, ids=lambda text: ascii(text[:24]))
def test_hostile_answers_come_back_within_the_deadline_and_never_run(
    answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    grade_sync("\\boxed{\\sqrt{2}}", "\\sqrt{8}")
    start = time.monotonic()
    found = grade_sync(f"\\boxed{{{answer}}}", "5")
    # The deadline is 1 s; the rest is room for a busy machine.
    assert time.monotonic() - start < 6
    assert found.verdict in ("incorrect", "undecided")
    assert not list(tmp_path.iterdir())
