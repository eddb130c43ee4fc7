r"""Accuracy and latency of graders of maths answers on labelled cases.

Compares this project's grader with math-verify alone and with plain sympy parsing, in one run. Every grader works in
a process of its own that is killed when a case takes longer than `--limit` seconds, so that hangs are counted
rather than waited for.

Run `python benchmarks/grading.py [CASES.jsonl]`; each line of the file holds `id`, `gold`, `prediction`, `expected` and
optionally `repeat`. Text of the cases is evaluated by plain sympy: run it on cases that you trust.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

DEFAULT_CASES = Path(__file__).parents[1] / "tests" / "fixtures" / "math_grading.jsonl"
START_SECONDS = 120.0

Grader = Callable[[str, str], bool | None]
"""Takes the prediction and the gold; None is undecided."""


def make_ours() -> Grader:
    """Return this project's grader."""
    from mappa_envs.grading.answers import grade_sync

    def ours(prediction: str, gold: str) -> bool | None:
        return {"correct": True, "incorrect": False, "undecided": None}[grade_sync(prediction, gold).verdict]

    ours("\\boxed{\\sqrt{8}}", "2\\sqrt{2}")
    return ours


def make_math_verify() -> Grader:
    """Return math-verify as its documentation shows it, with its own time limit of 5 s."""
    from math_verify import parse, verify

    def math_verify(prediction: str, gold: str) -> bool | None:
        return bool(verify(parse(f"${gold}$"), parse(prediction)))

    math_verify("$\\sqrt{8}$", "2\\sqrt{2}")
    return math_verify


def make_sympy() -> Grader:
    """Return a plain grader: the last box, parsed with sympy, equal if the difference simplifies to zero."""
    import sympy
    from sympy.parsing.latex import parse_latex

    def value(text: str) -> Any:
        try:
            return sympy.sympify(text.replace("^", "**"))
        except Exception:
            return parse_latex(text)

    def plain_sympy(prediction: str, gold: str) -> bool | None:
        boxes = re.findall(r"\\boxed\{(.*)\}", prediction)
        try:
            return bool(sympy.simplify(value(boxes[-1]) - value(gold)) == 0) if boxes else False
        except Exception:
            return bool(boxes) and boxes[-1].strip() == gold.strip()

    plain_sympy("\\boxed{2}", "1+1")
    return plain_sympy


GRADERS: dict[str, Callable[[], Grader]] = {
    "ours": make_ours,
    "math-verify": make_math_verify,
    "plain sympy": make_sympy,
}


def _serve(name: str, channel: Connection, folder: str) -> None:
    logging.disable(logging.CRITICAL)
    grader = GRADERS[name]()
    sys.path[:] = [os.path.abspath(entry) for entry in sys.path]
    # Plain sympy evaluates text: what a hostile case creates shall not land in the working folder.
    os.chdir(folder)
    channel.send("ready")
    while True:
        try:
            prediction, gold = channel.recv()
        except EOFError:
            return
        start = time.perf_counter()
        try:
            found = grader(prediction, gold)
        except BaseException:
            found = None
        channel.send((found, time.perf_counter() - start))


class _Process:
    """A grader in a spawned process; killed and replaced when it is too slow."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._folder = tempfile.TemporaryDirectory()
        self._context = multiprocessing.get_context("spawn")
        self._start()

    def _start(self) -> None:
        self._channel, theirs = self._context.Pipe()
        self._process = self._context.Process(target=_serve, args=(self._name, theirs, self._folder.name))
        self._process.start()
        theirs.close()
        if not self._channel.poll(START_SECONDS):
            raise TimeoutError(f"grader {self._name!r} did not start within {START_SECONDS:g} s")
        self._channel.recv()

    def grade(self, prediction: str, gold: str, limit: float) -> tuple[bool | None, float] | None:
        self._channel.send((prediction, gold))
        try:
            if self._channel.poll(limit):
                result: tuple[bool | None, float] = self._channel.recv()
                return result
        except EOFError:
            pass
        self._process.kill()
        self._process.join()
        self._start()
        return None

    def close(self) -> None:
        self._channel.close()
        self._process.join(10)
        self._process.kill()
        self._process.join()
        self._folder.cleanup()


@dataclass
class Score:
    """What one grader did on all cases."""

    right: int = 0
    undecided: int = 0
    hangs: int = 0
    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def load(path: Path) -> list[dict[str, Any]]:
    """Read the cases, putting in what is only described (`repeat`)."""
    cases = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        case = json.loads(line)
        if repeat := case.get("repeat"):
            text = case["prediction"].replace("<<R2>>", repeat.get("token2", "") * repeat["count"])
            case["prediction"] = text.replace("<<R>>", repeat["token"] * repeat["count"])
        cases.append(case)
    return cases


def run(name: str, cases: list[dict[str, Any]], limit: float) -> Score:
    """Grade all cases with one grader; a hang counts with `limit` seconds."""
    score, process = Score(), _Process(name)
    try:
        for case in cases:
            found = process.grade(case["prediction"], case["gold"], limit)
            verdict, seconds = found if found is not None else (None, limit)
            score.seconds.append(seconds)
            score.hangs += found is None
            score.undecided += found is not None and verdict is None
            if verdict is case["expected"]:
                score.right += 1
            else:
                score.wrong.append(case["id"])
    finally:
        process.close()
    return score


def main() -> None:
    """Run all graders and print a table."""
    parser = argparse.ArgumentParser(description="Accuracy and latency of graders of maths answers.")
    parser.add_argument("cases", nargs="?", type=Path, default=DEFAULT_CASES, help="JSONL file of labelled cases")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds after which a case counts as a hang")
    parser.add_argument("--graders", nargs="+", choices=list(GRADERS), default=list(GRADERS))
    parser.add_argument("--show-wrong", action="store_true", help="list the ids that each grader gets wrong")
    options = parser.parse_args()
    cases = load(options.cases)
    print(f"{len(cases)} cases from {options.cases.name}; a case of more than {options.limit:g} s is a hang")
    print(f"{'grader':14}{'right':>7}{'undecided':>11}{'hangs':>7}{'median ms':>11}{'p99 ms':>10}{'max ms':>10}")
    for name in options.graders:
        score = run(name, cases, options.limit)
        milliseconds = sorted(1000 * seconds for seconds in score.seconds)
        p99 = milliseconds[min(len(milliseconds) - 1, int(0.99 * len(milliseconds)))]
        print(
            f"{name:14}{score.right:7}{score.undecided:11}{score.hangs:7}"
            f"{statistics.median(milliseconds):11.1f}{p99:10.1f}{milliseconds[-1]:10.1f}"
        )
        if options.show_wrong and score.wrong:
            print("  wrong:", ", ".join(score.wrong))


if __name__ == "__main__":
    main()
