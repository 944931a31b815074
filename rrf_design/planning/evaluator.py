"""A problem as planners see it: designs in, objective values and witnesses out.

For 0/1 choices x and a unit vector h on at most 2k nodes, hᵀG(x)h = Σ_j x_j ‖C_j h‖²: every witness
is a linear function of the choice (docs/algorithms.md, fact 11). The evaluator assembles all blocks
once and slices rows and columns; designs of small fields are evaluated by a table of all supports,
those of large ones by the margin engine. Whatever is reported to a user is computed by the engine
again, on the design itself.

Designs under a premise (units, delivered values, suspect checks) are valued by the engine, and
their witnesses are cuts as well: γ_{k,a,D}(x)² ≤ ‖B_{−R}(x)h‖² = Σ_{j∉R} x_j ‖C_j h‖² for every h
on at most 2k units with ‖h_D‖ = 1 and every set R of at most 2a suspect blocks: the same linear
cuts as for plain margins (docs/algorithms.md, facts 11, 19 and 30), where R may be wrong in x: who
may be depends on which marked checks are held. Tables of supports, hulls and trackers know nothing
of a premise and are not used; so proofs take longer, and are proofs.

Blocks that share a weight or noise dilute each other, so hᵀG(x)h is a sum over blocks no longer,
and a margin may fall with a purchase (fact 37). `operator` then has the rows of each block as heavy
as they are in any design, which bounds every design from above, and `shares` what a design leaves
of them. Whatever adds Gram matrices purchase by purchase (hulls, trackers) is for `additive`
problems.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rrf_design._margin import check_k
from rrf_design.derive import without_noise
from rrf_design.errors import InputError
from rrf_design.market import Mask
from rrf_design.planning.contract import Objective
from rrf_design.planning.supports import Witness
from rrf_design.premise import delivered_columns, unit_groups

if TYPE_CHECKING:
    from rrf_design._margin import DesignMargin
    from rrf_design.design import Design
    from rrf_design.operators import Operator
    from rrf_design.planning.proof.cuts import Pool
    from rrf_design.planning.supports import AllSupports, Witness
    from rrf_design.problem import Problem
    from rrf_design.rows import SharingGroup
    from solvers import SupportValue

TABLE_SUPPORTS = 20_000  # more supports than this are left to the engine's search, which is faster there
TABLE_COLUMNS = 600
MOST_NODES = 2000  # each looked at by itself
NULL = 1e-7  # σ below this times ‖B‖'s scale counts as null while searching; the engine has the last word


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Objective of one design, and what is hardest to see in it (worst first)."""

    value: float
    witnesses: tuple[Witness, ...]


class Evaluator:
    """One problem, one k, one objective.

    Keeps evaluated designs and the pool of cuts; the problem is never changed.
    """

    def __init__(self, problem: Problem, *, k: int | None = None, objective: Objective | str | None = None) -> None:
        self.original = problem
        self.k = check_k(k, problem.k)
        self.size = 2 * self.k
        self.objective = _choose_objective(problem, objective)
        self.problem = without_noise(problem) if self.objective is Objective.GAMMA else problem
        self.structure = self.problem.structure
        self.market = self.structure.market
        self.operator: Operator = self.structure.operator
        self._values: dict[bytes, float] = {}
        self._index()
        self.additive = self.structure.additive
        """Whether hᵀG(x)h is a sum over blocks: none shares with one that may be bought."""
        if self.structure.operator.sharing is not None:
            self.operator = self.structure.operator.weighed(self.structure.least**-0.5)

    def _index(self) -> None:
        problem, market, op = self.problem, self.market, self.operator
        self.n = len(op.node_ids)
        self.node_item = np.full(self.n, -1, dtype=np.int64)
        for i in range(market.node_items):
            read = problem.read_together.get(market.items[i], ())
            self.node_item[[op.node_index[name] for name in (market.items[i], *read)]] = i
        self.block_item = np.full(len(op.block_ids), -1, dtype=np.int64)
        for i in range(market.node_items, len(market.items)):
            self.block_item[op.block_index[market.items[i]]] = i
        self.item_block = np.full(len(market.items), -1, dtype=np.int64)
        bought = np.flatnonzero(self.block_item >= 0)
        self.item_block[self.block_item[bought]] = bought
        named, place = [problem.block_by_id[block].nodes for block in op.block_ids], op.node_index
        self.block_nodes = tuple([tuple([place[name] for name in nodes]) for nodes in named])
        closed = self.node_item >= 0
        self.waits = np.zeros(len(op.block_ids), dtype=bool)
        if closed.any():
            for j, nodes in enumerate(self.block_nodes):
                self.waits[j] = self.block_item[j] < 0 and bool(closed[list(nodes)].any())
        self.permanent = (self.block_item < 0) & ~self.waits
        self.variable = np.flatnonzero(~self.permanent)  # blocks whose presence depends on the design
        self.plain = op.premise.plain
        robust = self.objective is Objective.ROBUST and self.plain  # else `protected` takes the radii off
        self.radii = op.radii if robust else np.zeros(len(op.block_ids))
        self.always = self.node_item < 0
        """(nodes,): in every design, or to be delivered by it: a design without one of these has
        margin 0.
        """
        self.always[[op.node_index[name] for name in op.premise.deliver or ()]] = True

    @property
    def robust(self) -> bool:
        return bool(self.radii.any())

    @cached_property
    def pool(self) -> Pool:
        from rrf_design.planning.proof.cuts import Pool

        return Pool(self)

    @cached_property
    def table(self) -> AllSupports | None:
        from rrf_design.planning.supports import AllSupports

        size = min(self.size, self.n)
        # With radii smaller supports count as well, and where k is large there are most of middle
        # size.
        supports = math.comb(self.n, min(size, self.n // 2) if self.robust else size)
        small = self.plain and self.operator.matrix.shape[1] <= TABLE_COLUMNS and supports <= TABLE_SUPPORTS
        return AllSupports(self) if small else None

    @cached_property
    def columns(self) -> tuple[NDArray[np.int64], ...]:
        """Columns of each node."""
        ends = self.operator.node_offsets
        return tuple(np.arange(a, b) for a, b in pairwise(ends))

    @cached_property
    def scale(self) -> float:
        """Largest column norm with everything bought: what zero is measured against."""
        matrix = self.operator.matrix
        squares = np.bincount(matrix.indices, weights=np.square(matrix.data), minlength=matrix.shape[1])
        return float(np.sqrt(np.max(squares, initial=0.0))) or 1.0

    @cached_property
    def node_squares(self) -> tuple[float, ...]:
        """λ_min(G) of each node by itself with everything bought; none on fields too large to look
        at every node.
        """
        parts = (self.operator.matrix[:, c].toarray() for c in (self.columns if self.n <= MOST_NODES else ()))
        return tuple(max(float(np.linalg.eigvalsh(part.T @ part)[0]), 0.0) for part in parts)

    def opened(self, mask: Mask) -> Mask:
        result = self.node_item < 0
        closed = np.flatnonzero(~result)
        result[closed] = mask[self.node_item[closed]]
        return result

    def active(self, mask: Mask) -> Mask:
        """Which blocks are in the design: owned or bought, with all their queries asked."""
        result = self.permanent.copy()
        bought = self.block_item >= 0
        result[bought] = mask[self.block_item[bought]]
        if self.waits.any():
            is_open = self.opened(mask)
            for j in np.flatnonzero(self.waits):
                result[j] = is_open[list(self.block_nodes[j])].all()
        return result

    def rows(self, blocks: NDArray[Any]) -> NDArray[Any]:
        """Something per block, repeated for each of its rows."""
        return np.repeat(blocks, np.diff(self.operator.block_offsets))

    def shares(self, active: NDArray[np.bool_], opened: NDArray[np.bool_]) -> NDArray[np.float64]:
        """(designs, blocks): what is left of ‖C_j h‖² of each block in designs that hold these
        blocks over these nodes; 0 of what is not held.
        """
        held = active.astype(np.float64)
        sharing = self.structure.operator.sharing
        if self.additive or sharing is None:
            return held
        return np.asarray(held * self.structure.least / sharing.raised(active, opened))

    @cached_property
    def counted(self) -> tuple[SharingGroup, ...]:
        """Groups whose members are raised by how many of them are held, and by nothing else."""
        sharing = self.structure.operator.sharing
        if self.additive or sharing is None:
            return ()
        known = [g for g in sharing.counted if g.covariance is None or len(g.members) == 2]
        names = np.zeros(len(self.block_nodes), dtype=np.int64)
        for group in sharing.counted:
            names[group.members] += 1
        names[list(sharing.estimated)] += 1
        return tuple(g for g in known if (names[g.members] == 1).all())

    @cached_property
    def scattered(self) -> tuple[int, ...]:
        """Items of queries whose scatter was estimated, where blocks share the confidence of
        that.
        """
        sharing = self.structure.operator.sharing
        if self.additive or sharing is None or not sharing.estimated:
            return ()
        return tuple(int(self.node_item[i]) for i in sharing.scattered if self.node_item[i] >= 0)

    @cached_property
    def tangled(self) -> Mask:
        """(blocks,): those that share more than a count."""
        result = np.zeros(len(self.block_nodes), dtype=bool)
        result[self._groups.any(axis=0)] = not self.additive
        for group in self.counted:
            result[group.members] = False
        return result

    @cached_property
    def _groups(self) -> NDArray[np.bool_]:
        """(groups, blocks): who shares with whom; estimates share the confidence that is left."""
        sharing = self.structure.operator.sharing
        if sharing is None:
            return np.zeros((0, len(self.block_nodes)), dtype=bool)
        members = [*(group.members for group in sharing.counted), np.array(sharing.estimated, dtype=np.int64)]
        return np.array([np.isin(np.arange(len(self.block_nodes)), some) for some in members])

    def sharing_with(self, blocks: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """These blocks, and all that share with one of them, with one of those, and so on."""
        while not self.additive:
            touched = (self._groups & blocks).any(axis=1)
            more = np.logical_or(blocks, self._groups[touched].any(axis=0))
            if (more == blocks).all():
                break
            blocks = more
        return blocks

    def shares_no_more(self, better: int, worse: int) -> bool:
        """Whether an item shares only with what another shares with, so that it may take its place:
        no design is diluted by that.
        """
        if self.additive:
            return True
        a, b = self.item_block[[better, worse]]
        return not self.tangled[a] and bool((self._groups[:, a] <= self._groups[:, b]).all())

    def held_rows(self, active: Mask, opened: Mask) -> Any:
        """The rows of a design over all nodes."""
        rows = self.operator.matrix[np.flatnonzero(self.rows(active))]
        if self.additive:
            return rows
        factors = self.rows(np.sqrt(self.shares(active[None], opened[None])[0]))[self.rows(active)]
        return sparse.csr_array(sparse.diags_array(factors) @ rows)

    def energies(self, witness: Witness) -> NDArray[np.float64]:
        """‖C_j h‖² for every block of the problem, bought or not."""
        image = self._by_column[:, self.columns_of(witness.support)] @ witness.vector
        seen = np.bincount(self._row_block, weights=np.square(image), minlength=len(self.block_nodes))
        seen[list(witness.removed)] = 0.0
        return seen.astype(np.float64)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """‖C_j‖_F² of every block."""
        matrix = self.operator.matrix
        per_row = np.bincount(
            np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)),
            weights=np.square(matrix.data),
            minlength=matrix.shape[0],
        )
        return np.bincount(self._row_block, weights=per_row, minlength=len(self.block_nodes)).astype(np.float64)

    @cached_property
    def _row_block(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.block_nodes)), np.diff(self.operator.block_offsets))

    @cached_property
    def _by_column(self) -> Any:
        return (
            self.operator.matrix.tocsc()
            if self.operator.matrix.shape[1] > TABLE_COLUMNS
            else self.operator.matrix.toarray()
        )

    def columns_of(self, support: tuple[int, ...]) -> NDArray[np.int64]:
        """Columns of some nodes, in their order; without listing those of all nodes of a large
        field.
        """
        ends = self.operator.node_offsets
        return np.concatenate([np.arange(ends[i], ends[i + 1]) for i in support])

    @cached_property
    def touching(self) -> tuple[tuple[int, ...], ...]:
        """Blocks of each node."""
        result: list[list[int]] = [[] for _ in range(self.n)]
        for j, nodes in enumerate(self.block_nodes):
            for i in nodes:
                result[i].append(j)
        return tuple(tuple(blocks) for blocks in result)

    def block_gram(self, block: int, columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """C_jᵀC_j restricted to some columns."""
        a, b = self.operator.block_offsets[block], self.operator.block_offsets[block + 1]
        rows = self._by_row[a:b][:, columns]
        dense = rows.toarray() if self.operator.matrix.shape[1] > TABLE_COLUMNS else rows
        return np.asarray(dense.T @ dense)

    @cached_property
    def _by_row(self) -> Any:
        return self.operator.matrix if self.operator.matrix.shape[1] > TABLE_COLUMNS else self._by_column

    def value(self, mask: Mask) -> float:
        """The objective of a design, from the table or the engine; 0 where nothing has been
        asked.
        """
        key = np.packbits(mask).tobytes()
        if key not in self._values:
            self._values[key] = self.evaluate(mask, count=1).value
        return self._values[key]

    def evaluate(self, mask: Mask, *, count: int = 32, below: float | None = None) -> Evaluation:
        """Value and up to `count` witnesses: the worst ones, or those with a value below
        `below`.
        """
        from rrf_design.planning.supports import by_engine

        if not self.opened(mask).any():
            return Evaluation(0.0, ())
        if not self.plain:
            result = _evaluate_protected(self, mask, count=count, below=below)
        elif self.table is not None:
            result = self.table.evaluate(self.active(mask), self.opened(mask), count=count, below=below)
        else:
            result = by_engine(self, mask, count=count, below=below)
        self._values[np.packbits(mask).tobytes()] = result.value
        return result

    def summit(self) -> float:
        """No design has a margin above this: everything bought, diluted as little as may be, and
        every check right. Infinite where queries are on sale.
        """
        from rrf_design.premise import protected

        if self.market.node_items:
            return math.inf
        right = replace(self.operator.premise, wrong_checks=0)
        return protected(self.operator, self.k, premise=right).solved.upper

    def confirm(self, mask: Mask, *, n_jobs: int | None = None) -> DesignMargin:
        """γ_k of the design by the exact engine, named; what a plan reports."""
        return self.design(mask).margin(self.k, n_jobs=n_jobs)

    def design(self, mask: Mask) -> Design:
        from rrf_design.design import Design

        return Design(self.structure, self.opened(mask), self.active(mask), selected=self.market.names(mask))

    def confirm_value(self, mask: Mask, confirmed: DesignMargin, *, n_jobs: int | None = None) -> float:
        """The objective of the design by the exact engine: γ itself, or a proven lower bound on γ −
        η.
        """
        from rrf_design.planning.supports import robust_value

        if not self.plain:
            return self.evaluate(mask, count=1).value
        if not self.robust:
            return confirmed.value
        found = robust_value(self, mask, n_jobs=n_jobs)
        return max(found.value if found.exact else found.lower, 0.0)

    def witness_names(self, witness: Witness) -> dict[str, tuple[float, ...]]:
        full = np.zeros(self.operator.matrix.shape[1])
        full[self.columns_of(witness.support)] = witness.vector
        return self.operator.unstack(full, only=witness.support)


def _choose_objective(problem: Problem, objective: Objective | str | None) -> Objective:
    """The user's choice; without one what a goal is held against: γ − η where relations are
    uncertain, else what `margin` computes.
    """
    if objective is None:
        if any(b.uncertainty > 0 for b in problem.blocks):
            return Objective.ROBUST
        noisy = any(b.sigma is not None or b.covariance is not None for b in problem.blocks)
        return Objective.GAMMA_SIGMA if noisy else Objective.GAMMA
    try:
        return Objective(objective)
    except ValueError:
        raise InputError(f"objective: {objective!r} is not one of {', '.join(Objective)}") from None


FURTHER = 1.05  # further witnesses are those within this factor of the margin, unless a level is given
SMALLEST = 1e-9  # of the scale: the same where the margin is zero


def _evaluate_protected(evaluator: Evaluator, mask: Mask, *, count: int, below: float | None) -> Evaluation:
    """Value and witnesses of a design, worst first; the value is what a plan reports for it."""

    design = evaluator.design(mask)
    found = design.margin(evaluator.k)
    value = found.value
    if evaluator.objective is Objective.ROBUST:
        value = min(value, design.robust_lower(found))
    operator = found.operator
    removed = tuple(evaluator.operator.block_index[name] for name in found.wrong)
    first = _witness(evaluator, operator, found.solved.direction, found.value, removed)
    listed = (
        [] if count == 1 or operator.premise.wrong_checks else _others(evaluator, operator, found.value, below, count)
    )
    others = [_witness(evaluator, operator, np.asarray(s.direction), s.value) for s in listed]
    return Evaluation(value, (first, *(w for w in others if w.support != first.support))[:count])


def _others(
    evaluator: Evaluator, operator: Operator, value: float, below: float | None, count: int
) -> tuple[SupportValue, ...]:
    from solvers import delivered_supports_below, supports_below

    _, groups = unit_groups(operator)
    level = max(value * FURTHER, SMALLEST * evaluator.scale) if below is None else below
    size = min(evaluator.size, len(groups))
    if operator.premise.deliver is None:
        found = supports_below(operator.matrix, groups, size=size, threshold=level, limit=count)
    else:
        wanted = delivered_columns(operator)
        found = delivered_supports_below(operator.matrix, groups, wanted, size=size, threshold=level, limit=count)
    return found.supports


def _witness(
    evaluator: Evaluator,
    operator: Operator,
    direction: NDArray[np.float64],
    value: float,
    removed: tuple[int, ...] = (),
) -> Witness:
    """A direction over the columns of a design as a witness over the nodes of the evaluator that it
    moves.
    """
    moved = [i for i, part in enumerate(operator.groups) if np.any(direction[part] != 0.0)]
    place = evaluator.operator.node_index
    vector = np.concatenate([direction[operator.groups[i]] for i in moved])
    return Witness(tuple(place[operator.node_ids[i]] for i in moved), vector, value, removed)
