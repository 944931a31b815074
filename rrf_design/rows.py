"""The rows of one block: bare, as its entry in the problem file states them, and what they are
multiplied with.

Rows enter B times sqrt(w/c) and whitened: by 1/sigma, by Σ̂_τ^(-1/2) of a declared covariance after
shrinkage and floor, or by the factor of a declared metric (paper, "Normalization" and
"Heteroscedastic and correlated measurements"). Here w is the weight of the family, and c says how
much of its noise is shared: m for m copies.

Within one block rows of covariance Σ = VΛVᵀ are whitened by Σ^(-1/2). Directions in which Σ is zero
carry no noise, so any finite weight is right for them: they are kept as rows `EXACT` times as heavy
as the least noisy one, which is a constraint up to a part in a million of the margin, and never a
division by zero.

Across blocks each one is whitened by itself, and the variance of all of them is raised by one
factor c with R ⪯ c·I, where R is the covariance of their whitened rows together. Noise that counts
as c times as large in every row, and as independent, then covers what is shared, *whatever part of
the blocks is held*: BᵀB stays a sum over blocks, margins never fall with a purchase, and no row of
one block stands in another. Blocks that are bought together anyway can be written as one block with
its covariance, which loses nothing. For m blocks of which no two are correlated more than ρ, c = 1
+ (m − 1)ρ: from independence (1) to copies that share one weight (m).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import inf, nextafter, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rrf_design.blocks import Anchor, Relation
from rrf_design.checker.noise import inflation
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.blocks import SharedNoise
    from rrf_design.field import Node
    from rrf_design.problem import Problem

Array = NDArray[np.float64]

LARGEST_ENTRY = 1e150
"""Of rows, answers and deviations: squares of larger numbers overflow."""


class Entries(NamedTuple):
    """Entries of a matrix of `height` rows as coordinates; repeated places are to be added."""

    height: int
    rows: list[int]
    columns: list[int]
    values: list[float]


def block_entries(block: Relation | Anchor, columns: Mapping[str, range]) -> Entries:
    """The bare rows of a block, where node i has columns[i]; ValueError when the shapes don't
    fit.
    """
    if isinstance(block, Relation):
        if block.pair is None:
            return _several(block, columns)
        tail, head = (columns[name] for name in block.pair)
        height = len(head)
        own = list(range(height))
        rows, places, values = block.transport.entries(tail_dim=len(tail), head_dim=height)
        taken = [tail[place] for place in places]
        return Entries(height, rows + own, [*taken, *head], [-value for value in values] + [1.0] * height)
    over = [column for name in block.nodes for column in columns[name]]
    if block.rows is None:
        return Entries(len(over), list(range(len(over))), over, [1.0] * len(over))
    for numbers in block.rows:
        if len(numbers) != len(over):
            what = "the node has" if len(block.nodes) == 1 else "the nodes together have"
            raise ValueError(f"rows have length {len(numbers)}, but {what} dimension {len(over)}")
    height = len(block.rows)
    rows_of = [row for row in range(height) for _ in over]
    return Entries(height, rows_of, over * height, [value for numbers in block.rows for value in numbers])


def _several(block: Relation, columns: Mapping[str, range]) -> Entries:
    """The rows of a relation among several nodes: declared as they are, or of a sum or difference,
    head minus parts.
    """
    if block.rows is not None:
        found = Entries(len(next(iter(block.rows.values()))), [], [], [])
        for name, part in block.rows.items():
            if len(part[0]) != len(columns[name]):
                raise ValueError(
                    f"rows of {name!r} have length {len(part[0])}, but the node has dimension {len(columns[name])}"
                )
            for row, numbers in enumerate(part):
                found.rows.extend([row] * len(numbers))
                found.columns.extend(columns[name])
                found.values.extend(numbers)
        return found
    head = columns[block.head or ""]
    height = len(head)
    found = Entries(height, list(range(height)), list(head), [1.0] * height)
    for place, name in enumerate(block.parts):
        part_columns = columns[name]
        if height > 1 and len(part_columns) != height:
            raise ValueError(f"{name!r} has dimension {len(part_columns)}, but the head {block.head!r} has {height}")
        if block.difference is not None and len(part_columns) != height:
            raise ValueError(
                f"{name!r} has dimension {len(part_columns)}, but a difference needs that of the head, {height}"
            )
        found.rows.extend([0] * len(part_columns) if height == 1 else range(height))
        found.columns.extend(part_columns)
        found.values.extend([1.0 if block.difference is not None and place else -1.0] * len(part_columns))
    return found


def block_rows(problem: Problem, block: Relation | Anchor) -> dict[str, Array]:
    """The bare rows of a block as one (rows, dim) part per node; ValueError when the shapes don't
    fit.
    """
    columns: dict[str, range] = {}
    width = 0
    for name in block.nodes:
        columns[name] = range(width, width + problem.node_by_id[name].dim)
        width = columns[name].stop
    entries = block_entries(block, columns)
    together = np.zeros((entries.height, width))
    np.add.at(together, (entries.rows, entries.columns), entries.values)
    return {name: together[:, place.start : place.stop] for name, place in columns.items()}


def block_target(block: Relation | Anchor, rows: int) -> Array:
    """The bare right-hand side; NaN for an anchor without a value; ValueError when the length
    doesn't fit.
    """
    return np.array(bare_target(block, rows), dtype=np.float64)


def bare_target(block: Relation | Anchor, rows: int) -> tuple[float, ...]:
    value = block.value if isinstance(block, Anchor) else block.offset
    if value is None:
        return (float("nan"),) * rows
    if isinstance(value, tuple):
        if len(value) != rows:
            name = "value" if isinstance(block, Anchor) else "offset"
            raise ValueError(f"{name} has length {len(value)}, but the block has {rows} rows")
        return value
    if isinstance(block, Anchor) and rows != 1:
        raise ValueError(f"value is one number, but the block has {rows} rows; give a list")
    return (value,) * rows


def family_scale(problem: Problem, block: Relation | Anchor) -> float:
    """sqrt(w/c): what the rows of a block are multiplied with; c = m in a family of m copies
    (`rrf_design.rows`).
    """
    return sqrt(block.weight / problem.dilation.get(block.id, 1.0))


def whitener(problem: Problem, block: Relation | Anchor, rows: int) -> Array | None:
    """Matrix that whitens the rows of a block (None: nothing to do), with shrinkage and floor
    applied.
    """
    white = row_whitener(problem, block, rows)
    if isinstance(white, float):
        return None if white == 1.0 else white * np.eye(rows)
    return white


def row_whitener(problem: Problem, block: Relation | Anchor, rows: int) -> float | Array:
    """What whitens the rows of a block: one number, or a matrix where they are correlated."""
    larger = raised(problem, block, rows)
    if block.sigma is not None:
        return 1.0 / (max(block.sigma, sqrt(problem.variance_floor)) * sqrt(larger))
    if block.metric is not None:
        if isinstance(block.metric, float):
            return sqrt(block.metric)
        return spd_factor(block.metric, rows, f"{block.title}: metric").T
    if block.covariance is None:
        return 1.0
    covariance = _checked_covariance(block.covariance, rows=rows, where=block.title)
    white = whitening(covariance, tau=problem.shrinkage, floor=problem.variance_floor, where=block.title)
    return white if larger == 1.0 else white / sqrt(larger)


def raised(problem: Problem, block: Relation | Anchor, rows: int) -> float:
    """What a variance that was only estimated is multiplied with: 1 where it is declared as known.

    All estimates together may be too small in half of what the problem's confidence leaves; the
    other half is for the noise itself.
    """
    if block.estimated_from is None:
        return 1.0
    if block.covariance is not None and problem.shrinkage > 0.0:  # Σ ⪯ cΣ̂ says nothing of what is shrunk
        raise InputError(f"{block.title}: estimated_from raises the estimate itself; leave shrinkage out")
    try:
        return inflation(
            rows=estimated_rows(problem, block, rows),
            repeats=block.estimated_from,
            confidence=estimate_confidence(problem),
        )
    except InputError as error:
        raise InputError(f"{block.title}: {error}") from None


def raised_scatter(problem: Problem, node: Node) -> float:
    """The same for the variance of a node's answers: σ² bounds that of every direction of its
    coordinates.
    """
    if node.estimated_from is None:
        return 1.0
    try:
        return inflation(rows=node.dim, repeats=node.estimated_from, confidence=estimate_confidence(problem))
    except InputError as error:
        raise InputError(f"node {node.id!r}: {error}") from None


def estimated_rows(problem: Problem, block: Relation | Anchor, rows: int) -> int:
    """How many rows were estimated together with those of a block: its own, or all of the blocks
    whose covariance is one estimate.
    """
    for entry in problem.noise:
        if entry.estimated_from is not None and block.id in entry.blocks:
            return len(entry.covariance or ())
    return 1 if block.sigma is not None else rows


def estimate_confidence(problem: Problem) -> float:
    """With which each estimate must hold, so that all do with half of what may go wrong."""
    return 1.0 - (1.0 - problem.confidence) / (2 * max(len(problem.estimated), 1))


def _own_covariance(block: Relation | Anchor, rows: int) -> Array:
    """What a block declares of its own noise; the identity where it declares nothing."""
    if block.covariance is not None:
        return _checked_covariance(block.covariance, rows=rows, where=block.title)
    return np.eye(rows) * (1.0 if block.sigma is None else block.sigma**2)


def block_height(problem: Problem, block: Relation | Anchor) -> int:
    """How many rows a block has; InputError when its shapes don't fit."""
    try:
        return len(next(iter(block_rows(problem, block).values())))
    except ValueError as error:
        raise InputError(f"{block.title}: {error}") from None


def symmetric(matrix: tuple[tuple[float, ...], ...], dim: int, where: str) -> Array:
    """A declared symmetric matrix of this size; InputError when it is not one."""
    if len(matrix) != dim or any(len(row) != dim for row in matrix):
        raise InputError(f"{where} must be {dim}×{dim}")
    result = np.array(matrix, dtype=np.float64)
    if not np.allclose(result, result.T, rtol=1e-12, atol=0.0):
        raise InputError(f"{where} is not symmetric")
    return result / 2 + result.T / 2


def spd_factor(metric: float | tuple[tuple[float, ...], ...], dim: int, where: str) -> Array:
    """Cholesky factor L of a declared positive definite matrix; InputError when it is not one."""
    if isinstance(metric, float):
        return np.eye(dim) * sqrt(metric)
    try:
        return np.asarray(np.linalg.cholesky(symmetric(metric, dim, where)), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise InputError(f"{where} is not positive definite") from None


EXACT = 1024.0
"""How much heavier than the least noisy direction of its block a direction without noise is."""


def _checked_covariance(covariance: object, *, rows: int, where: str) -> Array:
    """A symmetric positive semidefinite matrix of this order; InputError says what it is
    instead.
    """
    try:
        matrix = np.array(covariance, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{where}: covariance must be a matrix of numbers") from None
    if matrix.shape != (rows, rows):
        raise InputError(f"{where}: covariance must be {rows}×{rows}, not {'×'.join(map(str, matrix.shape))}")
    if not np.isfinite(matrix).all():
        raise InputError(f"{where}: covariance holds a number that is not finite")
    if not np.allclose(matrix, matrix.T, rtol=1e-12, atol=0.0):
        raise InputError(f"{where}: covariance is not symmetric")
    matrix = matrix / 2 + matrix.T / 2
    if rows and np.linalg.eigvalsh(matrix)[0] < -_rounding(matrix):
        raise InputError(f"{where}: covariance is not positive semidefinite")
    return np.asarray(matrix)


def shrunk(covariance: Array, tau: float) -> Array:
    """(1 − τ)Σ + τ·tr(Σ)/m·I."""
    if not 0.0 <= tau <= 1.0:
        raise InputError(f"shrinkage must lie between 0 and 1, not {tau!r}")
    order = len(covariance)
    average = float(np.sum(np.diag(covariance) / max(order, 1)))
    return np.asarray((1.0 - tau) * covariance + tau * average * np.eye(order))


def whitening(covariance: Array, *, tau: float = 0.0, floor: float = 0.0, where: str) -> Array:
    """(m, m): what rows with this noise are multiplied with, after shrinkage and floor; exact
    directions are kept, and heavy.
    """
    smallest = _rounding(covariance)
    variances, vectors = np.linalg.eigh(shrunk(covariance, tau))
    variances = np.maximum(variances, floor)
    noisy = variances > smallest
    if not noisy.any():
        raise InputError(f"{where}: covariance is zero; leave it out, or give [problem] a variance_floor")
    weights = np.empty(len(variances))
    weights[noisy] = 1.0 / np.sqrt(variances[noisy])
    # a variance that rounding can't tell from zero must not come out above 1
    weights[~noisy] = min(EXACT * float(weights[noisy].max()), 1.0 / (2.0 * smallest) ** 0.5) if smallest else EXACT
    return np.asarray((vectors * weights) @ vectors.T)


def correlated(members: int, correlation: float) -> float:
    """1 + (m − 1)ρ: c of m blocks of which no two are correlated more than ρ."""
    exactly = 1 + (members - 1) * Fraction(correlation)
    return nextafter(float(exactly), inf) if float(exactly) < exactly else float(exactly)


def dilations(problem: Problem) -> dict[str, float]:
    """c of every block whose noise, or weight, is shared; blocks of their own are left out."""
    result = {}
    for block in problem.blocks:
        members = problem.family_size[block.family_name]
        if members > 1:
            result[block.id] = correlated(members, 1.0 if block.correlation is None else block.correlation)
    for entry in problem.noise:
        result.update(dict.fromkeys(entry.blocks, dilation(problem, entry, entry.blocks)))
    return result


def dilation(problem: Problem, entry: SharedNoise, held: Sequence[str]) -> float:
    """c of some of the blocks of an entry, by themselves."""
    if entry.correlation is not None:
        return correlated(len(held), entry.correlation)
    together, rounding = _whitened(problem, entry, held)
    # a hair above the largest eigenvalue, so that the verifier can prove it
    return max(1.0, float(np.linalg.eigvalsh(together)[-1]) * (1 + 1e-12 * len(together)) + rounding)


def whitened_covariance(problem: Problem, entry: SharedNoise, held: Sequence[str]) -> Array:
    """R: the covariance of the rows of some blocks of an entry, each block whitened by itself."""
    return _whitened(problem, entry, held)[0]


def _whitened(problem: Problem, entry: SharedNoise, held: Sequence[str]) -> tuple[Array, float]:
    """R, and how far rounding can have moved its eigenvalues: much where a block's own covariance
    is nearly singular.
    """
    where = f"noise {entry.id!r}"
    blocks = [problem.block_by_id[name] for name in entry.blocks]
    heights = [block_height(problem, block) for block in blocks]
    ends = np.cumsum([0, *heights])
    declared = _checked_covariance(entry.covariance, rows=int(ends[-1]), where=where)
    left = np.zeros_like(declared)
    kept: list[int] = []
    for block, height, start in zip(blocks, heights, ends, strict=False):
        part = slice(int(start), int(start) + height)
        if not np.allclose(_own_covariance(block, height), declared[part, part], rtol=1e-9, atol=0.0):
            raise InputError(f"{where}: its covariance of {block.title} is not what that block declares")
        white = whitener(problem, block, height)
        left[part, part] = np.eye(height) if white is None else white
        kept += range(part.start, part.stop) if block.id in held else ()
    if (
        entry.estimated_from is not None
    ):  # Σ ⪯ aΣ̂ holds for all the rows together, and each block was raised by the same a
        declared = declared * raised(problem, blocks[0], heights[0])
    whole = left @ declared @ left.T
    sizes = (abs(left) @ abs(declared) @ abs(left).T)[np.ix_(kept, kept)]
    rounding = 4.0 * len(declared) * float(np.finfo(float).eps) * float(sizes.sum(axis=1).max(initial=0.0))
    return np.asarray((whole / 2 + whole.T / 2)[np.ix_(kept, kept)]), rounding


def _rounding(matrix: Array) -> float:
    """Eigenvalues of this size may be rounding errors."""
    return float(4 * len(matrix) * np.finfo(float).eps * np.abs(matrix).max(initial=0.0))
