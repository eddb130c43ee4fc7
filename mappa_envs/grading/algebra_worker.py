r"""The program that a grading worker process runs: algebra with math-verify, one question at a time.

It is started by its path and imports nothing of this package, so that it is ready soon. Questions come in as JSON
lines and answers go out as JSON lines. Texts reach only math-verify's LaTeX parser, whose grammar evaluates no code.
The parent kills a worker that misses its deadline; the alarm here is for the case that the parent is gone.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from dataclasses import replace
from typing import Any

PRECISION = 30
"""Digits of numeric evaluation."""
EQUAL_DIGITS = 22
"""Relative agreement that counts as equal, with room for what evaluation loses."""
QUICK_PRECISION, QUICK_DIGITS = 15, 8
"""The same for a first look."""
MEMORY_BYTES = 3 * 2**30
POINTS = (("1.3", "0.41"), ("2.17", "0.73"), ("-1.7", "0.37"), ("0.59", "1.91"))
"""Start and step of the values given to the symbols, in order of name."""


def _limit_memory() -> None:
    try:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):
        pass  # No such limit on this system; the deadline still holds.


def _parse(latex: str) -> Any:
    from math_verify import LatexExtractionConfig, parse

    # Boxes and units are taken off before; here `2m` is a product.
    normalization = replace(LatexExtractionConfig().normalization_config, units=False, boxed="none")
    found = parse(
        f"${latex}$",
        extraction_config=[LatexExtractionConfig(normalization_config=normalization)],
        fallback_mode="no_fallback",
        parsing_timeout=None,
    )
    return found[0] if found else None


def _numeric(expression: Any, digits: int = PRECISION) -> Any:
    """Return a real or complex sympy number, or None where there is no finite value."""
    value = expression.evalf(digits)
    return value if value.is_number and value.is_finite else None


def _close(left: Any, right: Any, digits: int = EQUAL_DIGITS) -> bool:
    scale = max(abs(left), abs(right))
    return bool(scale == 0 or abs(left - right) <= scale * 10**-digits)


def _is_scalar(value: Any) -> bool:
    from sympy import Expr

    return isinstance(value, Expr) and not getattr(value, "is_Matrix", False)


def _at_points(left: Any, right: Any) -> list[tuple[Any, Any]]:
    """Evaluate two expressions at points where both are finite."""
    from sympy import Rational

    symbols = sorted(left.free_symbols | right.free_symbols, key=str)
    values = []
    for start, step in POINTS:
        point = {symbol: Rational(start) + index * Rational(step) for index, symbol in enumerate(symbols)}
        pair = _numeric(left.subs(point)), _numeric(right.subs(point))
        if pair[0] is not None and pair[1] is not None:
            values.append(pair)
    return values


def _with_imaginary_unit(expression: Any) -> Any:
    """Read a free `i` as the imaginary unit: the parser takes it for a symbol where it stands alone."""
    from sympy import I

    return expression.subs({symbol: I for symbol in expression.free_symbols if symbol.name == "i"})


def _verify(gold: Any, answer: Any) -> bool:
    from math_verify import verify

    return bool(verify(gold, answer, timeout_seconds=None, allow_set_relation_comp=True))


def _compare_values(gold: Any, answer: Any, tolerance: str | None) -> tuple[str, str]:
    from sympy import Float, Rational, oo

    gold, answer = _with_imaginary_unit(gold), _with_imaginary_unit(answer)
    if oo in (gold, -gold) or oo in (answer, -answer):
        return ("equal", "equal") if gold == answer else ("different", "only one is infinite, or with the other sign")
    if not gold.free_symbols and not answer.free_symbols:
        # Few digits tell most different values apart, and save what an integral or a long sum costs.
        left, right = _numeric(gold, QUICK_PRECISION), _numeric(answer, QUICK_PRECISION)
        if left is None or right is None or tolerance is not None or _close(left, right, QUICK_DIGITS):
            left, right = _numeric(gold), _numeric(answer)
        if right is None:
            return "different", "the answer has no finite value"
        if left is None:
            return "undecided", "the accepted answer has no finite value"
        if _close(left, right):
            return "equal", f"equal to {EQUAL_DIGITS} digits"
        if tolerance is not None and abs(left - right) <= Float(Rational(tolerance), PRECISION):
            return "equal", "equal after rounding"
        return "different", "the values differ"
    if gold.free_symbols != answer.free_symbols and not (gold - answer).expand().free_symbols:
        return ("equal", "equal") if (gold - answer).expand() == 0 else ("different", "the values differ")
    pairs = _at_points(gold, answer)
    if any(not _close(left, right) for left, right in pairs):
        return "different", "the values differ at a point"
    if len(pairs) == len(POINTS):
        return "equal", f"equal at {len(pairs)} points"
    return ("equal", "equal") if _verify(gold, answer) else ("different", "not found equal")


def _compare_equations(gold: Any, answer: Any) -> tuple[str, str]:
    """Two equations agree if one is the other times a constant, or if they have the same solutions."""
    left, right = gold.lhs - gold.rhs, answer.lhs - answer.rhs
    if left.free_symbols == right.free_symbols and left.free_symbols:
        pairs = [(a, b) for a, b in _at_points(left, right) if a != 0 and b != 0]
        if len(pairs) == len(POINTS):
            ratio = pairs[0][0] / pairs[0][1]
            if all(_close(a, b * ratio) for a, b in pairs):
                return "equal", "the same equation up to a factor"
    return ("equal", "the same solutions") if _verify(gold, answer) else ("different", "different equations")


def compare(gold_text: str, answer_text: str, tolerance: str | None) -> tuple[str, str]:
    """Compare two LaTeX texts.

    Args:
        gold_text: The accepted answer.
        answer_text: The answer.
        tolerance: Absolute difference that still counts as equal, as a fraction; None for none.

    Returns:
        `equal`, `different`, `undecided`, `gold_unparsable` or `answer_unparsable`, and why.
    """
    from sympy import Eq

    gold = _parse(gold_text)
    if gold is None:
        return "gold_unparsable", "the accepted answer is not readable as LaTeX mathematics"
    answer = _parse(answer_text)
    if answer is None:
        return "answer_unparsable", "the answer is not readable as LaTeX mathematics"
    if _is_scalar(gold) and _is_scalar(answer):
        return _compare_values(gold, answer, tolerance)
    if isinstance(gold, Eq) and isinstance(answer, Eq):
        return _compare_equations(gold, answer)
    return ("equal", "equal") if _verify(gold, answer) else ("different", "not found equal")


def main() -> None:
    """Serve questions until the input ends."""
    # Whatever prints must not reach the channel of answers.
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    _limit_memory()
    logging.disable(logging.CRITICAL)
    compare(r"\frac{x^{2}}{2}+\sqrt{3}", r"\frac{x^{2}}{2}+\sqrt{3}", None)
    compare("2x+y=1", "y=1-2x", None)
    _reply(channel, "ready", "")
    for line in sys.stdin:
        question = json.loads(line)
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, question["deadline"] + 5)
        try:
            verdict, reason = compare(question["gold"], question["answer"], question["tolerance"])
        except (MemoryError, RecursionError) as error:
            verdict, reason = "undecided", f"ran out of {'memory' if isinstance(error, MemoryError) else 'stack'}"
        except Exception as error:
            verdict, reason = "undecided", f"the algebra system failed: {type(error).__name__}"
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        _reply(channel, verdict, reason)


def _reply(channel: Any, verdict: str, reason: str) -> None:
    channel.write(json.dumps([verdict, reason]) + "\n")
    channel.flush()


if __name__ == "__main__":
    main()
