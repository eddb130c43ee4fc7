"""Exact values of constant arithmetic in LaTeX or plain notation, without a computer algebra system.

Integers and fractions of bounded size are computed exactly. A number too large for that is known to be `Huge`,
which is enough to tell it from any number that is not.
"""

from __future__ import annotations

import ast
import math
import re
from dataclasses import dataclass
from fractions import Fraction

from mappa_envs.grading.bounded import BoundedArithmetic, ExpressionError, bits_of

MAX_BITS = 40_000
"""Length up to which an integer, or a numerator or denominator, is computed."""
MAX_NESTING = 40
_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?|\.\d+)|(\\[A-Za-z]+)|(!+)|([-+*/^(){}\[\]]))")
_TIMES = {"*", "\\cdot", "\\times", "\\ast"}
_OVER = {"/", "\\div"}
_MAX_TOKENS = 400


@dataclass(frozen=True, slots=True)
class Huge:
    """A number of more than `MAX_BITS` bits, of known sign."""

    sign: int
    whole: bool = True
    """Whether it is certainly an integer."""


Value = Fraction | Huge


class NotArithmeticError(ValueError):
    """The text is not constant arithmetic that can be evaluated exactly."""


def exact_value(text: str) -> Value | None:
    r"""Evaluate tidy text such as `2^{10}`, `1\frac{1}{4}`, `(3+4)!/2` exactly.

    Args:
        text: Output of `latex.tidy`.

    Returns:
        The value, or None if the text is something else (symbols, roots, a division by zero, too much work).
    """
    tokens: list[str] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or len(tokens) >= _MAX_TOKENS:
            return None
        tokens.append(match.group(match.lastindex or 0))
        position = match.end()
    if not tokens:
        return None
    parser = _Parser(tokens)
    try:
        value = parser.sum(0)
    except (NotArithmeticError, ExpressionError, ArithmeticError, ValueError):
        return None
    return value if parser.at_end() else None


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._next = 0
        self._bounded = BoundedArithmetic()

    def at_end(self) -> bool:
        return self._next == len(self._tokens)

    def _peek(self, ahead: int = 0) -> str:
        index = self._next + ahead
        return self._tokens[index] if index < len(self._tokens) else ""

    def _take(self, expected: str = "") -> str:
        token = self._peek()
        if not token or (expected and token != expected):
            raise NotArithmeticError
        self._next += 1
        return token

    def sum(self, depth: int) -> Value:
        if depth > MAX_NESTING:
            raise NotArithmeticError
        total = self._product(depth)
        while self._peek() in ("+", "-"):
            sign = 1 if self._take() == "+" else -1
            total = _add(total, _scale(self._product(depth), sign))
        return total

    def _product(self, depth: int) -> Value:
        total = self._signed(depth)
        while True:
            token = self._peek()
            if token in _TIMES:
                self._take()
                total = self._multiply(total, self._signed(depth))
            elif token in _OVER:
                self._take()
                total = self._divide(total, self._signed(depth))
            elif token in ("(", "\\frac", "\\binom", "\\sqrt"):
                total = self._multiply(total, self._power(depth))
            else:
                return total

    def _signed(self, depth: int) -> Value:
        sign = 1
        while self._peek() in ("+", "-"):
            sign *= 1 if self._take() == "+" else -1
        return _scale(self._power(depth), sign)

    def _power(self, depth: int) -> Value:
        if depth > MAX_NESTING:
            raise NotArithmeticError
        base = self._postfix(depth)
        if self._peek() != "^":
            return base
        self._take()
        if self._peek() == "{":
            exponent = self._group(depth)
        else:
            # A power tower without braces goes to the right, as in Python and in speech.
            exponent = self._signed(depth + 1)
        return self._factorials(self._raise(base, exponent))

    def _postfix(self, depth: int) -> Value:
        return self._factorials(self._primary(depth))

    def _factorials(self, value: Value) -> Value:
        while self._peek().startswith("!"):
            value = self._factorial(value, len(self._take()))
        return value

    def _primary(self, depth: int) -> Value:
        token = self._take()
        if token[0].isdigit() or token[0] == ".":
            number = Fraction(token)
            return _add(number, self._mixed_part(depth)) if "." not in token else _sized(number)
        if token in ("(", "{"):
            self._next -= 1
            return self._group(depth)
        if token == "\\frac":
            numerator = self._argument(depth)
            return self._divide(numerator, self._argument(depth))
        if token == "\\binom":
            n, k = self._argument(depth), self._argument(depth)
            if isinstance(n, Huge) or isinstance(k, Huge) or n.denominator != 1 or k.denominator != 1:
                raise NotArithmeticError
            return _sized(self._bounded.math["comb"](n.numerator, k.numerator))
        if token == "\\sqrt" and self._peek() != "[":
            return _square_root(self._argument(depth))
        raise NotArithmeticError

    def _mixed_part(self, depth: int) -> Value:
        r"""Return the fraction of a mixed number (`1\frac{1}{4}`, `2 2/3`) that follows its whole part, or 0."""
        if self._peek() == "\\frac":
            self._take()
            top = self._argument(depth)
            bottom = self._argument(depth)
            if isinstance(top, Huge) or isinstance(bottom, Huge) or not 0 < top < bottom:
                raise NotArithmeticError
            return top / bottom
        if self._peek().isdigit():
            top_text, slash, bottom_text = self._take(), self._take(), self._take()
            if slash != "/" or not bottom_text.isdigit() or not 0 < int(top_text) < int(bottom_text):
                raise NotArithmeticError
            return Fraction(int(top_text), int(bottom_text))
        return Fraction(0)

    def _group(self, depth: int) -> Value:
        closing = {"(": ")", "{": "}"}[self._take()]
        value = self.sum(depth + 1)
        self._take(closing)
        return value

    def _argument(self, depth: int) -> Value:
        r"""Read a command's argument: a group, or one character as in `\frac12`."""
        if self._peek() == "{":
            return self._group(depth)
        token = self._peek()
        if not token.isdigit():
            raise NotArithmeticError
        if len(token) == 1:
            self._take()
        else:
            self._tokens[self._next] = token[1:]
        return Fraction(int(token[0]))

    def _multiply(self, left: Value, right: Value) -> Value:
        if left == 0 or right == 0:
            return Fraction(0)
        if isinstance(left, Huge) or isinstance(right, Huge):
            other = right if isinstance(left, Huge) else left
            if not isinstance(other, Huge) and abs(other) < 1:
                raise NotArithmeticError
            whole = all(not isinstance(v, Huge) or v.whole for v in (left, right)) and _is_whole(other)
            return Huge(_sign(left) * _sign(right), whole)
        if bits_of(left) + bits_of(right) > MAX_BITS and _is_whole(left) and _is_whole(right):
            return Huge(_sign(left) * _sign(right))
        return _sized(self._bounded.operators[ast.Mult](left, right))

    def _divide(self, left: Value, right: Value) -> Value:
        if isinstance(left, Huge) or isinstance(right, Huge):
            raise NotArithmeticError
        return _sized(self._bounded.operators[ast.Div](left, right))

    def _raise(self, base: Value, exponent: Value) -> Value:
        if isinstance(exponent, Huge):
            if isinstance(base, Fraction) and base in (0, 1) and exponent.sign > 0:
                return base
            if exponent.sign > 0 and _sign(base) > 0 and (isinstance(base, Huge) or base >= 2):
                return Huge(1, _is_whole(base) and exponent.whole)
            raise NotArithmeticError
        if exponent.denominator != 1:
            return _rational_power(base, exponent)
        power = exponent.numerator
        if isinstance(base, Huge):
            if power < 1:
                raise NotArithmeticError
            return Huge(base.sign if power % 2 else 1, base.whole)
        if power > 0 and abs(base) >= 2 and (bits_of(math.floor(abs(base))) - 1) * power > MAX_BITS:
            return Huge(1 if base > 0 or power % 2 == 0 else -1, _is_whole(base))
        return _sized(self._bounded.operators[ast.Pow](base, power))

    def _factorial(self, value: Value, step: int) -> Value:
        """`n!` for step 1, the double factorial `n!!` for step 2 and so on: n (n - step) (n - 2 step) ..."""
        if isinstance(value, Huge):
            if value.sign < 0 or not value.whole:
                raise NotArithmeticError
            return Huge(1)
        if value < 0 or value.denominator != 1:
            raise NotArithmeticError
        n = value.numerator
        # At least half of the factors have all but one of n's bits.
        if (n // step // 2) * (n.bit_length() - 2) > MAX_BITS:
            return Huge(1)
        if step == 1:
            return _sized(self._bounded.math["factorial"](n))
        return _sized(self._bounded.math["prod"](range(n, 0, -step)))


def _add(left: Value, right: Value) -> Value:
    if isinstance(left, Huge) and isinstance(right, Huge):
        if left.sign != right.sign:
            raise NotArithmeticError
        return Huge(left.sign, left.whole and right.whole)
    for huge, other in ((left, right), (right, left)):
        if isinstance(huge, Huge) and not isinstance(other, Huge):
            # The sum may fall below the bound only by an other number of nearly that size.
            if bits_of(other) > MAX_BITS // 2 and _sign(other) != huge.sign:
                raise NotArithmeticError
            return Huge(huge.sign, huge.whole and _is_whole(other))
    if isinstance(left, Huge) or isinstance(right, Huge):
        raise NotArithmeticError
    return _sized(left + right)


def _sized(value: int | Fraction) -> Value:
    """Keep one form per number: beyond the bound, integers are `Huge` and fractions are not evaluated."""
    exact = Fraction(value)
    if bits_of(exact) <= MAX_BITS:
        return exact
    if exact.denominator != 1:
        raise NotArithmeticError
    return Huge(1 if exact > 0 else -1)


def _scale(value: Value, sign: int) -> Value:
    return Huge(value.sign * sign, value.whole) if isinstance(value, Huge) else value * sign


def _sign(value: Value) -> int:
    return value.sign if isinstance(value, Huge) else (value > 0) - (value < 0)


def _is_whole(value: Value) -> bool:
    return value.whole if isinstance(value, Huge) else value.denominator == 1


def _square_root(value: Value) -> Fraction:
    if isinstance(value, Huge) or value < 0:
        raise NotArithmeticError
    return _rational_power(value, Fraction(1, 2))


def _rational_power(base: Value, exponent: Fraction) -> Fraction:
    """Return a square root where it is rational; other roots are left to the algebra system."""
    if exponent != Fraction(1, 2) or isinstance(base, Huge) or base < 0 or bits_of(base) > 20_000:
        raise NotArithmeticError
    root = Fraction(math.isqrt(base.numerator), math.isqrt(base.denominator))
    if root * root != base:
        raise NotArithmeticError
    return root
