"""Arithmetic expressions in a small, bounded part of Python, safe on hostile text.

The language is that of `Problem.expression`: numbers, `+ - * / // % **`, comparisons, conditionals,
`and or not in`, list, tuple and set displays, comprehensions, subscripts, the functions in `FUNCTIONS` and
the `math.` names in `MATH`. `/` on integers is exact. Every step is paid for from a fixed budget that counts
the size of the operands as well: the time is bounded whatever the text, and one text always gives the same
result or the same error.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from simpleeval import EvalWithCompoundTypes, InvalidExpression, OperatorNotDefined

from mappa_envs.grading.bounded import BoundedArithmetic, ExpressionError, bits_of

MAX_TEXT = 2_000
"""Characters of an expression."""
MAX_DEPTH = 150
"""Nesting of an expression's syntax tree."""
MAX_RESULT_BITS = 14_284
"""Length of the result, or of its numerator or denominator: what `str` still prints (4300 digits)."""

FUNCTIONS: tuple[str, ...] = tuple(BoundedArithmetic().functions)
"""Functions of the language."""
MATH: tuple[str, ...] = tuple(BoundedArithmetic().math)
"""Names of the language's `math.` namespace."""


def evaluate(expression: str) -> int | Fraction | float:
    """Evaluate an expression of the language described in the module's docstring.

    Args:
        expression: At most `MAX_TEXT` characters. May come from an agent.

    Returns:
        The value; a whole `Fraction` is returned as an int, a truth value is refused.

    Raises:
        ExpressionError: If it is not in the language, has no finite real value, or costs too much.
    """
    if not isinstance(expression, str):
        raise ExpressionError("an expression must be text", expected="str", got=type(expression).__name__)
    text = expression.strip()
    if not text or len(text) > MAX_TEXT:
        raise ExpressionError(
            "the expression is empty or too long",
            expected=f"1 to {MAX_TEXT} characters",
            got=f"{len(text)} characters",
        )
    try:
        tree = ast.parse(text, mode="eval").body
        _check_depth(tree)
        value = _Evaluator().eval(text, tree)
    except ExpressionError:
        raise
    except (SyntaxError, UnicodeError) as error:
        raise ExpressionError(
            "the expression is not valid Python",
            got=_clip(getattr(error, "msg", "undecodable text")),
            fix="write powers as `**` and products as `*`",
        ) from None
    except OperatorNotDefined as error:
        raise ExpressionError(
            "the expression uses an operator outside the language",
            expected="+ - * / // % **",
            got=type(error.attr).__name__,
            fix="write powers as `**`",
        ) from None
    except (InvalidExpression, ArithmeticError, ValueError, TypeError, LookupError, AttributeError) as error:
        got = _clip(f"{type(error).__name__}: {error}")
        raise ExpressionError("the expression has no value", got=got) from None
    except (RecursionError, MemoryError):
        raise ExpressionError("the expression is nested too deeply", fix="use fewer parentheses") from None
    return _result(value)


def _clip(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "..."


def _check_depth(tree: ast.AST) -> None:
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    raise ExpressionError("the expression is nested too deeply", expected=f"at most {MAX_DEPTH} levels")


def _result(value: object) -> int | Fraction | float:
    if isinstance(value, Fraction) and value.denominator == 1:
        value = value.numerator
    if isinstance(value, bool) or not isinstance(value, int | Fraction | float):
        raise ExpressionError("the value is not a number", got=type(value).__name__)
    if isinstance(value, float) and not math.isfinite(value):
        raise ExpressionError("the value is not finite", got=str(value))
    if bits_of(value) > MAX_RESULT_BITS:
        raise ExpressionError("the value is too long to print", got=f"{bits_of(value)} bits")
    return value


class _Evaluator(EvalWithCompoundTypes):
    """One evaluation: simpleeval's walk over the syntax tree, with a budget. Neither reusable nor shared."""

    def __init__(self) -> None:
        self._bounded = BoundedArithmetic()
        super().__init__(operators=self._bounded.operators, functions={}, names={})
        self.functions = self._bounded.functions
        self.nodes = {
            ast.Name: self._eval_name,
            ast.UnaryOp: self._eval_unaryop,
            ast.BinOp: self._eval_binop,
            ast.BoolOp: self._eval_boolop,
            ast.Compare: self._eval_compare,
            ast.IfExp: self._eval_ifexp,
            ast.Call: self._eval_call,
            ast.Subscript: self._eval_subscript,
            ast.Slice: self._eval_slice,
            ast.Attribute: self._eval_attribute,
            ast.Constant: self._eval_constant,
            ast.Tuple: self._eval_tuple,
            ast.List: self._eval_list,
            ast.Set: self._eval_set,
            ast.ListComp: self._eval_comprehension,
            ast.SetComp: self._eval_comprehension,
            ast.GeneratorExp: self._eval_comprehension,
        }
        self._scopes: list[dict[str, Any]] = []
        # How many times more the place that is being evaluated will be reached by the loops around it.
        self._repeats = 1

    def _eval(self, node: ast.AST) -> Any:
        self._bounded.spend(1)
        handler = self.nodes.get(type(node))
        if handler is None:
            raise ExpressionError("the expression uses something outside the language", got=type(node).__name__)
        return handler(node)

    def _eval_constant(self, node: ast.Constant) -> Any:
        if not isinstance(node.value, int | float | str):
            raise ExpressionError("a constant is outside the language", got=type(node.value).__name__)
        return node.value

    def _eval_name(self, node: ast.Name) -> Any:
        for scope in reversed(self._scopes):
            if node.id in scope:
                return scope[node.id]
        raise ExpressionError("the expression uses an unknown name", got=_clip(node.id))

    def _eval_attribute(self, node: ast.Attribute) -> Any:
        names = self._bounded.math
        if not (isinstance(node.value, ast.Name) and node.value.id == "math" and node.attr in names):
            raise ExpressionError(
                "the expression uses an unknown attribute",
                expected=", ".join(f"math.{name}" for name in MATH),
                got=_clip(node.attr),
            )
        return names[node.attr]

    def _eval_call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute):
            function = self._eval(node.func)
        else:
            function = self.functions.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if not callable(function):
            raise ExpressionError(
                "the expression calls something outside the language",
                expected=", ".join((*FUNCTIONS, *(f"math.{name}" for name in MATH))),
                got=_clip(ast.unparse(node.func)),
            )
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg not in {"default", "reverse"}:
                raise ExpressionError("a keyword argument is outside the language", got=str(keyword.arg))
            keywords[keyword.arg] = self._eval(keyword.value)
        return function(*self._values(node.args), **keywords)

    def _values(self, nodes: Sequence[ast.expr]) -> list[Any]:
        values: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                values += self._bounded.listed(self._eval(node.value))
            else:
                values.append(self._eval(node))
        return values

    def _eval_list(self, node: ast.List) -> list[Any]:
        return self._values(node.elts)

    def _eval_tuple(self, node: ast.Tuple) -> tuple[Any, ...]:
        return tuple(self._values(node.elts))

    def _eval_set(self, node: ast.Set) -> set[Any]:
        values = self._values(node.elts)
        self._bounded.weigh(values)
        return set(values)

    def _eval_subscript(self, node: ast.Subscript) -> Any:
        container, key = self._eval(node.value), self._eval(node.slice)
        if not isinstance(container, str | list | tuple | range):
            raise ExpressionError("a subscript needs a sequence", got=type(container).__name__)
        if isinstance(key, slice):
            self._bounded.spend(len(container) // 8)
        return container[key]

    def _eval_comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Any:
        values: list[Any] = []
        scope: dict[str, Any] = {}
        self._scopes.append(scope)
        try:
            self._run_loops(node.elt, node.generators, scope, values)
        finally:
            self._scopes.pop()
        if isinstance(node, ast.SetComp):
            self._bounded.weigh(values)
            return set(values)
        return values

    def _run_loops(
        self,
        element: ast.expr,
        loops: Sequence[ast.comprehension],
        scope: dict[str, Any],
        values: list[Any],
    ) -> None:
        if not loops:
            values.append(self._eval(element))
            return
        loop, inner = loops[0], loops[1:]
        items = self._bounded.sized(self._eval(loop.iter))
        outer = self._repeats
        # Nested loops that cannot be paid for are refused before they have used the budget up; an iteration
        # takes at least two steps.
        if 2 * outer * len(items) > self._bounded.steps:
            raise ExpressionError(
                "the loops take too long",
                expected=f"at most {self._bounded.steps // 2} more iterations",
                got=f"{outer * len(items)}",
            )
        for done, item in enumerate(items):
            self._bounded.spend(1)
            self._repeats = outer * (len(items) - done)
            self._bind(loop.target, item, scope)
            if all(self._eval(test) for test in loop.ifs):
                self._run_loops(element, inner, scope, values)
        self._repeats = outer

    def _bind(self, target: ast.expr, value: Any, scope: dict[str, Any]) -> None:
        if isinstance(target, ast.Name):
            scope[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            parts = self._bounded.listed(value)
            if len(parts) != len(target.elts):
                raise ExpressionError("a loop unpacks the wrong number of values", got=str(len(parts)))
            for part, item in zip(target.elts, parts, strict=True):
                self._bind(part, item, scope)
        else:
            raise ExpressionError("a loop variable must be a name", got=type(target).__name__)


__all__ = ["FUNCTIONS", "MATH", "MAX_DEPTH", "MAX_RESULT_BITS", "MAX_TEXT", "ExpressionError", "evaluate"]
