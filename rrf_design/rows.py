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

Across blocks each one is whitened by itself, and the variance of all that are held is raised by one
factor c with R ⪯ c·I, where R is the covariance of their whitened rows together. Noise that counts
as c times as large in every row, and as independent, then covers what is shared, and no row of one
block stands in another. Blocks that are bought together anyway can be written as one block with its
covariance, which loses nothing. For m blocks of which no two are correlated more than ρ, c = 1 + (m
− 1)ρ: from independence (1) to copies that share one weight (m).

Only what is held counts: `Sharing` says of any set of blocks by how much each of them is raised.
What is raised never falls when more is held, so BᵀB is a sum over blocks whose summands may shrink
with a purchase; of blocks that share nothing they stay what they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from math import inf, nextafter, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rrf_design.blocks import Anchor, Relation
from rrf_design.checker.noise import inflation
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.blocks import SharedNoise
    from rrf_design.problem import Problem

Array = NDArray[np.float64]

LARGEST_ENTRY = 1e150
"""Of rows, answers and deviations: squares of larger numbers overflow."""


class _Entries(NamedTuple):
    """Entries of a matrix of `height` rows as coordinates; repeated places are to be added."""

    height: int
    rows: list[int]
    columns: list[int]
    values: list[float]


def block_entries(block: Relation | Anchor, columns: Mapping[str, range]) -> _Entries:
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
        return _Entries(height, rows + own, [*taken, *head], [-value for value in values] + [1.0] * height)
    over = [column for name in block.nodes for column in columns[name]]
    if block.rows is None:
        return _Entries(len(over), list(range(len(over))), over, [1.0] * len(over))
    for numbers in block.rows:
        if len(numbers) != len(over):
            what = "the node has" if len(block.nodes) == 1 else "the nodes together have"
            raise ValueError(f"rows have length {len(numbers)}, but {what} dimension {len(over)}")
    height = len(block.rows)
    rows_of = [row for row in range(height) for _ in over]
    return _Entries(height, rows_of, over * height, [value for numbers in block.rows for value in numbers])


def one_row(block: Relation | Anchor, columns: Mapping[str, range]) -> tuple[int, int, float, float] | None:
    """Of a relation of one row between two nodes the columns of tail and head, the factor and the
    offset, as `block_entries` and `bare_target` have them; None for everything else.
    """
    if not isinstance(block, Relation) or block.tail is None or isinstance(block.offset, tuple):
        return None
    map_ = block.transport
    if map_.matrix is not None or map_.permute is not None or map_.select is not None:
        return None
    tail, head = columns[block.tail], columns[block.head or ""]
    return (tail.start, head.start, map_.factor, block.offset) if len(tail) == len(head) == 1 else None


def _several(block: Relation, columns: Mapping[str, range]) -> _Entries:
    """The rows of a relation among several nodes: declared as they are, or of a sum or difference,
    head minus parts.
    """
    if block.rows is not None:
        found = _Entries(len(next(iter(block.rows.values()))), [], [], [])
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
    found = _Entries(height, list(range(height)), list(head), [1.0] * height)
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


def alone(problem: Problem, block: Relation | Anchor, rows: int) -> float | Array:
    """What the bare rows of a block are multiplied with where nothing is held that shares with it:
    one number, or a matrix where they are correlated.
    """
    return _row_whitener(problem, block, rows) * sqrt(block.weight)


def _row_whitener(problem: Problem, block: Relation | Anchor, rows: int) -> float | Array:
    """What whitens the rows of a block by themselves, with shrinkage and floor applied: one number,
    or a matrix where they are correlated.
    """
    if block.sigma is not None:
        return 1.0 / max(block.sigma, sqrt(problem.variance_floor))
    if block.metric is not None:
        if isinstance(block.metric, float):
            return sqrt(block.metric)
        return spd_factor(block.metric, rows, f"{block.title}: metric").T
    if block.covariance is None:
        return 1.0
    covariance = _checked_covariance(block.covariance, rows=rows, where=block.title)
    return _whitening(covariance, tau=problem.shrinkage, floor=problem.variance_floor, where=block.title)


def applied(factor: float | Array, rows: Array) -> Array:
    """Bare rows, or their right-hand side, multiplied with what `alone` gives."""
    return np.asarray(factor * rows if isinstance(factor, float) else factor @ rows)


def estimate_confidence(problem: Problem, estimates: int) -> float:
    """With which each of so many estimates must hold, so that all do with half of what may go
    wrong; the other half is for the noise itself.
    """
    return 1.0 - (1.0 - problem.confidence) / (2 * max(estimates, 1))


@lru_cache(maxsize=4096)
def _inflation(rows: int, repeats: int, confidence: float) -> float:
    return inflation(rows=rows, repeats=repeats, confidence=confidence)


@dataclass(frozen=True, slots=True)
class Held:
    """What the blocks and nodes that are held share, and what that costs them."""

    dilation: Mapping[str, float] = field(default_factory=dict)
    """Block to c: its variance is raised so much that noise, or a weight, which it shares with
    others that are held counts as its own; 1 is left out.
    """
    sharing: frozenset[str] = frozenset()
    """Blocks whose noise is declared not to be independent of that of others that are held."""
    inflation: Mapping[str, float] = field(default_factory=dict)
    """Block or node whose variance was only estimated: what the estimate is multiplied with."""
    together: Mapping[str, int] = field(default_factory=dict)
    """And from the repeats of how many rows that are held the estimate of a block is."""

    @property
    def estimates(self) -> int:
        """How many blocks and nodes have noise that was estimated from repeats."""
        return len(self.inflation)

    def factor(self, name: str) -> float:
        """What the rows of a block are multiplied with for it."""
        return 1.0 / sqrt(self.dilation.get(name, 1.0) * self.inflation.get(name, 1.0))


NOTHING_SHARED = Held()


@dataclass(frozen=True, slots=True)
class SharingGroup:
    """Blocks that are raised by how many of them are held: a family, or noise with a correlation.

    Where noise has a covariance it also matters which of them are.
    """

    members: NDArray[np.int64]
    """Places of the blocks."""
    correlation: float = 1.0
    noise: bool = False
    """Whether it is noise that is declared shared; else a weight."""
    covariance: JointCovariance | None = None

    def raised(self, held: NDArray[np.bool_]) -> Array:
        """(designs,): c of the members that are held, of (designs, members) masks."""
        if self.covariance is None:
            table = np.array([1.0, *(_correlated(m, self.correlation) for m in range(1, len(self.members) + 1))])
            return np.asarray(table[held.sum(axis=1)])
        patterns, which = np.unique(held, axis=0, return_inverse=True)
        return np.array([self.covariance.largest(pattern) for pattern in patterns])[which.ravel()]


@dataclass(frozen=True, slots=True)
class JointCovariance:
    """The noise of several blocks together, and what whitens each of them by itself."""

    declared: Array
    left: Array
    spans: tuple[range, ...]
    """Rows of each block."""

    @classmethod
    def of(cls, problem: Problem, entry: SharedNoise) -> JointCovariance:
        where = f"noise {entry.id!r}"
        blocks = [problem.block_by_id[name] for name in entry.blocks]
        heights = [block_height(problem, block) for block in blocks]
        ends = np.cumsum([0, *heights]).tolist()
        spans = tuple(range(start, start + height) for start, height in zip(ends, heights, strict=False))
        declared = _checked_covariance(entry.covariance, rows=ends[-1], where=where)
        left = np.zeros_like(declared)
        for block, span in zip(blocks, spans, strict=True):
            part = slice(span.start, span.stop)
            if not np.allclose(_own_covariance(block, len(span)), declared[part, part], rtol=1e-9, atol=0.0):
                raise InputError(f"{where}: its covariance of {block.title} is not what that block declares")
            left[part, part] = applied(_row_whitener(problem, block, len(span)), np.eye(len(span)))
        return cls(declared, left, spans)

    def whitened(self, held: Sequence[bool] | NDArray[np.bool_]) -> tuple[Array, float]:
        """R, the covariance of the rows of some blocks, each whitened by itself; and how far
        rounding can have moved its eigenvalues: much where one of them is nearly singular.
        """
        rows = [row for span, there in zip(self.spans, held, strict=True) if there for row in span]
        declared, left = self.declared[np.ix_(rows, rows)], self.left[np.ix_(rows, rows)]
        whole = left @ declared @ left.T
        sizes = abs(left) @ abs(declared) @ abs(left).T
        rounding = 4.0 * len(declared) * float(np.finfo(float).eps) * float(sizes.sum(axis=1).max(initial=0.0))
        return np.asarray(whole / 2 + whole.T / 2), rounding

    def largest(self, held: NDArray[np.bool_]) -> float:
        """A hair above the largest eigenvalue of R, so that the verifier can prove it."""
        if held.sum() < 2:
            return 1.0
        together, rounding = self.whitened(held)
        return max(1.0, float(np.linalg.eigvalsh(together)[-1]) * (1 + 1e-12 * len(together)) + rounding)


class Sharing:
    """What the blocks of a problem have in common, so that the rows of one depend on which others
    are held: a weight, noise, or the confidence with which estimates hold together.

    Never changes after construction.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        place = {block.id: j for j, block in enumerate(problem.blocks)}
        self.blocks = tuple(place)
        families: dict[str, list[int]] = {}
        for block in problem.blocks:
            if block.family is not None and problem.family_size[block.family_name] > 1:
                families.setdefault(block.family_name, []).append(place[block.id])
        self.counted: list[SharingGroup] = []
        for members in families.values():
            rho = problem.blocks[members[0]].correlation
            self.counted.append(SharingGroup(np.array(members), 1.0 if rho is None else rho, noise=rho is not None))
        self._noise: dict[str, SharedNoise] = {}
        for entry in problem.noise:
            members = [place[name] for name in entry.blocks]
            self._noise.update(dict.fromkeys(entry.blocks, entry))
            if entry.correlation is not None:
                self.counted.append(SharingGroup(np.array(members), entry.correlation, noise=True))
            else:
                joint = JointCovariance.of(problem, entry)
                self.counted.append(SharingGroup(np.array(members), noise=True, covariance=joint))
        self.estimated = tuple(place[block.id] for block in problem.blocks if block.estimated_from is not None)
        self.scattered = tuple(i for i, node in enumerate(problem.nodes) if node.estimated_from is not None)
        if self.estimated and problem.shrinkage > 0.0:
            for j in self.estimated:
                if problem.blocks[j].covariance is not None:  # Σ ⪯ cΣ̂ says nothing of what is shrunk
                    title = problem.blocks[j].title
                    raise InputError(f"{title}: estimated_from raises the estimate itself; leave shrinkage out")
        if self.estimated or self.scattered:  # everything held asks most of an estimate: is there enough for it?
            self.of(np.ones(len(place), dtype=bool), np.ones(len(problem.nodes), dtype=bool))

    @cached_property
    def signature(self) -> str:
        """What tells it from the sharing of other problems."""
        groups = [(g.members.tolist(), g.correlation, g.noise) for g in self.counted]
        joint = [(g.covariance.declared.tolist(), g.covariance.left.tolist()) for g in self.counted if g.covariance]
        blocks, nodes = self._problem.blocks, self._problem.nodes
        repeats = [(j, blocks[j].estimated_from) for j in self.estimated]
        scattered = [(i, nodes[i].dim, nodes[i].estimated_from) for i in self.scattered]
        return repr((groups, joint, repeats, scattered, self._problem.confidence))

    def __bool__(self) -> bool:
        return bool(self.counted or self.estimated or self.scattered)

    @cached_property
    def _heights(self) -> dict[int, int]:
        return {j: block_height(self._problem, self._problem.blocks[j]) for j in self.estimated}

    def of(self, blocks: NDArray[np.bool_], nodes: NDArray[np.bool_]) -> Held:
        """What these blocks share where these nodes are asked."""
        if not self:
            return NOTHING_SHARED
        dilation, sharing = dict[str, float](), set[str]()
        for group in self.counted:
            there = blocks[group.members]
            if there.sum() > 1:
                names = [self.blocks[j] for j in group.members[there]]
                sharing.update(names if group.noise else ())
                raised = float(group.raised(there[None])[0])
                dilation.update(dict.fromkeys(names, raised) if raised != 1.0 else {})
        together = {self.blocks[j]: self._together(j, blocks) for j in self.estimated if blocks[j]}
        scattered = [self._problem.nodes[i] for i in self.scattered if nodes[i]]
        confidence = estimate_confidence(self._problem, len(together) + len(scattered))
        inflations = {name: self._inflated(name, rows, confidence) for name, rows in together.items()}
        for node in scattered:
            inflations[node.id] = _inflated(f"node {node.id!r}", node.dim, node.estimated_from or 0, confidence)
        return Held(dilation, frozenset(sharing), inflations, together)

    def _together(self, j: int, blocks: NDArray[np.bool_]) -> int:
        """How many rows that are held were estimated together with those of a block: its own, or
        all of the blocks whose covariance is one estimate.
        """
        block = self._problem.blocks[j]
        entry = self._noise.get(block.id)
        if entry is not None and entry.estimated_from is not None:
            there = [i for i in self.estimated if blocks[i] and self._noise.get(self.blocks[i]) is entry]
            if len(there) > 1:
                return sum(self._heights[i] for i in there)
        return 1 if block.sigma is not None else self._heights[j]

    def _inflated(self, name: str, rows: int, confidence: float) -> float:
        block = self._problem.block_by_id[name]
        return _inflated(block.title, rows, block.estimated_from or 0, confidence)

    def raised(self, blocks: NDArray[np.bool_], nodes: NDArray[np.bool_]) -> Array:
        """(designs, blocks): what the variance of each block that is held is raised by.

        Of (designs, blocks) and (designs, nodes) masks.
        """
        result = np.ones(blocks.shape)
        for group in self.counted:
            result[:, group.members] = group.raised(blocks[:, group.members])[:, None]
        if self.estimated:
            for row, held, asked in zip(result, blocks, nodes, strict=True):
                known = self.of(held, asked).inflation
                for j in self.estimated:
                    row[j] *= known.get(self.blocks[j], 1.0)
        return result

    def least(self, blocks: NDArray[np.bool_], nodes: NDArray[np.bool_]) -> Array:
        """(blocks,): what each is raised by at least, where these are held and it is, too."""
        result = np.ones(len(blocks))
        loose = np.unique([j for group in self.counted for j in group.members] + list(self.estimated)).astype(np.int64)
        if len(loose):
            held = np.repeat(blocks[None], len(loose), axis=0)
            held[np.arange(len(loose)), loose] = True
            asked = np.repeat(nodes[None], len(loose), axis=0)
            result[loose] = self.raised(held, asked)[np.arange(len(loose)), loose]
        return result


def _inflated(title: str, rows: int, repeats: int, confidence: float) -> float:
    """What a variance that was only estimated is multiplied with, so that it is large enough with
    this confidence.
    """
    try:
        return _inflation(rows, repeats, confidence)
    except InputError as error:
        raise InputError(f"{title}: {error}") from None


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


def _symmetric(matrix: tuple[tuple[float, ...], ...], dim: int, where: str) -> Array:
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
        return np.asarray(np.linalg.cholesky(_symmetric(metric, dim, where)), dtype=np.float64)
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


def _shrunk(covariance: Array, tau: float) -> Array:
    """(1 − τ)Σ + τ·tr(Σ)/m·I."""
    if not 0.0 <= tau <= 1.0:
        raise InputError(f"shrinkage must lie between 0 and 1, not {tau!r}")
    order = len(covariance)
    average = float(np.sum(np.diag(covariance) / max(order, 1)))
    return np.asarray((1.0 - tau) * covariance + tau * average * np.eye(order))


def _whitening(covariance: Array, *, tau: float = 0.0, floor: float = 0.0, where: str) -> Array:
    """(m, m): what rows with this noise are multiplied with, after shrinkage and floor; exact
    directions are kept, and heavy.
    """
    smallest = _rounding(covariance)
    variances, vectors = np.linalg.eigh(_shrunk(covariance, tau))
    variances = np.maximum(variances, floor)
    noisy = variances > smallest
    if not noisy.any():
        raise InputError(f"{where}: covariance is zero; leave it out, or give [problem] a variance_floor")
    weights = np.empty(len(variances))
    weights[noisy] = 1.0 / np.sqrt(variances[noisy])
    # a variance that rounding can't tell from zero must not come out above 1
    weights[~noisy] = min(EXACT * float(weights[noisy].max()), 1.0 / (2.0 * smallest) ** 0.5) if smallest else EXACT
    return np.asarray((vectors * weights) @ vectors.T)


def _correlated(members: int, correlation: float) -> float:
    """1 + (m − 1)ρ: c of m blocks of which no two are correlated more than ρ."""
    exactly = 1 + (members - 1) * Fraction(correlation)
    return nextafter(float(exactly), inf) if float(exactly) < exactly else float(exactly)


def _rounding(matrix: Array) -> float:
    """Eigenvalues of this size may be rounding errors."""
    return float(4 * len(matrix) * np.finfo(float).eps * np.abs(matrix).max(initial=0.0))
