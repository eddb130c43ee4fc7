"""Arithmetic with a budget: what `expressions.evaluate` may compute, and what each step costs."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from mappa_envs.errors import MappaError

MAX_BITS = 200_000
"""Size of an integer, or of a fraction's numerator or denominator, on the way."""
MAX_ITEMS = 100_000
"""Elements of a range, list, set or text."""
MAX_STEPS = 100_000
"""Budget of one evaluation: one per node visited and element handled, plus the cost of long integers."""
MAX_MODULUS_BITS = 1_024
MAX_ROUND_DIGITS = 1_000
MAX_INT_TEXT = 4_300
"""Digits that `int` and `str` convert: Python's own limit."""

_BITS_PER_STEP = 2_048


class ExpressionError(MappaError, ValueError):
    """An expression is outside the language, has no value, or costs too much to evaluate."""


def bits_of(value: object) -> int:
    """Return the length in bits of an int or of the longer part of a Fraction; 0 for anything else."""
    if isinstance(value, int):
        return value.bit_length()
    if isinstance(value, Fraction):
        return max(value.numerator.bit_length(), value.denominator.bit_length())
    return 0


def _check_bits(bits: int) -> None:
    if bits > MAX_BITS:
        raise ExpressionError(
            "a number is too large",
            expected=f"at most {MAX_BITS} bits",
            got="more" if bits.bit_length() > 64 else f"{bits} bits",
        )


def _check_items(count: int) -> None:
    if count > MAX_ITEMS:
        raise ExpressionError("a sequence is too long", expected=f"at most {MAX_ITEMS} elements")


def _numbers(*values: object) -> None:
    for value in values:
        if not isinstance(value, int | Fraction | float):
            raise ExpressionError("an operand is not a number", got=type(value).__name__)


def _integers(*values: object) -> None:
    for value in values:
        if not isinstance(value, int):
            raise ExpressionError("an argument is not an integer", got=type(value).__name__)


def _whole(value: Any) -> Any:
    return value.numerator if isinstance(value, Fraction) and value.denominator == 1 else value


def _real(value: Any) -> float:
    if isinstance(value, complex):
        raise ExpressionError("a power is not a real number")
    return float(value)


class BoundedArithmetic:
    """The operators and functions of one evaluation, all paid for from one budget of `MAX_STEPS`."""

    def __init__(self) -> None:
        self.steps = MAX_STEPS
        """What is left of the budget."""
        self.operators: dict[type[ast.AST], Callable[..., Any]] = {
            ast.Add: self._add,
            ast.Sub: self._arithmetic(operator.sub, fraction_sum=True),
            ast.Mult: self._multiply,
            ast.Div: self._divide,
            ast.FloorDiv: self._arithmetic(operator.floordiv, fraction_sum=True),
            ast.Mod: self._arithmetic(operator.mod, fraction_sum=True),
            ast.Pow: self._power,
            ast.USub: self._arithmetic(operator.neg),
            ast.UAdd: self._arithmetic(operator.pos),
            ast.Not: operator.not_,
            ast.Eq: self._comparison(operator.eq),
            ast.NotEq: self._comparison(operator.ne),
            ast.Lt: self._comparison(operator.lt),
            ast.LtE: self._comparison(operator.le),
            ast.Gt: self._comparison(operator.gt),
            ast.GtE: self._comparison(operator.ge),
            ast.In: self._comparison(lambda item, container: item in container),
            ast.NotIn: self._comparison(lambda item, container: item not in container),
        }
        self.functions: dict[str, Callable[..., Any]] = {
            "sum": self._sum,
            "min": self._extreme(min),
            "max": self._extreme(max),
            "abs": self._arithmetic(abs),
            "len": len,
            "pow": self._power,
            "range": self._range,
            "int": self._int,
            "str": self._str,
            "sorted": self._sorted,
            "set": lambda *items: set(self.listed(*items)),
            "list": self.listed,
            "tuple": lambda *items: tuple(self.listed(*items)),
            "divmod": self._arithmetic(divmod, fraction_sum=True),
            "round": self._round,
            "all": lambda items: all(self.listed(items)),
            "any": lambda items: any(self.listed(items)),
        }
        self.math: dict[str, Any] = {
            "comb": self._comb,
            "perm": self._perm,
            "factorial": self._factorial,
            "gcd": self._fold(math.gcd, 0),
            "lcm": self._fold(math.lcm, 1),
            "isqrt": self._isqrt,
            "prod": self._prod,
            "sqrt": self._arithmetic(math.sqrt),
            "floor": self._arithmetic(math.floor),
            "ceil": self._arithmetic(math.ceil),
            "pi": math.pi,
            "e": math.e,
        }

    # The budget

    def spend(self, steps: int) -> None:
        """Pay for work.

        Raises:
            ExpressionError: If the budget does not reach.
        """
        self.steps -= steps
        if self.steps < 0:
            raise ExpressionError("the expression takes too long", expected=f"at most {MAX_STEPS} steps")

    def weigh(self, *values: object) -> None:
        """Pay for handling values whole, counting shared parts as often as they occur."""
        stack: list[Iterator[object]] = [iter(values)]
        while stack:
            for value in stack[-1]:
                self.spend(1 + bits_of(value) // _BITS_PER_STEP)
                if isinstance(value, str):
                    self.spend(len(value) // 64)
                elif isinstance(value, list | tuple | set):
                    stack.append(iter(value))
                    break
            else:
                stack.pop()

    def listed(self, items: Any = ()) -> list[Any]:
        """Copy a sequence into a list, paying for its elements."""
        sized = self.sized(items)
        self.spend(len(sized) // 8)
        if isinstance(sized, list | tuple):
            self.weigh(*sized)
        return list(sized)

    def sized(self, items: Any) -> Any:
        """Return `items`, which must be a sequence or set of known length."""
        if not isinstance(items, str | list | tuple | set | range):
            raise ExpressionError("something to go through is not a sequence", got=type(items).__name__)
        return items

    def _pay(self, *values: Any) -> None:
        bits = sum(bits_of(value) for value in values)
        # Multiplication and division of long integers grow faster than linearly, and a fraction needs several
        # of them and a quadratic greatest common divisor.
        self.spend((bits // _BITS_PER_STEP) * (1 + bits // 20_000))
        if any(isinstance(value, Fraction) for value in values):
            self.spend(4 + (bits // 512) ** 2 // 2)

    # Operators

    def _arithmetic(self, function: Callable[..., Any], fraction_sum: bool = False) -> Callable[..., Any]:
        def guarded(*values: Any) -> Any:
            _numbers(*values)
            self._pay(*values)
            if fraction_sum:
                self._check_common_denominator(*values)
            return function(*values)

        return guarded

    def _check_common_denominator(self, *values: Any) -> None:
        if any(isinstance(value, Fraction) for value in values):
            _check_bits(2 * sum(bits_of(value) for value in values))

    def _comparison(self, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def guarded(left: Any, right: Any) -> Any:
            self.weigh(left, right)
            if isinstance(left, Fraction) or isinstance(right, Fraction):
                self._pay(left, right)
            return function(left, right)

        return guarded

    def _add(self, left: Any, right: Any) -> Any:
        if isinstance(left, str | list | tuple) and type(left) is type(right):
            _check_items(len(left) + len(right))
            self.spend((len(left) + len(right)) // 8)
            return operator.add(left, right)
        _numbers(left, right)
        self._pay(left, right)
        self._check_common_denominator(left, right)
        _check_bits(max(bits_of(left), bits_of(right)) + 1)
        return left + right

    def _multiply(self, left: Any, right: Any) -> Any:
        if isinstance(left, str) or isinstance(right, str):
            text, count = (left, right) if isinstance(left, str) else (right, left)
            _integers(count)
            _check_items(len(text) * count)
            self.spend(max(0, len(text) * count) // 8)
            return text * count
        _numbers(left, right)
        self._pay(left, right)
        _check_bits(bits_of(left) + bits_of(right))
        return left * right

    def _divide(self, left: Any, right: Any) -> Any:
        _numbers(left, right)
        if isinstance(left, float) or isinstance(right, float):
            return left / right
        left, right = Fraction(left), Fraction(right)
        self._pay(left, right)
        _check_bits(bits_of(left) + bits_of(right))
        return _whole(left / right)

    def _power(self, base: Any, exponent: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            return self._modular_power(base, exponent, modulus)
        _numbers(base, exponent)
        exponent = _whole(exponent)
        if isinstance(base, float) or isinstance(exponent, float):
            return _real(base**exponent)
        if isinstance(exponent, Fraction):
            return _real(float(base) ** float(exponent))
        bits = bits_of(base) * abs(exponent) if isinstance(base, Fraction) or bits_of(base) > 1 else 1
        _check_bits(bits)
        self.spend((bits // _BITS_PER_STEP) * (1 + bits // 20_000))
        if exponent < 0:
            return _whole(Fraction(base) ** exponent)
        return base**exponent

    def _modular_power(self, base: Any, exponent: Any, modulus: Any) -> int:
        _integers(base, exponent, modulus)
        if bits_of(modulus) > MAX_MODULUS_BITS:
            raise ExpressionError("the modulus is too large", expected=f"at most {MAX_MODULUS_BITS} bits")
        self._pay(base, modulus)
        self.spend(bits_of(exponent) * (1 + (bits_of(modulus) // 64) ** 2) // 8)
        return pow(base, exponent, modulus)

    # Functions

    def _sum(self, items: Any, start: Any = 0) -> Any:
        total = start
        for item in self.sized(items):
            self.spend(1)
            total = self._add(total, item)
        return total

    def _prod(self, items: Any) -> Any:
        total: Any = 1
        for item in self.sized(items):
            self.spend(1)
            total = self._multiply(total, item)
        return total

    def _extreme(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*values: Any, **keywords: Any) -> Any:
            items = self.listed(values[0]) if len(values) == 1 else list(values)
            self.weigh(items)
            return function(items, **keywords)

        return guarded

    def _sorted(self, items: Any, reverse: Any = False) -> list[Any]:
        listed = self.listed(items)
        for _ in range(max(1, len(listed).bit_length() // 4)):
            self.weigh(listed)
        return sorted(listed, reverse=bool(reverse))

    def _range(self, *bounds: Any) -> range:
        _integers(*bounds)
        made = range(*bounds)
        try:
            count = len(made)
        except OverflowError:
            count = MAX_ITEMS + 1
        _check_items(count)
        return made

    def _int(self, value: Any = 0, base: Any = 10) -> int:
        if isinstance(value, str):
            _integers(base)
            if len(value) > MAX_INT_TEXT:
                raise ExpressionError("a text is too long for int", expected=f"at most {MAX_INT_TEXT} characters")
            self.spend((len(value) // 32) ** 2 // 32)
            return int(value, base)
        _numbers(value)
        return int(value)

    def _str(self, value: Any = "") -> str:
        if not isinstance(value, int | float | Fraction | str):
            raise ExpressionError("str takes a number or a text", got=type(value).__name__)
        self.spend((min(bits_of(value), 20_000) // 64) ** 2 // 64)
        return str(value)

    def _round(self, value: Any, digits: Any = None) -> Any:
        _numbers(value)
        self._pay(value)
        if digits is None:
            return round(value)
        _integers(digits)
        if abs(digits) > MAX_ROUND_DIGITS:
            raise ExpressionError("round takes too many digits", expected=f"at most {MAX_ROUND_DIGITS}")
        self.spend(1 + abs(digits) // 16)
        return _whole(round(value, digits))

    def _comb(self, n: Any, k: Any) -> int:
        _integers(n, k)
        smaller = max(0, min(k, n - k))
        self._check_product(min(n, smaller * bits_of(n)), smaller)
        return math.comb(n, k)

    def _perm(self, n: Any, k: Any = None) -> int:
        k = n if k is None else k
        _integers(n, k)
        count = max(0, min(n, k))
        self._check_product(count * bits_of(n), count)
        return math.perm(n, k)

    def _factorial(self, n: Any) -> int:
        _integers(n)
        self._check_product(max(0, n) * bits_of(n), max(0, n))
        return math.factorial(n)

    def _check_product(self, bits: int, factors: int) -> None:
        """Pay for a product that is built factor by factor up to a length in bits."""
        _check_bits(bits)
        self.spend(min(factors, MAX_STEPS + 1) // 16)
        self.spend(factors * bits // (_BITS_PER_STEP * 4))

    def _isqrt(self, n: Any) -> int:
        _integers(n)
        self._pay(n, n)
        return math.isqrt(n)

    def _fold(self, function: Callable[..., int], start: int) -> Callable[..., int]:
        def guarded(*values: Any) -> int:
            _integers(*values)
            total = start
            for value in values:
                bits = bits_of(value) + bits_of(total)
                _check_bits(bits)
                # Euclid's algorithm is quadratic in the length.
                self.spend(1 + (bits // 512) ** 2 // 4)
                total = function(total, value)
            return total

        return guarded
