"""Exact arithmetic for anchors: a small language of numbers, evaluated in rationals and never by `eval`.

Numbers, names of an item's variables, + - * / // % **, comparisons (1 or 0), lists for vectors, and a few functions.
Everything is bounded, because an anchor's expression comes from a file that may be somebody else's.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from rrf_design.errors import InputError

LONGEST = 4000
MOST_BITS = 4096
Value = Fraction | list[Any]

_BINARY: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: lambda a, b: Fraction(a // b),
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, Callable[[Sequence[Fraction]], Fraction]] = {
    "abs": lambda v: abs(_one(v)),
    "min": min,
    "max": max,
    "sum": lambda v: sum(v, Fraction(0)),
    "floor": lambda v: Fraction(math.floor(_one(v))),
    "ceil": lambda v: Fraction(math.ceil(_one(v))),
    "gcd": lambda v: Fraction(math.gcd(*(_whole(x) for x in v))),
    "lcm": lambda v: Fraction(math.lcm(*(_whole(x) for x in v))),
    "factorial": lambda v: Fraction(math.factorial(_small(_one(v), 300))),
    "comb": lambda v: Fraction(math.comb(*(_small(x, 1000) for x in _two(v)))),
}


def evaluate(text: str, variables: Mapping[str, Any] | None = None) -> tuple[Fraction, ...]:
    """The exact value as a vector; one number is a vector of length one. InputError says what is not allowed."""
    if len(text) > LONGEST:
        raise InputError(f"expression: longer than {LONGEST} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
        result = _Evaluator({name: _number(value, name) for name, value in (variables or {}).items()}).visit(tree.body)
    except SyntaxError as error:
        raise InputError(f"expression {text[:60]!r}: not an expression ({error.msg})") from None
    except ZeroDivisionError:
        raise InputError(f"expression {text[:60]!r}: division by zero") from None
    except (RecursionError, MemoryError):
        raise InputError(f"expression {text[:60]!r}: nested too deeply") from None
    except (ValueError, TypeError) as error:
        raise InputError(f"expression {text[:60]!r}: {error}") from None
    entries = result if isinstance(result, list) else [result]
    if not entries or any(isinstance(entry, list) for entry in entries):
        raise InputError(f"expression {text[:60]!r}: the result must be a number or a list of numbers")
    return tuple(entries)


class _Evaluator(ast.NodeVisitor):
    def __init__(self, variables: Mapping[str, Value | None]) -> None:
        self.variables = variables

    def visit(self, node: ast.AST) -> Value:
        result: Value = super().visit(node)
        if (
            isinstance(result, Fraction)
            and max(result.numerator.bit_length(), result.denominator.bit_length()) > MOST_BITS
        ):
            raise ValueError(f"a number of more than {MOST_BITS} bits")
        return result

    def generic_visit(self, node: ast.AST) -> Value:
        raise ValueError(f"{type(node).__name__} is not allowed; only arithmetic is")

    def visit_Constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise ValueError(f"{node.value!r} is not a number")
        return Fraction(str(node.value))

    def visit_Name(self, node: ast.Name) -> Value:
        value = self.variables.get(node.id)
        if value is None:
            known = ", ".join(sorted(name for name, v in self.variables.items() if v is not None)) or "none"
            raise ValueError(f"there is no number called {node.id!r} (known: {known})")
        return value

    def visit_List(self, node: ast.List) -> Value:
        return [self.visit(entry) for entry in node.elts]

    visit_Tuple = visit_List  # type: ignore[assignment]

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Value:
        value = _scalar(self.visit(node.operand))
        if isinstance(node.op, ast.USub):
            return -value
        if isinstance(node.op, ast.UAdd):
            return value
        raise ValueError(f"{type(node.op).__name__} is not allowed; only arithmetic is")

    def visit_BinOp(self, node: ast.BinOp) -> Value:
        left, right = _scalar(self.visit(node.left)), _scalar(self.visit(node.right))
        if isinstance(node.op, ast.Pow):
            return _power(left, right)
        action = _BINARY.get(type(node.op))
        if action is None:
            raise ValueError(f"{type(node.op).__name__} is not allowed; only arithmetic is")
        return Fraction(action(left, right))

    def visit_Compare(self, node: ast.Compare) -> Value:
        left = _scalar(self.visit(node.left))
        for kind, comparator in zip(node.ops, node.comparators, strict=True):
            right = _scalar(self.visit(comparator))
            action = _COMPARE.get(type(kind))
            if action is None:
                raise ValueError(f"{type(kind).__name__} is not allowed; only arithmetic is")
            if not action(left, right):
                return Fraction(0)
            left = right
        return Fraction(1)

    def visit_Call(self, node: ast.Call) -> Value:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in _FUNCTIONS or node.keywords:
            raise ValueError(f"the functions are {', '.join(_FUNCTIONS)}")
        arguments = [self.visit(argument) for argument in node.args]
        flat = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], list) else arguments
        return _FUNCTIONS[name]([_scalar(value) for value in flat])


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    power = _small(abs(exponent), MOST_BITS)
    if power * max(base.numerator.bit_length(), base.denominator.bit_length()) > 2 * MOST_BITS:
        raise ValueError("the power is too large")
    if exponent < 0 and base == 0:
        raise ZeroDivisionError
    return Fraction(base ** (power if exponent >= 0 else -power))


def _number(value: Any, name: str) -> Value | None:
    """A variable as an exact number; texts and the like are left out, and named when they are used."""
    if isinstance(value, list | tuple):
        entries = [_number(entry, name) for entry in value]
        return None if any(entry is None for entry in entries) else entries
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return Fraction(str(value))


def _scalar(value: Value) -> Fraction:
    if not isinstance(value, Fraction):
        raise ValueError("a list stands where a number is needed")
    return value


def _whole(value: Fraction) -> int:
    if value.denominator != 1:
        raise ValueError(f"{value} is not a whole number")
    return value.numerator


def _small(value: Fraction, most: int) -> int:
    whole = _whole(value)
    if not 0 <= whole <= most:
        raise ValueError(f"{whole} is not between 0 and {most}")
    return whole


def _one(values: Sequence[Fraction]) -> Fraction:
    if len(values) != 1:
        raise ValueError("the function takes one number")
    return values[0]


def _two(values: Sequence[Fraction]) -> Sequence[Fraction]:
    if len(values) != 2:
        raise ValueError("the function takes two numbers")
    return values
