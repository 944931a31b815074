"""How answers are related, and what is known of them: relations z_head = T z_tail + offset or Σ
C_i z_i = offset, anchors A z = b (paper, "Typed transports", "Anchors"), and nonlinear
relations.

A block is owned (no cost) or on sale (a cost). Its rows enter B multiplied by sqrt(w/m), where w is
the weight of its family and m the number of its members that are held, owned or bought, so that
copies of one fact add nothing; then they are whitened by sigma or covariance. What is on sale and
was not bought changes nothing. Where no family has members on sale, BᵀB is a linear function of the
purchases and the margin never falls when a block is bought; members with other rows dilute each
other.

Nonlinear relations (products, powers, thresholds, Boolean clauses) are not rows of B: margins,
plans and certificates speak of all fields at once, and a tangent says nothing beyond its
neighbourhood (paper, "Local theory for nonlinear transports"). `repair` uses them locally, and
says so. Their rows are written once, for floating point, for numbers that carry their gradient,
and (second derivatives) for balls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_serializer, model_validator

from rrf_design.field import Entry, Matrix, NonNegative, Positive, Real, Table, Text

Index = Annotated[int, Field(strict=True, ge=0)]


class Transport(Entry):
    """How a valid answer changes along a relation, z_head = T z_tail + offset: at most one map, and
    the identity without any.

    Everything that depends on the kind of a map stands in this class: its matrix, both directions,
    what it is called. A new kind is one more field with its line in `picks` and in `label`.
    """

    scale: Real | None = None
    matrix: Matrix | None = None
    permute: tuple[Index, ...] | None = None
    select: tuple[Index, ...] | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, data: Any) -> Any:
        if data == "identity":
            return {}
        if isinstance(data, str):
            *others, last = Transport.model_fields
            table = f"a table with {', '.join(others)} or {last}"
            raise ValueError(f'unknown transport {data!r}; use "identity" or {table}')
        return data

    @model_validator(mode="after")
    def _only_one(self) -> Self:
        given = [name for name in Transport.model_fields if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"a transport is one map, not {' and '.join(given)}")
        if self.matrix is not None and len({len(row) for row in self.matrix}) != 1:
            raise ValueError("the matrix must be a non-empty list of rows of one length")
        if self.permute is not None and sorted(self.permute) != list(range(len(self.permute))):
            raise ValueError(f"permute = {list(self.permute)} is not a permutation of 0..{len(self.permute) - 1}")
        return self

    @model_serializer
    def _to_name(self) -> Any:
        given = {name: value for name, value in self.__dict__.items() if value is not None}
        return given or "identity"

    @property
    def kind(self) -> str:
        """The name of the map: scale, matrix, permute, select or identity."""
        return next((name for name in Transport.model_fields if getattr(self, name) is not None), "identity")

    @property
    def label(self) -> str:
        """The map in a word or two: identity, ×3, 2×3 matrix, permute 1 0, select 0 2."""
        if self.scale is not None:
            return f"×{self.scale:g}"
        if self.matrix is not None:
            return f"{len(self.matrix)}×{len(self.matrix[0])} matrix"
        places = self.permute or self.select or ()
        return " ".join([self.kind, *map(str, places[:6]), *("…" for _ in places[6:7])])

    @property
    def factor(self) -> float:
        """What every coordinate is multiplied with."""
        return 1.0 if self.scale is None else self.scale

    @property
    def entrywise(self) -> bool:
        """Each coordinate of the head is one of the tail's, times `factor`, and all are used."""
        return self.matrix is None and self.select is None

    @property
    def invertible(self) -> bool:
        """Whether `backward` exists without the rounding of an inverse matrix."""
        return self.entrywise and self.factor != 0.0

    def forward(self, tail: Sequence[float], offset: float | Sequence[float] = 0.0) -> tuple[float, ...]:
        """What an answer of the tail means at the head, T z + offset, of an `entrywise` map.

        >>> Transport(permute=(1, 0)).forward((3.0, 4.0), offset=1.0)
        (5.0, 4.0)
        """
        order, factor = self.picks(tail_dim=len(tail), head_dim=len(tail))
        return tuple(factor * tail[place] + step for place, step in zip(order, _steps(offset, tail), strict=True))

    def backward(self, head: Sequence[float], offset: float | Sequence[float] = 0.0) -> tuple[float, ...]:
        """What an answer of the head means at the tail, T⁻¹(z − offset), of an `invertible` map.

        >>> Transport(scale=2.0).backward((7.0,), offset=1.0)
        (3.0,)
        """
        order, factor = self.picks(tail_dim=len(head), head_dim=len(head))
        tail = [0.0] * len(head)
        for value, place, step in zip(head, order, _steps(offset, head), strict=True):
            tail[place] = (value - step) / factor
        return tuple(tail)

    def picks(self, *, tail_dim: int, head_dim: int) -> tuple[Sequence[int], float]:
        """Every map but a matrix takes one coordinate of the tail per row: which ones, and times
        what; ValueError when it can't act between these fibers.
        """
        if self.select is not None:
            if len(self.select) != head_dim or max(self.select, default=0) >= tail_dim:
                raise ValueError(
                    f"select = {list(self.select)} must name {head_dim} coordinates of the tail, each below {tail_dim}"
                )
            return self.select, 1.0
        if tail_dim != head_dim:
            raise ValueError(
                f"transport {self.kind} needs equal dimensions, but the tail has {tail_dim} and the head {head_dim}"
            )
        if self.permute is not None:
            if len(self.permute) != tail_dim:
                raise ValueError(f"permute has length {len(self.permute)}, but the fibers have dimension {tail_dim}")
            return self.permute, 1.0
        return range(tail_dim), self.factor

    def as_matrix(self, *, tail_dim: int, head_dim: int) -> NDArray[np.float64]:
        """The map as (head_dim, tail_dim); ValueError when it can't act between these fibers."""
        if self.matrix is None:
            columns, factor = self.picks(tail_dim=tail_dim, head_dim=head_dim)
            picked = np.zeros((head_dim, tail_dim))
            picked[range(head_dim), columns] = factor
            return picked
        result = np.array(self.matrix, dtype=np.float64)
        if result.shape != (head_dim, tail_dim):
            raise ValueError(
                f"the transport matrix is {'×'.join(map(str, result.shape))}, but maps dimension {tail_dim} to"
                f" {head_dim} and so must be {head_dim}×{tail_dim}"
            )
        return result

    def entries(self, *, tail_dim: int, head_dim: int) -> tuple[list[int], list[int], list[float]]:
        """Rows, columns and values of the map's matrix, without the zeros of a full one."""
        if self.matrix is None:
            columns, factor = self.picks(tail_dim=tail_dim, head_dim=head_dim)
            return list(range(head_dim)), list(columns), [factor] * head_dim
        matrix = self.as_matrix(tail_dim=tail_dim, head_dim=head_dim)
        rows, places = np.nonzero(matrix)
        return rows.tolist(), places.tolist(), matrix[rows, places].tolist()


def _steps(offset: float | Sequence[float], value: Sequence[float]) -> Sequence[float]:
    return [offset] * len(value) if isinstance(offset, int | float) else offset


class Block(Entry):
    """What relations and anchors share: identity, price, weight and noise."""

    id: Text
    weight: Positive = 1.0
    """Of the family: the m members that are held share it, w/m each."""
    family: Text | None = None
    """Members of one family state one fact; without a name, a family of its own."""
    correlation: Annotated[float, Field(strict=True, ge=0, le=1)] | None = None
    """Of the noise within the family: 1, the default for its weight, makes copies of its members; 0
    independent measurements.
    """
    sigma: Positive | None = None
    covariance: Matrix | None = None
    """Noise of the rows: they are whitened with it. At most one of sigma, covariance, metric."""
    estimated_from: Annotated[int, Field(strict=True, ge=2)] | None = None
    """How many repeats sigma or covariance was estimated from: it is then raised by what so few may
    have missed.
    """
    metric: Positive | Matrix | None = None
    """Positive definite W on the rows, when their norm is declared rather than estimated."""
    uncertainty: NonNegative = 0.0
    """Radius in operator norm around this block, after weighting and whitening."""
    cost: NonNegative | None = None
    """Present: on sale. Absent: owned already."""
    trusted: bool | None = None
    """True: never wrong, like an exact calculation.

    False: a suspect among `wrong_checks`; where no block that is held says so, all others are.
    """
    rate: Annotated[float, Field(strict=True, gt=0, lt=1)] | None = None
    """Wrong altogether with at most this probability, independently of others: a suspect, like a
    judge that says yes or no.
    """
    requires: tuple[Text, ...] = ()
    excludes: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _one_noise(self) -> Self:
        if (self.sigma is not None) + (self.covariance is not None) + (self.metric is not None) > 1:
            given = [name for name in ("sigma", "covariance", "metric") if getattr(self, name) is not None]
            raise ValueError(f"give only one of {' and '.join(given)}")
        if self.estimated_from is not None and self.sigma is None and self.covariance is None:
            raise ValueError("estimated_from speaks of sigma or covariance; give one of them")
        if self.correlation is not None and self.family is None:
            raise ValueError("correlation speaks of the members of a family; name the family")
        if self.trusted and self.rate is not None:
            raise ValueError("trusted = true says that it is never wrong, but it has a rate; leave one of the two out")
        if self.trusted and (self.uncertainty > 0 or self.sigma is not None or self.covariance is not None):
            why = "uncertain" if self.uncertainty > 0 else "noisy"
            raise ValueError(
                f"trusted = true says that it is exact, but it is declared {why}; leave one of the two out"
            )
        return self

    @property
    def title(self) -> str:
        """How messages call it: relation 'r01'."""
        return f"{type(self).__name__.lower()} {self.id!r}"

    @property
    def family_name(self) -> str:
        return self.family if self.family is not None else f"\0{self.id}"

    @property
    def owned(self) -> bool:
        return self.cost is None


class Relation(Block):
    """Rows z_head − T z_tail = offset between two nodes, or rows Σ C_i z_i = offset among several.

    Among several: `sum` (z_head = Σ z_i + offset), `difference` (z_head = z_first − z_second +
    offset), or any `rows`. A head of one coordinate is the sum of all coordinates of its parts; a
    longer one adds coordinate by coordinate.
    """

    tail: Text | None = None
    head: Text | None = None
    transport: Transport = Transport()
    sum: tuple[Text, ...] | None = None
    """The nodes that add up to the head."""
    difference: tuple[Text, ...] | None = None
    """The head is the first of these minus the second."""
    rows: dict[Text, Matrix] | None = None
    """Node to its part C_i of the rows, all of one height."""
    offset: Real | tuple[Real, ...] = 0.0

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        several = self.sum is not None or self.difference is not None or self.rows is not None
        if self.tail is not None and self.head is not None and not several:
            return self  # as most are, where there are many
        given = [name for name in ("tail", "sum", "difference", "rows") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"a relation has one form: give only one of {' and '.join(given)}")
        if not given:
            raise ValueError("tail is missing (or sum, difference or rows, for a relation among several nodes)")
        if self.rows is None and self.head is None:
            raise ValueError("head is missing")
        if self.tail is None:
            self._check_several()
        return self

    def _check_several(self) -> None:
        if "transport" in self.model_fields_set:
            raise ValueError(
                "transport goes with tail and head; among several nodes give rows, which may hold any factors"
            )
        if self.rows is not None:
            if self.head is not None:
                raise ValueError("rows name all their nodes; leave head out")
            if not self.rows or any(not part or len({len(row) for row in part}) != 1 for part in self.rows.values()):
                raise ValueError("rows must give every node a non-empty list of rows of one length")
            if len({len(part) for part in self.rows.values()}) != 1:
                heights = ", ".join(f"{name} {len(part)}" for name, part in self.rows.items())
                raise ValueError(f"rows must have as many rows for every node, not {heights}")
        if self.sum is not None and not self.sum:
            raise ValueError("sum must name at least one node")
        if self.difference is not None and len(self.difference) != 2:
            raise ValueError(f"difference must name two nodes, not {len(self.difference)}")
        if len(set(self.nodes)) != len(self.nodes):
            raise ValueError("it names a node twice; give rows, which may hold any factor")

    @property
    def pair(self) -> tuple[str, str] | None:
        """Tail and head; None for a relation among several nodes."""
        return None if self.tail is None or self.head is None else (self.tail, self.head)

    def carry(
        self, said: str | tuple[float, ...] | None, offset: float | Sequence[float] | None = None, *, back: bool = False
    ) -> str | tuple[float, ...] | None:
        """What an answer at the tail means at the head (`back`: the other way), with another offset
        than the declared one where an item has its own; None where it means nothing.

        A label can only stay what it is. Numbers are carried by maps that take each coordinate to
        one other.
        """
        if said is None or isinstance(said, str):
            return said if self.transport.kind == "identity" else None
        if not (self.transport.invertible if back else self.transport.entrywise):
            return None
        along = self.transport.backward if back else self.transport.forward
        return along(said, self.offset if offset is None else offset)

    @property
    def parts(self) -> tuple[str, ...]:
        """The nodes that a sum or a difference is made of."""
        return self.sum or self.difference or ()

    @property
    def nodes(self) -> tuple[str, ...]:
        if self.rows is not None:
            return tuple(self.rows)
        if self.tail is None:
            return (*self.parts, self.head or "")
        return (self.tail,) if self.tail == self.head else (self.tail, self.head or "")


class Anchor(Block):
    """Rows A z = value on one node, or on several (`nodes`, with the columns of A in their
    order).
    """

    node: Text | None = None
    over: tuple[Text, ...] | None = Field(default=None, alias="nodes")
    rows: Matrix | None = None
    """None is the identity."""
    value: Real | tuple[Real, ...] | None = None
    """Optional until it is bought."""
    source: Text | Table | None = None
    """Where a live run gets the value from when the anchor is bought."""

    @model_validator(mode="before")
    @classmethod
    def _identity_rows(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("rows"), str):
            if data["rows"] != "identity":
                raise ValueError(f'rows = {data["rows"]!r}; use "identity" or a list of rows')
            return {key: value for key, value in data.items() if key != "rows"}
        return data

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.node is None) == (self.over is None):
            raise ValueError("give exactly one of node and nodes")
        if self.over is not None and (not self.over or len(set(self.over)) != len(self.over)):
            raise ValueError("nodes must name at least one node, and none of them twice")
        if self.rows is not None and (not self.rows or len({len(row) for row in self.rows}) != 1):
            raise ValueError("rows must be a non-empty list of rows of one length")
        return self

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.over if self.over is not None else (self.node or "",)


class SharedNoise(Entry):
    """Blocks whose noise is not independent: two labels of one annotator.

    Each declares its own sigma or covariance.
    """

    id: Text
    blocks: tuple[Text, ...]
    correlation: Annotated[float, Field(strict=True, ge=0, le=1)] | None = None
    """No combination of the rows of one block correlates more than this with one of another's."""
    covariance: Matrix | None = None
    """Or: the covariance of all their rows, block by block in this order."""
    estimated_from: Annotated[int, Field(strict=True, ge=2)] | None = None
    """How many repeats of all the blocks together the covariance was estimated from; each block
    says the same.
    """

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.correlation is None) == (self.covariance is None):
            raise ValueError("give exactly one of correlation and covariance")
        if self.estimated_from is not None and self.covariance is None:
            raise ValueError("estimated_from speaks of the covariance of all blocks; give it")
        if len(set(self.blocks)) < max(2, len(self.blocks)):
            raise ValueError("blocks must name at least two blocks, and none of them twice")
        return self


class Rule(Entry):
    """At least / at most so many of these blocks (no more than three labels per reviewer)."""

    id: Text
    blocks: tuple[Text, ...]
    at_least: Annotated[int, Field(strict=True, ge=0)] | None = None
    at_most: Annotated[int, Field(strict=True, ge=0)] | None = None


class Tier(Entry):
    """Prices that depend on how many are bought: the i-th block of these costs prices[i], the last
    price repeats.
    """

    id: Text
    blocks: tuple[Text, ...]
    prices: tuple[NonNegative, ...] = Field(min_length=1)


NOT = "not "


class Nonlinear(Entry):
    """Rows that must be 0, over nodes of one number each; exactly one form.

    `product`: z_head = Π z_i. `power`: z_head = factor · Π z_i^p_i of positive answers, which is
    linear in their logarithms. `threshold`: z_head is 1 where that node's answer is at least `at`,
    else 0. `clause`: at least one of these is 1 ("not x": 0).
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
    """With wrong_checks: true for a relation that is never wrong, false for one that may be (where
    some say so, only those).
    """

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
        """One matrix of second derivatives per row, over all coordinates, in ball arithmetic; signs
        are left out.
        """
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
