"""What a check says without being asked, and which checks decide an item by themselves.

`known_value` is the one place that finds a value nobody has to be asked for: it stands in the
file, or exact arithmetic gives it (`evaluate`, a small language of numbers in rationals, never
`eval`; an expression may come from somebody else's file, so everything is bounded). A live run
reveals such a value on purchase, `repair` uses it for an anchor that is owned or selected. All
other values (tests, verifiers, people, commands) have to be fetched.

A trusted check that states the delivered value decides the item, whatever was answered. The premise
is then not that few answers are wrong, but that the check is right. Where up to a checks may be
wrong, a + 1 of them that say the same decide the item too, because not all of these are wrong.
"""

from __future__ import annotations

import ast
import math
import operator
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import floor
from sys import float_info
from typing import Any, TypeVar

from rrf_design.blocks import Anchor
from rrf_design.errors import InputError
from rrf_design.market import exact
from rrf_design.noise import stated_within
from rrf_design.premise import Premise
from rrf_design.problem import Problem
from rrf_design.verdict import Verdict

LARGEST = Fraction(float_info.max)


def rows_of(problem: Problem, anchor: Anchor) -> int:
    """How many numbers an anchor states."""
    if anchor.rows is not None:
        return len(anchor.rows)
    return sum(problem.node_by_id[name].dim for name in anchor.nodes)


def variables_of(problem: Problem, anchor: Anchor) -> dict[str, Any]:
    """The variables of the nodes it is about, which its texts may name."""
    found: dict[str, Any] = {}
    for name in anchor.nodes:
        found |= problem.node_by_id[name].variables or {}
    return found


def expression_of(anchor: Anchor) -> tuple[str, Mapping[str, Any]] | None:
    """The expression an anchor names as its source, with variables of its own; None for every other
    source.
    """
    source = anchor.source
    if isinstance(source, str):
        kind, _, text = source.partition(":")
        return (text.strip(), {}) if kind.strip() == "expression" and text.strip() else None
    if isinstance(source, Mapping) and "expression" in source:
        return str(source["expression"]), source.get("variables", {})
    return None


def known_value(problem: Problem, anchor: Anchor) -> tuple[Fraction, ...] | None:
    """The exact value of an anchor whose source is computable without fetching, one number per row;
    None for the others.

    An expression goes before a value in the file: the value is then what an earlier run found.
    """
    rows = rows_of(problem, anchor)
    named = expression_of(anchor)
    if named is not None:
        text, own = named
        numbers = evaluate(text, variables_of(problem, anchor) | dict(own))
        if len(numbers) != rows:
            raise InputError(
                f"anchor {anchor.id!r}: the expression gives {len(numbers)} numbers, but the anchor has {rows} rows"
            )
        if any(abs(number) > LARGEST for number in numbers):
            raise InputError(f"anchor {anchor.id!r}: the expression gives a number that no double can hold")
        return numbers
    if anchor.value is None or anchor.source not in (None, "value"):
        return None
    given = anchor.value if isinstance(anchor.value, tuple) else (anchor.value,) * rows
    return tuple(Fraction(str(number)) for number in given)


Stated = TypeVar("Stated", bound=Hashable)
FREE = 1e-9
"""A check that costs nothing costs this, where something is divided by its cost."""


def delivered_node(problem: Problem) -> str:
    """The node whose value is handed over: the first that is delivered, or the first of all."""
    return problem.deliver[0] if problem.deliver else problem.nodes[0].id


def sole_delivered(problem: Problem, held: Collection[str] = ()) -> str | None:
    """The node whose value is all that must be right, of those that are asked in any case or
    `held`; None where there are several, which one check can't decide.
    """
    there = [node.id for node in problem.nodes if node.cost is None or node.id in held]
    wanted = there if problem.deliver is None else list(problem.deliver)
    return wanted[0] if len(wanted) == 1 else None


def _premise_of(problem: Problem, held: Iterable[str] = ()) -> Premise:
    """Which checks may be wrong where these are held beside what is owned, and how many of them."""
    blocks = problem.held_beside(held)
    return problem.whole.premise.among(blocks, [node.id for node in problem.nodes])


def decides(problem: Problem, anchor: Anchor, node: str, *, held: Collection[str] = ()) -> bool:
    """Whether an anchor's value, once it is held, is the value of this node: it is not suspect,
    states the whole of it, and is not noisy, or not more than is accepted (`delta`).

    Where checks may be wrong, whatever does not say `trusted = true` is suspect unless others that
    are owned or `held` are marked (`rrf_design.premise`).
    """
    if anchor.trusted is False or anchor.rate is not None or not states(anchor, node):
        return False
    if problem.delta is not None and stated_within(problem, anchor, held=held) > problem.delta:
        return False
    if anchor.trusted is True or not problem.wrong_checks:
        return True
    return anchor.id not in _premise_of(problem, (*held, anchor.id)).suspects


def states(anchor: Anchor, node: str) -> bool:
    """Whether its value, where it is right, is the value of this node: it states the whole of it,
    and is not noisy.
    """
    exact = anchor.sigma is None and anchor.covariance is None and anchor.uncertainty == 0.0
    return exact and anchor.rows is None and anchor.nodes == (node,)


def suspect_statements(problem: Problem, node: str, *, held: Collection[str] = ()) -> list[Anchor]:
    """Checks that state the value of a node and may be wrong once they are held, too; none where no
    number of wrong ones is assumed.
    """
    if not problem.whole.premise.wrong_checks:
        return []
    stating = [anchor for anchor in problem.anchors if states(anchor, node)]
    return [anchor for anchor in stating if anchor.id in _premise_of(problem, (*held, anchor.id)).suspects]


def quorum(problem: Problem, held: Collection[str] = ()) -> int:
    """So many checks that may be wrong, and say the same, are not all wrong: what they say is the
    value.
    """
    return _premise_of(problem, held).wrong_checks + 1


def agreed(
    problem: Problem, said: Mapping[str, Stated], node: str, *, held: Collection[str] = ()
) -> tuple[Stated, int] | None:
    """The value that a quorum of such checks states, and how many were asked; None where none does,
    or two quorums differ. `held` is what is held beside those that said something.
    """
    there = {*held, *said}
    listed = [said[anchor.id] for anchor in suspect_statements(problem, node, held=there) if anchor.id in said]
    enough = quorum(problem, there)
    found = [value for value, times in Counter(listed).items() if times >= enough]
    return (found[0], len(listed)) if len(found) == 1 else None


def agreed_premise(problem: Problem, asked: int, held: Collection[str]) -> str:
    premise = _premise_of(problem, held)
    many = f"at most {premise.wrong_checks} of {asked} checks {'is' if premise.wrong_checks == 1 else 'are'} wrong"
    return many if premise.sure is None else f"{many} (with probability {floor(premise.sure * 10_000) / 10_000:g})"


def is_person(anchor: Anchor) -> bool:
    """Whether a person is asked for its value."""
    source = anchor.source
    if isinstance(source, Mapping):
        return "person" in source
    return isinstance(source, str) and source.partition(":")[0].strip() == "person"


def decisive_checks(problem: Problem, *, without: Collection[str] = ()) -> list[Anchor]:
    """The checks on sale that would decide a problem that delivers one value, where those named
    `without` are held or gone: machines before people, then the cheapest.
    """
    node = sole_delivered(problem, without)
    if node is None:
        return []
    left = [anchor for anchor in problem.anchors if not anchor.owned and anchor.id not in without]
    found = [anchor for anchor in left if decides(problem, anchor, node, held=without)]
    return cheapest_first(found)


def machine_deciding(problem: Problem, *, without: Collection[str] = ()) -> list[Anchor]:
    """Of these the ones that leave nothing to be assumed of answers and ask no person: tests,
    calculators, values of the row; the cheapest first.
    """
    found = decisive_checks(problem, without=without)
    return [one for one in found if not is_person(one) and decided_verdict(one) is Verdict.CHECKED]


def cheapest_first(anchors: Iterable[Anchor]) -> list[Anchor]:
    """Machines before people, then by the declared price of each alone; what several cost together
    is the market's matter.
    """
    return sorted(anchors, key=lambda anchor: (is_person(anchor), exact(anchor.cost or 0.0)))


def worth_of(anchor: Anchor) -> float:
    """How many items a unit of money decides with this check."""
    return 1.0 / max(anchor.cost or 0.0, FREE)


def _kind(anchor: Anchor) -> set[str]:
    """What its value comes from: the keys of its source."""
    return set(anchor.source) if isinstance(anchor.source, Mapping) else set()


def decided_verdict(anchor: Anchor) -> Verdict:
    """The verdict of an item that this check has decided: the value is checked, unless a model
    verified it, whose word is a premise.
    """
    return Verdict.CONSISTENT if "verifier" in _kind(anchor) else Verdict.CHECKED


def decided_premise(anchor: Anchor, within: float = 0.0) -> str:
    """What the value of an item rests on that this check has decided, up to `within`."""
    off = noise_words(within)
    if "verifier" in _kind(anchor):
        return f"the verifier is right ({anchor.id}){off}"
    return f"{anchor.id} is right" + (", which ran the given tests" if "tests" in _kind(anchor) else "") + off


def noise_words(within: float) -> str:
    """What a premise about checks adds where rows are noisy."""
    return f", up to noise of {within:.4g}" if within else ""


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
    """The exact value as a vector; one number is a vector of length one.

    InputError says what is not allowed.
    """
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
    """A variable as an exact number; texts and the like are left out, and named when they are
    used.
    """
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
