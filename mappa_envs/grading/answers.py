r"""Grading the final answer of a maths problem.

`grade` finds the last `\boxed{}` of an action and compares it with the accepted answers. Integers, fractions,
units, percentages, tuples, intervals, sets, matrices and choice letters are compared exactly and at once; symbolic
answers go to math-verify in worker processes with a hard deadline. Where neither decides, the verdict is
`undecided`: never silently one of the other two.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

from mappa_envs.errors import TaskError
from mappa_envs.grading.arithmetic import Huge
from mappa_envs.grading.compare import Ask, Comparer, Comparison, VerdictName, first_correct
from mappa_envs.grading.extract import Extraction, extract_answer
from mappa_envs.grading.latex import matching, tidy
from mappa_envs.grading.policy import AIME_POLICY, DEFAULT_POLICY, GradingPolicy
from mappa_envs.grading.pool import Question, Reply, shared_pool
from mappa_envs.grading.reading import Answer, Collection, Equation, Expression, Quantity, read

DEADLINE_SECONDS = 1.0
"""Hard bound on the algebra of one `grade` call, over all accepted answers and parts."""
MAX_RAW_CHARS = 100_000
"""A boxed text longer than this is not tidied at all."""
_INLINE_CHARS = 100_000
_LOAD_SECONDS = 10.0

_BOTH_ACCEPTED = re.compile(
    r"(?P<answers>.+?)\s*\((?:[^()]*\b)?(?:both|all|either|any)\b[^()]*accepted[^()]*\)\s*\.?", re.I
)
_OR = re.compile(r"\s*(?:,|\bor\b)\s*")
_NO_ANSWER = {"", "nan", "none", "null", "n/a", "na", "unknown", "?", "inf", "-inf"}
_TEXT_COMMAND = re.compile(r"\\(?:text|textbf|textrm|mathrm|mathbf|mbox|bf|rm)\s*\{([^{}]*)\}")
_ONE_LETTER = re.compile(r"(?:(?:option|choice|answer)\s+)?\(?([A-Z])\)?", re.IGNORECASE)
_LABELLED = re.compile(r"(?:\(([A-Z])\)|([A-Z])[.):])\s*(.+)", re.DOTALL)
_LABEL = re.compile(r"(?<![A-Za-z\\])[A-Z](?:[).:]|$)")


@dataclass(frozen=True, slots=True)
class Gold:
    """One accepted answer, read."""

    text: str
    """As given."""
    answer: Answer
    choice: str | None = None
    """The letter of a multiple choice; `answer` is then its value if one is given (`(C) 12`), else the letter."""


@dataclass(frozen=True, slots=True)
class Grade:
    """The verdict on an action's final answer."""

    verdict: VerdictName
    reason: str
    extracted: str | None
    """The final answer as written; None where there is none."""


def parse_gold(text: str, policy: GradingPolicy = DEFAULT_POLICY) -> tuple[Gold, ...]:
    r"""Read the accepted answers of a task, when it is loaded.

    Args:
        text: An answer such as `033`, `142.0`, `336^\circ`, `\frac{1}{2}`, `(1,2)`, `x=5`, `D`, or several, as in
            `080 or 081 (both were accepted)`.
        policy: The matters of policy; `integer_range` also bounds accepted answers.

    Returns:
        One entry per accepted answer.

    Raises:
        TaskError: If it cannot be read: it would never, or always, count as right.
    """
    golds = _golds(text, policy)
    for gold in golds:
        for question in _self_checks(gold.answer):
            reply, _ = shared_pool().ask(question, _LOAD_SECONDS)
            if reply.outcome != "equal":
                raise _gold_error(gold.text, reply.reason)
    return golds


async def grade(text: str, golds: str | Sequence[str | Gold], *, policy: GradingPolicy = DEFAULT_POLICY) -> Grade:
    r"""Grade an action's final answer without blocking the event loop.

    Args:
        text: The whole action; the answer is its last `\boxed{}` (see `extract.extract_answer`).
        golds: The accepted answers, as text or read by `parse_gold`; agreeing with one is enough.
        policy: The matters of policy.

    Returns:
        `undecided` if the algebra ran out of time or an accepted answer cannot be read.
    """
    if len(text) <= _INLINE_CHARS:
        try:
            return _grade(text, golds, policy, _refuse)
        except _AlgebraNeeded:
            pass
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_executor(), lambda: grade_sync(text, golds, policy=policy))


def grade_sync(text: str, golds: str | Sequence[str | Gold], *, policy: GradingPolicy = DEFAULT_POLICY) -> Grade:
    """Grade an action's final answer; see `grade`. Safe to call from any thread."""
    return _grade(text, golds, policy, _Deadline(DEADLINE_SECONDS).ask)


def warm_up() -> None:
    """Start the algebra workers now rather than at the first symbolic answer; does not wait for them."""
    shared_pool().warm_up()


class _AlgebraNeeded(Exception):
    """A signal: the comparison cannot go on without a worker."""


def _refuse(question: Question) -> Reply:
    raise _AlgebraNeeded


class _Deadline:
    """Asks the shared pool, with one allowance of time for all questions of a grade."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._total = seconds

    def ask(self, question: Question) -> Reply:
        if self._left <= 0:
            return Reply("undecided", f"the comparison took longer than {self._total:g} s")
        reply, spent = shared_pool().ask(question, self._left)
        self._left -= spent
        return reply


@lru_cache(maxsize=1)
def _executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=8, thread_name_prefix="mappa-grading")


def _forget() -> None:
    # A forked child has the executor but none of its threads.
    _executor.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _grade(text: str, golds: str | Sequence[str | Gold], policy: GradingPolicy, ask: Ask) -> Grade:
    extraction = extract_answer(text, policy=policy)
    if extraction.text is None:
        why = "the last box is not closed" if extraction.truncated else "no final answer"
        return Grade("incorrect", why, None)
    try:
        accepted = [gold for given in ([golds] if isinstance(golds, str) else golds) for gold in _golds(given, policy)]
    except TaskError as error:
        return Grade("undecided", error.what, extraction.text)
    if not accepted:
        return Grade("undecided", "there is no accepted answer to compare with", extraction.text)
    result = _decide(extraction, accepted, policy, ask)
    return Grade(result.verdict, result.reason, extraction.text)


def _decide(extraction: Extraction, accepted: list[Gold], policy: GradingPolicy, ask: Ask) -> Comparison:
    raw = extraction.text or ""
    if len(raw) > MAX_RAW_CHARS:
        return Comparison("incorrect", f"the answer is longer than {policy.max_chars} characters")
    tidied = tidy(raw)
    if len(tidied) > policy.max_chars:
        return Comparison("incorrect", f"the answer is longer than {policy.max_chars} characters")
    answer = read(tidied)
    if answer is None:
        return Comparison("incorrect", "the answer is empty")
    letter, value = _choice(tidied, policy.choice_letters)
    answer = (read(value) if value else None) or answer
    if policy.integer_range is not None and (wrong := _outside(answer, policy.integer_range)):
        return Comparison("incorrect", wrong)
    comparer = Comparer(policy, ask)
    results: list[Comparison] = []
    for gold in accepted:
        only_letter = gold.choice is not None and gold.answer == Expression(gold.choice)
        if gold.choice is None:
            results.append(comparer.compare(gold.answer, answer))
        elif letter is not None and letter != gold.choice:
            results.append(Comparison("incorrect", f"chose {letter}"))
        elif letter is not None and (only_letter or not value):
            results.append(Comparison("correct", f"chose {letter}"))
        elif only_letter:
            results.append(Comparison("incorrect", "not one choice letter"))
        else:
            results.append(comparer.compare(gold.answer, answer))
        if results[-1].verdict == "correct":
            break
    return first_correct(results)


def _golds(given: str | Gold, policy: GradingPolicy) -> tuple[Gold, ...]:
    if isinstance(given, Gold):
        return (given,)
    if not isinstance(given, str):
        raise TaskError("an accepted answer must be text", expected="str", got=type(given).__name__)
    return _read_golds(given, policy)


@lru_cache(maxsize=4096)
def _read_golds(text: str, policy: GradingPolicy) -> tuple[Gold, ...]:
    if len(text) > MAX_RAW_CHARS or len(text) > 20 * policy.max_chars:
        raise _gold_error(text, f"it is longer than {policy.max_chars} characters")
    if len(text) <= 200 and (both := _BOTH_ACCEPTED.fullmatch(text.strip())):
        return tuple(_read_gold(part, policy) for part in _OR.split(both.group("answers")) if part)
    return (_read_gold(text, policy),)


def _read_gold(text: str, policy: GradingPolicy) -> Gold:
    boxed = extract_answer(text, policy=policy)
    inner = boxed.text if boxed.boxed and boxed.text is not None else text
    tidied = tidy(inner[:MAX_RAW_CHARS])
    if tidied.casefold() in _NO_ANSWER or len(tidied) > policy.max_chars or "\\boxed" in tidied:
        raise _gold_error(text, f"expected 1 to {policy.max_chars} characters of mathematics")
    letter, value = _choice(tidied, policy.choice_letters)
    answer = read(value or tidied)
    if answer is None or (any(c in tidied for c in "()[]{}") and not matching(tidied)):
        raise _gold_error(text, "its brackets do not match")
    if policy.integer_range is not None and (wrong := _outside(answer, policy.integer_range)):
        raise _gold_error(text, wrong)
    return Gold(text, answer, letter)


def _gold_error(text: str, why: str) -> TaskError:
    return TaskError(
        f"an accepted answer cannot be read: {why}",
        expected=r"a number, LaTeX mathematics, words, or a choice letter",
        got=repr(text if len(text) <= 100 else text[:100] + "..."),
        fix="correct the answer in the task file or leave the task out",
    )


def _self_checks(answer: Answer) -> Iterator[Question]:
    """Yield what the algebra system must find equal to itself for an accepted answer to be of any use."""
    if isinstance(answer, Collection):
        for item in answer.items:
            yield from _self_checks(item)
    elif isinstance(answer, Equation) or (isinstance(answer, Expression) and not answer.text.isalpha()):
        yield Question(answer.text, answer.text)


def _outside(answer: Answer, bounds: tuple[int, int]) -> str:
    """Say why an answer is not an integer within bounds; empty if it is, or if that is not known yet."""
    if isinstance(answer, Expression | Equation):
        return ""
    low, high = bounds
    if not isinstance(answer, Quantity) or isinstance(answer.value, Huge) or answer.value.denominator != 1:
        return f"not an integer from {low} to {high}"
    return "" if low <= answer.value <= high else f"outside {low} to {high}"


def _choice(text: str, letters: str) -> tuple[str | None, str]:
    """Split `(D) 7` into its letter and its value; no letter if there is none or more than one."""
    plain = _TEXT_COMMAND.sub(r"\1", text).strip()
    if (alone := _ONE_LETTER.fullmatch(plain)) and alone.group(1) in letters:
        return alone.group(1), ""
    labelled = _LABELLED.fullmatch(plain)
    if labelled is None:
        return None, ""
    letter, value = labelled.group(1) or labelled.group(2), labelled.group(3).strip()
    return (None, "") if letter not in letters or _LABEL.search(value) else (letter, value)


__all__ = [
    "AIME_POLICY",
    "DEADLINE_SECONDS",
    "DEFAULT_POLICY",
    "Extraction",
    "Gold",
    "Grade",
    "GradingPolicy",
    "extract_answer",
    "grade",
    "grade_sync",
    "parse_gold",
    "warm_up",
]
