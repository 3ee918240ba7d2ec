"""The reward language: an expression over named quantities, such as `upright * clip(-vx, 0, 1)`.

Python's parser reads the text, and a whitelist of its nodes is turned into functions of arrays: nothing is
ever evaluated as code, so an expression from a stranger is safe to accept. A name reads the state that a
transition led to, `before(...)` the one it started from. A value is one number per transition (n,), a vector
of them (n, k), or a constant; numbers are float64.
"""

from __future__ import annotations

import ast
import functools
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from rewardfree.data.transitions import STEP_ARRAYS, Transitions
from rewardfree.errors import UserError, near
from rewardfree.rewards.tolerance import tolerance

MOST_CHARACTERS, MOST_NODES, MOST_DEPTH = 2000, 500, 100

CONSTANTS = {"inf": np.inf, "pi": np.pi}


class ExpressionError(UserError):
    """An expression that cannot be read; `position` counts its characters from 0."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(f"{message} (at character {position + 1})")
        self.position = position


class Read(NamedTuple):
    """One reading of a name."""

    name: str
    component: int | None = None
    """Which one of a vector's; None for all of it."""
    before: bool = False


class _Moment(NamedTuple):
    """What is read: the transitions, and which of their two states."""

    transitions: Transitions
    before: bool


_Node = Callable[[_Moment], np.ndarray]


@dataclass(frozen=True)
class Expression:
    """A reward that was read from text. Call it with transitions."""

    text: str
    reads: tuple[Read, ...]
    root: _Node

    def __call__(self, transitions: Transitions) -> Float[np.ndarray, " n"]:
        """One number per transition."""
        with np.errstate(all="ignore"):  # NaN and infinity are for the caller to refuse, with their count
            value = _number(self.root(_Moment(transitions, before=False)))
        if value.ndim > 1:
            length = value.shape[1]
            raise ExpressionError(
                f"a reward is one number, this is a vector of {length}: take its norm, mean or a component",
                0,
            )
        return np.broadcast_to(value, len(transitions))


def parse(text: str, names: Iterable[str]) -> Expression:
    """Read an expression over these names. Raises ExpressionError, which says where, for anything else."""
    if len(text) > MOST_CHARACTERS:
        raise ExpressionError(f"an expression may have {MOST_CHARACTERS} characters", MOST_CHARACTERS)
    for position, character in enumerate(text):
        if not (character.isascii() and character.isprintable()):
            raise ExpressionError(f"{character!r} does not belong in an expression", position)
    start = len(text) - len(text.lstrip())
    try:
        with warnings.catch_warnings(action="ignore"):  # the parser warns of odd literals
            tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        # the parser counts from 1, and says 0 for the end of the text
        at = min(start + error.offset - 1, len(text)) if error.offset else len(text)
        raise ExpressionError(f"this is not an expression: {error.msg}", at) from None
    except (ValueError, MemoryError, RecursionError):
        raise ExpressionError("the expression is nested too deeply or has too long a number", 0) from None
    builder = _Builder(frozenset(names), start)
    root = builder.build(tree.body)
    return Expression(text, tuple(dict.fromkeys(builder.reads)), root)


class _Builder:
    """Turns the whitelisted nodes of a syntax tree into functions of arrays."""

    def __init__(self, names: Collection[str], start: int) -> None:
        self.reads: list[Read] = []
        self._names, self._start = names, start
        self._nodes = self._depth = 0
        self._before = False

    def build(self, node: ast.expr) -> _Node:
        """The function that a node stands for."""
        self._nodes, self._depth = self._nodes + 1, self._depth + 1
        if self._nodes > MOST_NODES or self._depth > MOST_DEPTH:
            raise self._error("the expression is too long or nested too deeply", node)
        kinds: dict[type[ast.expr], Callable[[Any], _Node]] = {
            ast.Constant: self._constant,
            ast.Name: self._name,
            ast.Subscript: self._component,
            ast.UnaryOp: self._unary,
            ast.BinOp: self._binary,
            ast.BoolOp: self._boolean,
            ast.Compare: self._compare,
            ast.Call: self._call,
        }
        if type(node) not in kinds:
            what = type(node).__name__
            raise self._error(
                f"{what} is not part of the language: numbers, names, + - * / ** %,"
                f" comparisons, and/or/not and the functions {', '.join(sorted(FUNCTIONS))} are",
                node,
            )
        found = kinds[type(node)](node)
        self._depth -= 1
        return found

    def _constant(self, node: ast.Constant) -> _Node:
        if not isinstance(node.value, bool | int | float):
            raise self._error(f"{node.value!r} is not a number", node)
        try:
            value = np.array(float(node.value))
        except OverflowError:
            raise self._error("the number is too large", node) from None
        return lambda moment: value

    def _name(self, node: ast.Name) -> _Node:
        if node.id in CONSTANTS:
            value = np.array(CONSTANTS[node.id])
            return lambda moment: value
        if node.id in FUNCTIONS and node.id not in self._names:
            raise self._error(f"{node.id} is a function: {node.id}(...)", node)
        return self._read(node, None)

    def _component(self, node: ast.Subscript) -> _Node:
        if not isinstance(node.value, ast.Name):
            raise self._error("only a named vector has components, as in action[0]", node)
        index = self._number_of(node.slice, "the number of a component")
        if index != int(index):
            raise self._error("the number of a component must be whole", node.slice)
        return self._read(node.value, int(index))

    def _read(self, node: ast.Name, index: int | None) -> _Node:
        name = node.id
        if name not in self._names:
            raise self._error(f"unknown quantity '{name}'{near(name, {*self._names, *FUNCTIONS})}", node)
        if self._before and name in STEP_ARRAYS:
            raise self._error(f"{name} belongs to the step itself: there is none before it", node)
        self.reads.append(Read(name, index, self._before))

        def read(moment: _Moment) -> np.ndarray:
            values = moment.transitions.before(name) if moment.before else moment.transitions[name]
            values = np.asarray(values, np.float64)
            if index is None:
                return values
            if values.ndim == 1 or not -values.shape[1] <= index < values.shape[1]:
                length = f"{values.shape[1]} components" if values.ndim > 1 else "no components"
                raise self._error(f"{name} has {length}: there is no {name}[{index}]", node)
            return values[:, index]

        return read

    def _unary(self, node: ast.UnaryOp) -> _Node:
        inner, operation = self.build(node.operand), type(node.op)
        if operation in (ast.Not, ast.Invert):
            return lambda moment: ~_truth(inner(moment))
        sign = -1.0 if operation is ast.USub else 1.0
        return lambda moment: sign * _number(inner(moment))

    def _binary(self, node: ast.BinOp) -> _Node:
        operation = type(node.op)
        if operation in (ast.BitAnd, ast.BitOr):
            return self._logic(node, [node.left, node.right], _BINARY[operation])
        if operation not in _BINARY:
            raise self._error("this operator is not part of the language: + - * / ** % are", node)
        return self._elementwise(node, [node.left, node.right], _BINARY[operation])

    def _boolean(self, node: ast.BoolOp) -> _Node:
        return self._logic(
            node, node.values, np.logical_and if isinstance(node.op, ast.And) else np.logical_or
        )

    def _compare(self, node: ast.Compare) -> _Node:
        operands = [node.left, *node.comparators]
        for operation, right in zip(node.ops, node.comparators, strict=True):
            if type(operation) not in _COMPARISONS:
                raise self._error("compare with < <= > >= == or !=", right)
        functions = [_COMPARISONS[type(operation)] for operation in node.ops]
        inner = [self.build(operand) for operand in operands]

        def compare(moment: _Moment) -> np.ndarray:
            values = self._aligned([f(moment) for f in inner], node)
            pairs = zip(functions, values, values[1:], strict=False)
            return functools.reduce(np.logical_and, [f(left, right) for f, left, right in pairs])

        return compare

    def _call(self, node: ast.Call) -> _Node:
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
            called = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
            raise self._error(f"unknown function '{called}'{near(called, FUNCTIONS)}", node.func)
        name, arguments = node.func.id, node.args
        low, high = FUNCTIONS[name].arguments
        if not low <= len(arguments) <= high or any(
            isinstance(argument, ast.Starred) for argument in arguments
        ):
            raise self._error(f"use it as {FUNCTIONS[name].usage}", node)
        if node.keywords and name != "tolerance":
            raise self._error(f"{name} takes no named settings: use it as {FUNCTIONS[name].usage}", node)
        match name:
            case "before" | "delta":
                return self._across(node, name)
            case "tolerance":
                return self._tolerance(node)
        function = FUNCTIONS[name].function
        assert function is not None
        if len(arguments) == 1:
            inner = self.build(arguments[0])
            return lambda moment: function(_number(inner(moment)))
        return self._elementwise(node, arguments, function)

    def _across(self, node: ast.Call, name: str) -> _Node:
        """before(x), or delta(x) = x - before(x)."""
        if self._before:
            raise self._error(f"{name} inside before or delta: there is only one step", node)
        now = self.build(node.args[0]) if name == "delta" else None
        self._before = True
        then = self.build(node.args[0])
        self._before = False
        if now is None:
            return lambda moment: then(moment._replace(before=True))
        return lambda moment: _number(now(moment)) - _number(then(moment._replace(before=True)))

    def _tolerance(self, node: ast.Call) -> _Node:
        settings: dict[str, Any] = dict(zip(("lower", "upper", "margin"), node.args[1:], strict=False))
        for keyword in node.keywords:
            allowed = ("lower", "upper", "margin", "sigmoid", "value_at_margin")
            if keyword.arg not in allowed or keyword.arg in settings:
                raise self._error(f"use it as {FUNCTIONS['tolerance'].usage}", node)
            settings[keyword.arg] = keyword.value
        if not {"lower", "upper"} <= settings.keys():
            raise self._error(f"use it as {FUNCTIONS['tolerance'].usage}", node)
        chosen: dict[str, Any] = {
            name: self._word(value) if name == "sigmoid" else self._number_of(value, f"{name} of a tolerance")
            for name, value in settings.items()
        }
        try:
            tolerance(np.zeros(1), **chosen)
        except UserError as error:
            raise self._error(str(error), node) from None
        inner = self.build(node.args[0])
        return lambda moment: tolerance(_number(inner(moment)), **chosen)

    def _word(self, node: ast.expr) -> str:
        """A sigmoid's name, with or without quotes."""
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        raise self._error("a sigmoid is a name, such as linear", node)

    def _number_of(self, node: ast.expr, what: str) -> float:
        """The value of a part that reads nothing."""
        before = len(self.reads)
        value = self.build(node)
        if len(self.reads) > before:
            raise self._error(f"{what} must be a number, not a quantity", node)
        with np.errstate(all="ignore"):
            return float(_number(value(None)))  # type: ignore[arg-type]  # constants look at nothing

    def _elementwise(
        self, node: ast.expr, operands: Sequence[ast.expr], function: Callable[..., np.ndarray]
    ) -> _Node:
        inner = [self.build(operand) for operand in operands]
        return lambda moment: function(*self._aligned([_number(f(moment)) for f in inner], node))

    def _logic(
        self, node: ast.expr, operands: Sequence[ast.expr], function: Callable[..., np.ndarray]
    ) -> _Node:
        inner = [self.build(operand) for operand in operands]

        def logic(moment: _Moment) -> np.ndarray:
            values = self._aligned([_truth(f(moment)) for f in inner], node)
            return functools.reduce(function, values)

        return logic

    def _aligned(self, values: list[np.ndarray], node: ast.expr) -> list[np.ndarray]:
        """One number per transition goes with every component of a vector."""
        lengths = {value.shape[1] for value in values if value.ndim == 2}
        if len(lengths) > 1:
            raise self._error(
                f"vectors of {' and '.join(map(str, sorted(lengths)))} do not go together", node
            )
        return [value[:, None] if lengths and value.ndim == 1 else value for value in values]

    def _error(self, message: str, node: ast.expr) -> ExpressionError:
        return ExpressionError(message, self._start + node.col_offset)


def _number(value: np.ndarray) -> np.ndarray:
    return value.astype(np.float64) if value.dtype == bool else value


def _truth(value: np.ndarray) -> np.ndarray:
    return value if value.dtype == bool else value != 0


def _where(condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(condition != 0, a, b)


def _over_components(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """A reduction: of the components of one vector, or of several numbers."""

    def reduced(*values: np.ndarray) -> np.ndarray:
        if len(values) > 1:
            return function(np.stack(np.broadcast_arrays(*values)), axis=0)
        return function(values[0], axis=-1) if values[0].ndim == 2 else function(values[0][None], axis=0)

    return reduced


class Function(NamedTuple):
    """A function of the language."""

    usage: str
    arguments: tuple[int, int]
    """The least and the largest number of them."""
    function: Callable[..., np.ndarray] | None


_MANY = 20
FUNCTIONS: dict[str, Function] = {
    "abs": Function("abs(x)", (1, 1), np.abs),
    "exp": Function("exp(x)", (1, 1), np.exp),
    "log": Function("log(x)", (1, 1), np.log),
    "sqrt": Function("sqrt(x)", (1, 1), np.sqrt),
    "clip": Function("clip(x, low, high)", (3, 3), np.clip),
    "where": Function("where(condition, a, b)", (3, 3), _where),
    "min": Function("min(a, b, ...), or min(vector)", (1, _MANY), _over_components(np.min)),
    "max": Function("max(a, b, ...), or max(vector)", (1, _MANY), _over_components(np.max)),
    "mean": Function("mean(vector)", (1, _MANY), _over_components(np.mean)),
    "sum": Function("sum(vector)", (1, _MANY), _over_components(np.sum)),
    "norm": Function("norm(vector), or norm(x, y, ...)", (1, _MANY), _over_components(np.linalg.norm)),
    "before": Function("before(x): x in the state before the step", (1, 1), None),
    "delta": Function("delta(x): x - before(x)", (1, 1), None),
    "tolerance": Function(
        "tolerance(x, lower, upper, margin=0, sigmoid=gaussian, value_at_margin=0.1)", (1, 4), None
    ),
}
_BINARY: dict[type[ast.operator], Callable[..., np.ndarray]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
    ast.Mod: np.mod,
    ast.BitAnd: np.logical_and,
    ast.BitOr: np.logical_or,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[..., np.ndarray]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
