"""Nonlinear relations of a problem file: products, powers, thresholds and Boolean clauses, as rows with their second derivatives.

They are not rows of B: margins, plans and certificates speak of all fields at once, and a tangent says nothing beyond its
neighbourhood (paper, "Local theory for nonlinear transports"). `repair` uses them locally, and says so. Rows are written once, for
floating point, for numbers that carry their gradient, and (second derivatives) for balls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, Self

from pydantic import Field, model_validator

from rrf_design.field import Entry, Positive, Real, Text

NOT = "not "


class Nonlinear(Entry):
    """Rows that must be 0, over nodes of one number each; exactly one form.

    `product`: z_head = Π z_i. `power`: z_head = factor · Π z_i^p_i of positive answers, which is linear in their logarithms.
    `threshold`: z_head is 1 where that node's answer is at least `at`, else 0. `clause`: at least one of these is 1 ("not x": 0).
    """

    id: Text
    product: tuple[Text, ...] | None = Field(default=None, min_length=1)
    power: dict[Text, Real] | None = Field(default=None, min_length=1)
    factor: Real = 1.0
    threshold: Text | None = None
    at: Real | None = None
    clause: tuple[Text, ...] | None = Field(default=None, min_length=1)
    head: Text | None = None
    weight: Positive = 1.0
    """Its rows are multiplied with the root of it."""
    trusted: bool | None = None
    """With wrong_checks: true for a relation that is never wrong, false for one that may be (where some say so, only those)."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        forms = [name for name in ("product", "power", "threshold", "clause") if getattr(self, name) is not None]
        if len(forms) != 1:
            raise ValueError(f"give one of product, power, threshold and clause, not {' and '.join(forms) or 'none'}")
        if (self.head is None) != (self.clause is not None):
            raise ValueError("a clause has no head" if self.clause is not None else "head is missing")
        if (self.at is None) != (self.threshold is None):
            raise ValueError("at goes with threshold, and threshold with at")
        if self.factor != 1.0 and self.power is None:
            raise ValueError("factor goes with power")
        if len(set(self.nodes)) != len(self.nodes):
            raise ValueError("it names a node twice")
        return self

    @property
    def title(self) -> str:
        return f"nonlinear {self.id!r}"

    @property
    def nodes(self) -> tuple[str, ...]:
        inner = self.product or tuple(self.power or ()) or ((self.threshold,) if self.threshold is not None else ())
        if self.clause is not None:
            return tuple(literal.removeprefix(NOT) for literal in self.clause)
        return (*inner, self.head or "")

    @property
    def bent(self) -> tuple[str, ...]:
        """Nodes along which its rows are not linear, or their slope is rounded."""
        if self.power is not None:
            return tuple(self.power)
        inner = self.product or self.nodes
        return inner if len(inner) > 1 else ()

    @property
    def height(self) -> int:
        return 2 if self.threshold is not None else 1

    def rows(self, value: Mapping[str, Any]) -> list[Any]:
        """The residuals at a field of numbers, or of numbers that carry their gradient."""
        return [sqrt(self.weight) * row for row in self._bare(value)]

    def _bare(self, value: Mapping[str, Any]) -> list[Any]:
        if self.clause is not None:
            return [_product([_falsity(literal, value) for literal in self.clause])]
        head = value[self.head or ""]
        if self.product is not None:
            return [head - _product([value[name] for name in self.product])]
        if self.power is not None:
            return [head - self.factor * _product([value[name] ** p for name, p in self.power.items()])]
        score, at = value[self.threshold or ""], self.at or 0.0
        below = _number(score) < at
        return [head * (at - score), 0.0 * head] if below else [0.0 * head, (1.0 - head) * (score - at)]

    def hessians(self, ball: Mapping[str, Any], place: Mapping[str, int]) -> list[list[list[Any]]]:
        """One matrix of second derivatives per row, over all coordinates, in ball arithmetic; signs are left out."""
        names = self.nodes
        size = len(place)
        result: list[list[list[Any]]] = [[[0] * size for _ in range(size)] for _ in range(self.height)]
        scale = sqrt(self.weight) * (1 + 1e-15)
        for first in names:
            for second in names:
                for row, entry in enumerate(self._second(first, second, ball)):
                    result[row][place[first]][place[second]] = entry * scale
        return result

    def _second(self, first: str, second: str, ball: Mapping[str, Any]) -> list[Any]:
        if self.threshold is not None:
            if ball[self.threshold].overlaps(type(ball[self.threshold])(self.at or 0.0)):
                return [_unbounded(ball), _unbounded(ball)]  # it bends there
            return [1 if first != second else 0] * 2
        if self.power is not None:
            if self.head in (first, second):
                return [0]
            p, q = self.power[first], self.power[second] - (1.0 if first == second else 0.0)
            whole = _product([ball[name] ** type(ball[name])(e) for name, e in self.power.items()])
            return [self.factor * p * q * whole / (ball[first] * ball[second])]
        if first == second or self.head in (first, second):
            return [0]
        if self.clause is not None:
            others = [literal for literal in self.clause if literal.removeprefix(NOT) not in (first, second)]
            return [_product([_falsity(literal, ball) for literal in others])]
        return [_product([ball[name] for name in self.product or () if name not in (first, second)])]


def _falsity(literal: str, value: Mapping[str, Any]) -> Any:
    """0 where the literal holds."""
    negated = literal.startswith(NOT)
    return value[literal.removeprefix(NOT)] if negated else 1.0 - value[literal]


def _product(values: Sequence[Any]) -> Any:
    result: Any = 1.0
    for value in values:
        result = result * value
    return result


def _number(value: Any) -> float:
    return float(getattr(value, "value", value))


def _unbounded(ball: Mapping[str, Any]) -> Any:
    some = next(iter(ball.values()))
    return type(some)(1) / type(some)(0, 1)
