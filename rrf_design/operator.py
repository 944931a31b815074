"""The operator B of a design, assembled from its blocks, with the way back to nodes and blocks.

Coordinates: with fiber metrics W_i = L Lᵀ the columns stand for h̃_i = Lᵀ h_i, so that plain Euclidean length is
length in the metric (γ^(W) of the paper). Rows are multiplied by sqrt(w/m) and whitened. The target c has
residual B z − c = 0 for a valid field z; it is NaN for anchors whose value is not known yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from rrf_design.blocks import Anchor, Relation
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.problem import Problem, Selection
    from solvers import NodeColumns

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Operator:
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

    def rows_of(self, block_id: str) -> sparse.csr_array:
        """C_j: the rows of one block over all coordinates."""
        j = self.block_index[block_id]
        return self.matrix[int(self.block_offsets[j]) : int(self.block_offsets[j + 1])]

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
                part = linalg.solve_triangular(factor.T, part, lower=False)
            result[self.node_ids[index]] = tuple(float(x) for x in part)
        return result

    def syndrome(self, field: Mapping[str, Any]) -> Array:
        """s = B y − c of a field of responses: what an error e has to explain as B e = s."""
        unknown = [self.block_ids[j] for j in range(len(self.block_ids)) if np.isnan(self._target_of(j)).any()]
        if unknown:
            raise InputError(f"anchor {unknown[0]!r}: no value is known yet; give one, or leave it out of the design")
        result: Array = self.matrix @ self.stack(field) - self.target
        return result

    def _target_of(self, j: int) -> Array:
        return self.target[self.block_offsets[j] : self.block_offsets[j + 1]]


def open_nodes(problem: Problem, selected: tuple[str, ...]) -> frozenset[str]:
    """Nodes in the field: those asked already, those selected, and those that selected blocks need."""
    names = {node.id for node in problem.nodes if node.cost is None}
    for name in selected:
        block = problem.block_by_id.get(name)
        names.update((name,) if block is None else block.nodes)
    return frozenset(names)


def assemble(problem: Problem, select: Selection = None) -> Operator:
    """B for the owned blocks plus the selected ones, over the nodes that are open."""
    selected = problem.resolve(select)
    opened = open_nodes(problem, selected)
    nodes = [node for node in problem.nodes if node.id in opened]
    if not nodes:
        raise InputError("the design is empty: no node has been asked; select at least one")
    offsets = np.cumsum([0, *(node.dim for node in nodes)])
    start = {node.id: int(a) for node, a in zip(nodes, offsets, strict=False)}
    factors = _fiber_factors(problem, nodes)
    chosen = set(selected)
    row_index: list[NDArray[np.int64]] = []
    column_index: list[NDArray[np.int64]] = []
    entries: list[Array] = []
    targets: list[Array] = []
    blocks = []
    sizes = [0]
    for block in problem.blocks:
        if not (block.owned or block.id in chosen) or not opened.issuperset(block.nodes):
            continue
        parts, target = _scaled(problem, block)
        height = len(target)
        for name, part in parts.items():
            factor = factors.get(name)
            if factor is not None:  # B_i h_i = (B_i L⁻ᵀ) h̃_i
                part = linalg.solve_triangular(factor, part.T, lower=True).T
            r, c = np.nonzero(part)
            row_index.append(r.astype(np.int64) + sizes[-1])
            column_index.append(c.astype(np.int64) + start[name])
            entries.append(part[r, c])
        targets.append(target)
        blocks.append(block)
        sizes.append(sizes[-1] + height)
    shape = (sizes[-1], int(offsets[-1]))
    if blocks:
        coordinates = (np.concatenate(row_index), np.concatenate(column_index))
        matrix = sparse.csr_array((np.concatenate(entries), coordinates), shape=shape)
    else:
        matrix = sparse.csr_array(shape)
    return Operator(
        matrix=matrix,
        target=np.concatenate(targets) if targets else np.zeros(0),
        node_ids=tuple(node.id for node in nodes),
        node_offsets=offsets.astype(np.int64),
        block_ids=tuple(block.id for block in blocks),
        block_offsets=np.array(sizes, dtype=np.int64),
        block_kinds=tuple("relation" if isinstance(block, Relation) else "anchor" for block in blocks),
        radii=np.array([block.uncertainty for block in blocks], dtype=np.float64),
        fiber_factors=factors,
    )


def block_rows(problem: Problem, block: Relation | Anchor) -> dict[str, Array]:
    """The bare rows of a block as one (rows, dim) part per node; ValueError when the shapes don't fit."""
    dims = [problem.node_by_id[name].dim for name in block.nodes]
    if isinstance(block, Anchor):
        rows = np.eye(sum(dims)) if block.rows is None else np.array(block.rows, dtype=np.float64)
        if rows.shape[1] != sum(dims):
            raise ValueError(f"rows have {rows.shape[1]} columns, but the node has dimension {sum(dims)}")
        cuts = np.cumsum(dims)[:-1]
        return dict(zip(block.nodes, np.split(rows, cuts, axis=1), strict=True))
    tail, head = problem.node_by_id[block.tail], problem.node_by_id[block.head]
    transport = block.transport.as_matrix(tail_dim=tail.dim, head_dim=head.dim)
    if block.tail == block.head:
        return {block.tail: np.eye(head.dim) - transport}
    return {block.tail: -transport, block.head: np.eye(head.dim)}


def block_target(block: Relation | Anchor, rows: int) -> Array:
    """The bare right-hand side; NaN for an anchor without a value; ValueError when the length doesn't fit."""
    value = block.value if isinstance(block, Anchor) else block.offset
    if value is None:
        return np.full(rows, np.nan)
    if isinstance(value, tuple) and len(value) != rows:
        name = "value" if isinstance(block, Anchor) else "offset"
        raise ValueError(f"{name} has {len(value)} entries, but the block has {rows} rows")
    if not isinstance(value, tuple) and isinstance(block, Anchor) and rows != 1:
        raise ValueError(f"value is one number, but the block has {rows} rows; give a list")
    return np.broadcast_to(np.asarray(value, dtype=np.float64), (rows,)).copy()


def whitener(problem: Problem, block: Relation | Anchor, rows: int, where: str) -> Array | None:
    """Matrix that whitens the rows of a block (None: nothing to do), with shrinkage and floor applied."""
    from rrf_design.problem import spd_factor

    if block.metric is not None:
        return spd_factor(block.metric, rows, f"{where}: metric").T
    if block.covariance is not None:
        spd_factor(block.covariance, rows, f"{where}: covariance")
        covariance = np.array(block.covariance)
        tau = problem.shrinkage
        covariance = (1 - tau) * covariance + tau * np.trace(covariance) / rows * np.eye(rows)
        values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
        scale = 1.0 / np.sqrt(np.maximum(values, problem.variance_floor))
        return np.asarray((vectors * scale) @ vectors.T)
    if block.sigma is not None:
        return np.eye(rows) / max(block.sigma, float(np.sqrt(problem.variance_floor)))
    return None


def _scaled(problem: Problem, block: Relation | Anchor) -> tuple[dict[str, Array], Array]:
    parts = block_rows(problem, block)
    rows = next(iter(parts.values())).shape[0]
    target = block_target(block, rows)
    scale = np.sqrt(block.weight / problem.family_size[block.family_name])
    white = whitener(problem, block, rows, f"block {block.id!r}")
    if white is None:
        if scale == 1.0:
            return parts, target
        return {name: scale * part for name, part in parts.items()}, scale * target
    return {name: scale * (white @ part) for name, part in parts.items()}, scale * (white @ target)


def _fiber_factors(problem: Problem, nodes: list[Any]) -> dict[str, Array]:
    from rrf_design.problem import spd_factor

    return {n.id: spd_factor(n.metric, n.dim, f"node {n.id!r}: metric") for n in nodes if n.metric is not None}
