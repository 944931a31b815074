"""Values of anchors that nobody has to be asked for: those in the file, and those that exact arithmetic gives.

The one place where such a value is found: a live run reveals it on purchase, `repair` may use it for an anchor that is
owned or selected. Everything else (tests, verifiers, people, commands) has to be fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from sys import float_info
from typing import TYPE_CHECKING, Any

from rrf_design.errors import InputError
from rrf_design.expression import evaluate

if TYPE_CHECKING:
    from rrf_design.blocks import Anchor
    from rrf_design.problem import Problem

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
    """The expression an anchor names as its source, with variables of its own; None for every other source."""
    source = anchor.source
    if isinstance(source, str):
        kind, _, text = source.partition(":")
        return (text.strip(), {}) if kind.strip() == "expression" and text.strip() else None
    if isinstance(source, Mapping) and "expression" in source:
        return str(source["expression"]), source.get("variables", {})
    return None


def known_value(problem: Problem, anchor: Anchor) -> tuple[Fraction, ...] | None:
    """The exact value of an anchor whose source is computable without fetching, one number per row; None for the others.

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
