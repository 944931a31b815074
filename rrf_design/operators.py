"""The operator B of a design, assembled from its blocks, with the way back to nodes and blocks.

`whole` builds the rows of every block over every node, once per problem; this is also what checks
their shapes. A design is a slice of it (`restrict`, the only slicer), so designs of one problem
agree to the last bit. Coordinates: with fiber metrics W_i = L Lᵀ the columns stand for h̃_i = Lᵀ
h_i, so that plain Euclidean length is length in the metric (γ^(W) of the paper). Rows are
multiplied by sqrt(w) and whitened, each block as if it were held alone; a design divides them by
what its blocks share (`holding`). The target c has residual B z − c = 0 for a valid field z; it is
NaN for anchors whose value is not known yet.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rrf_design._shown import Shown
from rrf_design.blocks import Relation
from rrf_design.errors import InputError
from rrf_design.field import Node
from rrf_design.premise import PLAIN, Premise
from rrf_design.rows import (
    LARGEST_ENTRY,
    NOTHING_SHARED,
    Held,
    Sharing,
    alone,
    applied,
    bare_target,
    block_entries,
    one_row,
    spd_factor,
)

if TYPE_CHECKING:
    from rrf_design.blocks import Anchor
    from rrf_design.problem import Problem
    from solvers import NodeColumns

Array = NDArray[np.float64]
_OF_ROWS = (
    "groups",
    "node_index",
    "block_index",
    "heights",
    "of_anchors",
    "anchor_ids",
    "longest_row",
    "longest_units",
    "magnitudes",
)
"""What an operator remembers that does not depend on its targets."""


@dataclass(frozen=True, eq=False, repr=False)  # operators are compared by what they are made from
class Operator(Shown):
    """B = [D; A] in whitened coordinates. Rows come block by block in the problem's order."""

    matrix: sparse.csr_array  # (rows, coordinates)
    target: Array  # (rows,)
    node_ids: tuple[str, ...]
    node_offsets: NDArray[np.int64]  # (n + 1,): columns of node i are node_offsets[i]:node_offsets[i + 1]
    block_ids: tuple[str, ...]
    block_offsets: NDArray[np.int64]  # (blocks + 1,): rows of block j
    block_kinds: tuple[str, ...]  # "relation" or "anchor"
    radii: Array  # (blocks,): operator-norm uncertainty of each block
    fiber_factors: Mapping[str, Array]  # node id -> L with W = L Lᵀ, only for nodes with a metric
    uncertain: Mapping[str, tuple[str, ...]]  # block id -> all nodes it names, only for blocks with a radius
    premise: Premise = PLAIN  # what fails together, what is delivered, which blocks may be wrong
    sharing: Sharing | None = None  # of `whole`, where blocks share a weight or noise: what that makes of a design
    held: Held = NOTHING_SHARED  # of a design: what its rows were divided by for it

    def _line(self) -> str:
        rows, columns = self.shape
        return f"{rows} rows, {columns} coordinates of {len(self.node_ids)} nodes, {len(self.block_ids)} blocks"

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.matrix.shape
        return rows, columns

    @cached_property
    def groups(self) -> NodeColumns:
        """Columns of each node, as `solvers` wants them: reads like a list of index arrays."""
        from solvers import NodeColumns

        return NodeColumns.of_sizes(np.diff(self.node_offsets))

    @cached_property
    def node_index(self) -> Mapping[str, int]:
        return {name: index for index, name in enumerate(self.node_ids)}

    @cached_property
    def block_index(self) -> Mapping[str, int]:
        return {name: index for index, name in enumerate(self.block_ids)}

    @cached_property
    def heights(self) -> NDArray[np.int64]:
        """(blocks,): how many rows each block has."""
        return np.diff(self.block_offsets)

    @cached_property
    def of_anchors(self) -> NDArray[np.bool_]:
        """(rows,): which belong to anchors."""
        kinds = np.array([kind == "anchor" for kind in self.block_kinds], dtype=np.bool_)
        return np.repeat(kinds, self.heights)

    @cached_property
    def longest_row(self) -> int:
        """Most terms that a row adds up."""
        return int(np.diff(self.matrix.tocsr().indptr).max(initial=0))

    @cached_property
    def anchor_ids(self) -> tuple[str, ...]:
        """The blocks that are anchors."""
        return tuple(name for name, kind in zip(self.block_ids, self.block_kinds, strict=True) if kind == "anchor")

    @cached_property
    def longest_units(self) -> Mapping[str, float]:
        """For nodes with a metric LLᵀ: how long h = L⁻ᵀh̃ can be, in the node's own units, for h̃
        of length 1.
        """
        factors = self.fiber_factors.items()
        return {name: 1.0 / float(np.linalg.svd(factor, compute_uv=False)[-1]) for name, factor in factors}

    @cached_property
    def magnitudes(self) -> sparse.csr_array:
        """|B|, entry by entry."""
        return abs(self.matrix)

    def rows_of(self, block_id: str) -> sparse.csr_array:
        """C_j: the rows of one block over all coordinates."""
        j = self.block_index[block_id]
        return self.matrix[int(self.block_offsets[j]) : int(self.block_offsets[j + 1])]

    def restrict(self, blocks: NDArray[np.bool_], nodes: NDArray[np.bool_]) -> Operator:
        """The rows of some blocks over the columns of some nodes, as an operator of its own."""
        if blocks.all() and nodes.all():
            return self
        heights, widths = np.diff(self.block_offsets), np.diff(self.node_offsets)
        rows = np.flatnonzero(np.repeat(blocks, heights))
        matrix = self.matrix[rows]
        if not nodes.all():
            matrix = matrix[:, np.flatnonzero(np.repeat(nodes, widths))]
        node_ids = tuple(compress(self.node_ids, nodes))
        kept = set(node_ids)
        return Operator(
            matrix=matrix,
            target=_read_only(self.target[rows]),
            node_ids=node_ids,
            node_offsets=_offsets(widths[nodes]),
            block_ids=tuple(compress(self.block_ids, blocks)),
            block_offsets=_offsets(heights[blocks]),
            block_kinds=tuple(compress(self.block_kinds, blocks)),
            radii=_read_only(self.radii[blocks]),
            fiber_factors={name: factor for name, factor in self.fiber_factors.items() if name in kept},
            uncertain=self._uncertain_in(blocks),
            premise=self.premise,
        )

    def holding(
        self, blocks: NDArray[np.bool_], nodes: NDArray[np.bool_], *, lost: NDArray[np.bool_] | None = None
    ) -> Operator:
        """The design that holds these blocks over these nodes: what is not held changes nothing in
        it.

        `lost` are blocks that were bought and could not be had: they have no rows, and their marks
        count.
        """
        part = self.restrict(blocks, nodes)
        known = part.block_ids if lost is None else (*part.block_ids, *compress(self.block_ids, lost))
        premise = self.premise.among(known, part.node_ids)
        held = NOTHING_SHARED if self.sharing is None else self.sharing.of(blocks, nodes)
        if premise is not self.premise:
            part = replace(part, premise=premise)
        if self.sharing is None:
            return part
        factors = np.array([held.factor(name) for name in part.block_ids])
        return replace(part.weighed(factors), sharing=None, held=held)

    def weighed(self, factors: Array) -> Operator:
        """The same with each block multiplied by a number of its own."""
        rows = np.repeat(factors, self.heights)
        matrix = self.matrix.copy()
        matrix.data *= np.repeat(rows, np.diff(matrix.indptr))
        return replace(self, matrix=matrix, target=_read_only(self.target * rows))

    def side(self, problem: Problem, block: Relation | Anchor, bare: Array) -> Array:
        """A right-hand side of a block, weighted and whitened as its rows are."""
        return applied(alone(problem, block, len(bare)), bare) * self.held.factor(block.id)

    def aiming(self, target: Array) -> Operator:
        """The same rows with other targets: what was derived from the rows is kept, so that many
        fields can share it.
        """
        result = replace(self, target=_read_only(target))
        result.__dict__.update({name: self.__dict__[name] for name in _OF_ROWS if name in self.__dict__})
        return result

    def _uncertain_in(self, blocks: NDArray[np.bool_]) -> Mapping[str, tuple[str, ...]]:
        if not self.uncertain:
            return self.uncertain
        return {name: nodes for name, nodes in self.uncertain.items() if blocks[self.block_index[name]]}

    def stack(self, field: Mapping[str, Any]) -> Array:
        """A field given by node id, as one vector in whitened coordinates."""
        parts = []
        for index, name in enumerate(self.node_ids):
            dim = int(self.node_offsets[index + 1] - self.node_offsets[index])
            part = np.atleast_1d(np.asarray(field[name], dtype=np.float64))
            if part.shape != (dim,):
                raise InputError(f"node {name!r}: expected {dim} numbers, got an array of shape {part.shape}")
            factor = self.fiber_factors.get(name)
            parts.append(part if factor is None else factor.T @ part)
        return np.concatenate(parts)

    def unstack(self, vector: Array, *, only: tuple[int, ...] | None = None) -> dict[str, tuple[float, ...]]:
        """The inverse of `stack`; `only` keeps these node indices."""
        result = {}
        for index in range(len(self.node_ids)) if only is None else only:
            part = vector[self.node_offsets[index] : self.node_offsets[index + 1]]
            factor = self.fiber_factors.get(self.node_ids[index])
            if factor is not None:
                from scipy.linalg import solve_triangular

                part = solve_triangular(factor.T, part, lower=False)
            result[self.node_ids[index]] = tuple(float(x) for x in part)
        return result

    def length(self, node: str, value: Any) -> float:
        """The length of one node's value, in its metric."""
        part = np.atleast_1d(np.asarray(value, dtype=np.float64))
        factor = self.fiber_factors.get(node)
        return float(np.linalg.norm(part if factor is None else factor.T @ part))

    def block_energies(self, vector: Array) -> Array:
        """‖C_j h‖² for every block, h over all coordinates."""
        count = len(self.block_ids)
        owner = np.repeat(np.arange(count), np.diff(self.block_offsets))
        return np.bincount(owner, weights=np.square(self.matrix @ vector), minlength=count).astype(np.float64)

    def syndrome(self, field: Mapping[str, Any]) -> Array:
        """s = B y − c of a field of responses: what an error e has to explain as B e = s."""
        unknown = [self.block_ids[j] for j in range(len(self.block_ids)) if np.isnan(self._target_of(j)).any()]
        if unknown:
            raise InputError(f"anchor {unknown[0]!r}: no value is known yet; give one, or leave it out of the design")
        result: Array = self.matrix @ self.stack(field) - self.target
        return result

    def _target_of(self, j: int) -> Array:
        return self.target[self.block_offsets[j] : self.block_offsets[j + 1]]


def whole(problem: Problem) -> Operator:
    """The rows of every block over every node, weighted, whitened and in the metrics; InputError
    names what doesn't fit.
    """
    offsets = _offsets([node.dim for node in problem.nodes])
    starts = offsets.tolist()
    place = {node.id: range(starts[i], starts[i + 1]) for i, node in enumerate(problem.nodes)}
    rows, columns, values, target = array("q"), array("q"), array("d"), array("d")
    heights: list[int] = []
    factors: list[float] = []
    dense: dict[int, Array] = {}  # first row -> what whitens a block whose rows are correlated
    for block in problem.blocks:
        top = len(target)
        if (row := one_row(block, place)) is not None:  # most are, where there are many
            tail, head, scale, offset = row
            height = 1
            rows.extend((top, top))
            columns.extend((tail, head))
            values.extend((-scale, 1.0))
            target.append(offset)
        else:
            try:
                height, own_rows, own_columns, own_values = block_entries(block, place)
                rows.extend([top + own for own in own_rows])
                columns.extend(own_columns)
                values.extend(own_values)
                target.extend(bare_target(block, height))
            except ValueError as error:
                raise InputError(f"{block.title}: {error}") from None
        factor = alone(problem, block, height)
        if not isinstance(factor, float):
            dense[top] = factor
        heights.append(height)
        factors.append(factor if isinstance(factor, float) else 1.0)
    factor_of_row = np.repeat(factors, heights)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is found below, with the name of its block
        entries = np.asarray(values) * factor_of_row[np.asarray(rows)]
        shape = (len(target), int(offsets[-1]))
        matrix = sparse.csr_array((entries, (np.asarray(rows), np.asarray(columns))), shape=shape)
        scaled = np.asarray(target) * factor_of_row
        if dense:
            white = _block_diagonal(dense, shape[0])
            matrix, scaled = white @ matrix, white @ scaled
        metrics = _fiber_factors(problem.nodes)
        if metrics:  # B_i h_i = (B_i L⁻ᵀ) h̃_i
            inverses = {place[name].start: _inverse(factor).T for name, factor in metrics.items()}
            matrix = matrix @ _block_diagonal(inverses, shape[1])
    matrix = sparse.csr_array(matrix)
    matrix.eliminate_zeros()
    result = Operator(
        matrix=matrix,
        target=_read_only(scaled),
        node_ids=tuple(node.id for node in problem.nodes),
        node_offsets=offsets,
        block_ids=tuple(block.id for block in problem.blocks),
        block_offsets=_offsets(heights),
        block_kinds=tuple("relation" if isinstance(block, Relation) else "anchor" for block in problem.blocks),
        radii=_read_only(np.array([block.uncertainty for block in problem.blocks], dtype=np.float64)),
        fiber_factors=metrics,
        uncertain={block.id: block.nodes for block in problem.blocks if block.uncertainty > 0},
        premise=Premise.of(problem),
        sharing=Sharing(problem) or None,
    )
    _check_finite(problem, result, np.asarray(target))
    return result


def _check_finite(problem: Problem, operator: Operator, given: Array) -> None:
    rows = np.repeat(np.arange(operator.shape[0]), np.diff(operator.matrix.indptr))
    bad = np.concatenate(
        [
            rows[~(np.abs(operator.matrix.data) <= LARGEST_ENTRY)],
            np.flatnonzero(~np.isfinite(operator.target) & ~np.isnan(given)),
        ]
    )
    if len(bad):
        block = problem.blocks[int(np.searchsorted(operator.block_offsets, bad.min(), side="right")) - 1]
        raise InputError(f"{block.title}: its weighted and whitened rows are too large for floating point")


def _fiber_factors(nodes: tuple[Node, ...]) -> dict[str, Array]:
    return {n.id: spd_factor(n.metric, n.dim, f"node {n.id!r}: metric") for n in nodes if n.metric is not None}


def _inverse(factor: Array) -> Array:
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(factor, np.eye(len(factor)), lower=True))


def _block_diagonal(parts: Mapping[int, Array], size: int) -> sparse.csr_array:
    """The identity with square parts put on its diagonal, each from the place it is given for."""
    plain = np.ones(size)
    rows, columns, values = [], [], []
    for first, part in parts.items():
        plain[first : first + len(part)] = 0.0
        r, c = np.indices(part.shape)
        rows.append(first + r.ravel())
        columns.append(first + c.ravel())
        values.append(part.ravel())
    kept = np.flatnonzero(plain)
    indices = (np.concatenate([kept, *rows]), np.concatenate([kept, *columns]))
    return sparse.csr_array((np.concatenate([plain[kept], *values]), indices), shape=(size, size))


def _offsets(sizes: Any) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.asarray(sizes, dtype=np.int64))]).astype(np.int64)


def _read_only(values: Array) -> Array:
    values.setflags(write=False)
    return values
