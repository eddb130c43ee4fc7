"""Facts about a coder's program, read off its syntax tree: is it Python, and is its output computed or typed in?

A value is *typed in* if the program prints a literal, also through variables, conversions and operations that change
nothing (`print(int("42") + 0)`), or if the printed value, a number too large to stand in a program by chance, is a
literal on the way to what is printed although the problem does not give it (`print(max(42, 0))`). That is a
heuristic: it cannot see that `print(6 * 7)` was thought of backwards.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction

from mappa_envs.judges.math_rules.values import near, number, numbers_in

MAX_CODE = 20_000
"""A longer program is not looked into; solutions of the problems at hand are a few lines."""
CHANCE = 20
"""Integers up to this size occur in programs by chance and prove nothing."""
_MAX_DEPTH = 60
_MAX_BINDINGS = 5
_MAX_RATIO = 10**60
_PRINTERS = {"print", "pprint", "display", "write"}
_CONVERSIONS = {
    "int", "float", "str", "repr", "abs", "round", "floor", "ceil", "list", "tuple", "set", "Fraction", "Decimal",
    "Rational", "Integer", "Float", "S", "sympify", "eval", "format",
}  # fmt: skip

Bindings = Mapping[str, Sequence[ast.AST | None]]
"""What each name is bound to in a program; None stands for something that is no expression of its own."""


def parse_quietly(code: str) -> ast.Module | None:
    """Return the syntax tree of a program of at most `MAX_CODE` characters, or None if it has none."""
    if len(code) > MAX_CODE:
        return None
    try:
        with warnings.catch_warnings():
            # Agents write invalid escapes; their warnings are not ours.
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class Literals:
    """Tells literals, and what stands for one, from what is computed; each syntax tree is looked at once.

    Args:
        bindings: Of the names of the program.
        value: What was printed.
        given: Numbers of the problem; a ratio of two of them is no typed-in fraction.
    """

    def __init__(self, bindings: Bindings, value: str, given: Set[Fraction]) -> None:
        self._bindings, self._value, self._given = bindings, value, given
        self._known: dict[int, bool] = {}

    def typed(self, node: ast.AST | None, depth: int = 0) -> bool:
        """Tell whether an expression is a literal, or one behind conversions and operations that change nothing.

        What is nested too deeply, or refers to itself, counts as computed.
        """
        if node is None or depth > _MAX_DEPTH:
            return False
        if id(node) not in self._known:
            self._known[id(node)] = False
            self._known[id(node)] = self._look(node, depth)
        return self._known[id(node)]

    def _look(self, node: ast.AST, depth: int) -> bool:
        parts: Sequence[ast.AST | None]
        match node:
            case ast.Constant():
                return True
            case ast.UnaryOp(operand=part):
                parts = [part]
            case ast.FormattedValue(value=part) | ast.NamedExpr(value=part) | ast.Starred(value=part):
                parts = [part]
            case ast.JoinedStr(values=values) | ast.BoolOp(values=values):
                parts = values
            case ast.Tuple(elts=values) | ast.List(elts=values) | ast.Set(elts=values):
                parts = values
            case ast.IfExp(test=test, body=body, orelse=other):
                parts = [test, body, other]
            case ast.Subscript(value=ast.List() | ast.Tuple() as sequence, slice=key):
                parts = [sequence, key]
            case ast.BinOp(left=left, right=right) if self._changes_nothing(node):
                parts = [left, right]
            case ast.Call(func=function, args=values) if _name_of(function) in _CONVERSIONS:
                if not self._passes_on(values):
                    return False
                parts = values
            case ast.Name(id=name):
                parts = self._bindings.get(name, ())[:_MAX_BINDINGS]
                if not parts or len(self._bindings[name]) > _MAX_BINDINGS:
                    return False
            case _:
                return False
        return all([self.typed(part, depth + 1) for part in parts])

    def _passes_on(self, arguments: Sequence[ast.expr]) -> bool:
        """Whether a conversion gives back what it was given: `Fraction(20, 45)` is not, `Fraction(4, 9)` is."""
        match arguments:
            case [ast.Constant(value=str() as text)]:
                return text.strip() == self._value
            case [_]:
                return True
            case [ast.Constant(value=top), ast.Constant(value=bottom)]:
                return self._is_ratio(top, bottom)
        return False

    def _changes_nothing(self, node: ast.BinOp) -> bool:
        left, right = (side.value if isinstance(side, ast.Constant) else None for side in (node.left, node.right))
        match node.op:
            case ast.Add():
                return any(side in (0, "") for side in (left, right))
            case ast.Sub():
                return right == 0
            case ast.Mult():
                return 1 in (left, right)
            case ast.Div():
                return right == 1 or self._is_ratio(left, right)
            case ast.FloorDiv() | ast.Pow():
                return right == 1
            case ast.Mod():
                return isinstance(left, str)
        return False

    def _is_ratio(self, top: object, bottom: object) -> bool:
        """Whether two integers are the printed fraction, and not both from the problem."""
        if not (isinstance(top, int) and isinstance(bottom, int)) or max(abs(top), abs(bottom)) > _MAX_RATIO:
            return False
        return f"{top}/{bottom}" == self._value and not {Fraction(top), Fraction(bottom)} <= self._given


def _name_of(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def stands_in(nodes: Iterable[ast.AST], value: str, given: Set[Fraction]) -> bool:
    """Tell whether a value is a literal of the given syntax trees that the problem does not give.

    Args:
        nodes: Syntax trees.
        value: As printed; only integers beyond `CHANCE` and decimals of three figures can be told.
        given: Numbers of the problem.
    """
    target = number(value)
    if target is None or abs(target) in near(given):
        return False
    figures = len(value.strip("-+0.").replace(".", ""))
    if abs(target) <= CHANCE if target.denominator == 1 else figures < 3:
        return False
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and abs(target) in _numbers_of(part.value):
                return True
    return False


def _numbers_of(constant: object) -> set[Fraction]:
    if isinstance(constant, str):
        return numbers_in(constant)
    if isinstance(constant, bool) or not isinstance(constant, int | float):
        return set()
    if isinstance(constant, float):
        return numbers_in(repr(constant))
    return {Fraction(abs(constant))}


@dataclass(frozen=True, slots=True)
class _Printer:
    """A place that prints."""

    printed: tuple[ast.AST, ...]
    conditions: tuple[ast.AST, ...]
    """Tests and iterations that decide whether and how often it is reached."""
    place: tuple[int, int]


def typed_in(code: str, value: str, problem: str, *, before: Sequence[str] = ()) -> bool | None:
    """Tell whether the value that a program printed was typed in rather than computed.

    Args:
        code: The program.
        value: The last line that it printed.
        problem: The problem statement; its own numbers may stand anywhere.
        before: Programs that ran before in the same kernel, whose variables it may use.

    Returns:
        None if the program cannot be read (longer than `MAX_CODE`, or not plain Python).
    """
    tree = parse_quietly(code)
    if tree is None:
        return None
    given = numbers_in(problem, words=True)
    if (target := number(value)) is not None and given == {abs(target)}:
        return False
    printer = _last_printer(tree)
    if printer is None:
        return False
    earlier = [parsed for text in before[-3:] if (parsed := parse_quietly(text)) is not None]
    bindings = _bindings([*earlier, tree])
    literals = Literals(bindings, value, given)
    if printer.printed and all(literals.typed(part) for part in (*printer.conditions, *printer.printed)):
        return True
    return stands_in(_reaching([*printer.printed, *printer.conditions], bindings), value, given)


def _last_printer(tree: ast.Module) -> _Printer | None:
    """Return the place that printed the last line, as far as the text of the program tells."""
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        called = {_name_of(node.func) for node in ast.walk(last) if isinstance(node, ast.Call)}
        if called.isdisjoint(_PRINTERS | functions):
            # The kernel shows the value of a last expression.
            return _Printer((last.value,), (), (last.lineno, last.col_offset))
    printers: list[_Printer] = []
    stack: list[tuple[ast.AST, tuple[ast.AST, ...]]] = [(tree, ())]
    while stack:
        node, conditions = stack.pop()
        match node:
            case ast.Call(func=function, args=parts) if _name_of(function) in _PRINTERS:
                printers.append(_Printer(tuple(parts), conditions, (node.lineno, node.col_offset)))
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                conditions = _with(conditions, test)
            case ast.For(iter=test):
                conditions = _with(conditions, test)
        stack += [(child, conditions) for child in ast.iter_child_nodes(node)]
    return max(printers, key=lambda printer: printer.place, default=None)


def _with(conditions: tuple[ast.AST, ...], test: ast.AST) -> tuple[ast.AST, ...]:
    match test:
        case ast.Constant() | ast.Compare(left=ast.Name(id="__name__")):
            return conditions
        case ast.Call(func=ast.Name(id="range"), args=args) if all(isinstance(arg, ast.Constant) for arg in args):
            return conditions
    # The innermost ones decide; keeping all of them would be quadratic on deep nesting.
    return (*conditions, test)[-5:]


def _bindings(trees: Iterable[ast.Module]) -> dict[str, list[ast.AST | None]]:
    bound: dict[str, list[ast.AST | None]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            for name, value in _bound_by(node):
                bound.setdefault(name, []).append(value)
    return bound


def _bound_by(node: ast.AST) -> Iterable[tuple[str, ast.AST | None]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _targets(target, value)
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
            yield name, value
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            yield name, value
        case ast.AugAssign(target=ast.Name(id=name)):
            yield name, node
        case ast.For(target=goal):
            yield from ((part.id, node) for part in ast.walk(goal) if isinstance(part, ast.Name))
        case ast.FunctionDef(name=name):
            yield name, node
        case ast.arg(arg=name):
            yield name, None


def _targets(target: ast.expr, value: ast.expr) -> Iterable[tuple[str, ast.AST | None]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        if len(target.elts) == len(value.elts) and not any(isinstance(e, ast.Starred) for e in value.elts):
            for goal, part in zip(target.elts, value.elts, strict=True):
                yield from _targets(goal, part)
    else:
        for name in (node.id for node in ast.walk(target) if isinstance(node, ast.Name)):
            # Something is done to it, or it is taken out of a whole: its value comes from there, changed.
            yield name, ast.Expr(value)


def _reaching(nodes: Sequence[ast.AST], bindings: Bindings) -> list[ast.AST]:
    """Return the syntax trees that the given ones depend on through names, themselves included; each name once."""
    found: list[ast.AST] = []
    seen: set[str] = set()
    walked: set[int] = set()
    queue = list(nodes)
    while queue:
        node = queue.pop()
        if id(node) in walked:
            continue
        walked.add(id(node))
        found.append(node)
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id not in seen:
                seen.add(part.id)
                queue += [bound for bound in bindings.get(part.id, ()) if bound is not None]
    return found
