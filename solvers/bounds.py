"""Relaxations of γ that enumerate no supports: each value comes with the data another program can
prove it from.

These are floating-point results. A `_Relaxation` says what it suggests and carries the proof data
(weights, a dual matrix); whoever prints a bound proves it first, with the rounding paid for.

`dominance`: coherence after group whitening, with optimal scaling: a lower bound on γ for any size,
in one sweep over the pairs.

For a threshold τ let D_i = G_ii − τI and c_ij = ‖D_i^(-1/2) G_ij D_j^(-1/2)‖. If for some w > 0 the
s − 1 largest c_ij w_j of every row sum to at most w_i, every G_SS − τI with |S| = s is positive
semidefinite. The best w is the Perron vector of the map w → (sum of the s − 1 largest c_ij w_j)_i,
which is monotone and homogeneous, so power iteration finds it; the largest τ by bisection. With w =
1 and s = 2 this is the coherence bound, with τ in the diagonal Gershgorin's.

`mixed_integer`: support selection with binary variables over a linear outer approximation of the
semidefinite relaxation.

Variables: z_i = 1 for nodes in the support (s of them), and X standing for hhᵀ. Linear rows tie
them together: tr X = 1, Σ_a∈i X_aa ≤ z_i, |X_ab| ≤ ½z_i and ½z_j and (X_aa + X_bb)/2, Σ|X_ab| ≤
s·d. Semidefiniteness enters as cuts vᵀXv ≥ 0 from eigenvectors of the current X, first on the
linear relaxation, then around the supports the integer solver proposes. Every finite set of cuts
leaves a relaxation, so min ⟨G, X⟩ is below γ² at any time. The bound is a float of a solver with
tolerances: an estimate, to be re-proved before anybody prints it. One model, two front ends:
OR-Tools and PuLP.

What it is for: a second opinion from general solvers on small fields. All pairs of coordinates are
variables and the root bound is weak, so beyond a few dozen coordinates it ends with nothing. The
branch and bound that this problem deserves, node in or node out with a bound on every completion
and connectivity built in, is the search itself (`solvers._root_batches`).

`semidefinite`: the dual for group-sparse smallest eigenvalues (d'Aspremont's relaxation with
groups).

γ² ≥ min ⟨G, X⟩ over X ⪰ 0, tr X = 1, Σ‖X_ij‖_F ≤ s, since X = hhᵀ of a unit h on s nodes is among
them. It is solved by splitting: X is projected on the spectraplex, its copy on the ball of the
block norm, and the multiplier U of their equality is the dual matrix: γ² ≥ λ_min(G + U) − b(U) for
every U whatsoever, where b(U) is the smaller of s·max‖U_ij‖ and the largest sum of s block norms in
a row. The best U met is kept, so stopping early is sound.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from solvers._gram import NodeColumns, column_groups


@dataclass(frozen=True, slots=True)
class _Relaxation:
    """A lower bound on γ as floating point sees it: an estimate until it is proven from its
    data.
    """

    estimate: float
    method: str
    data: NDArray[np.float64] | None
    """What a proof needs: weights of the dominance, the lower triangle of the dual matrix; None:
    prove it otherwise.
    """
    finished: bool
    """False: stopped by the time limit; the estimate is valid, but a longer run may give a better
    one.
    """

    def __post_init__(self) -> None:
        if self.data is not None:
            self.data.setflags(write=False)


Array = NDArray[np.float64]


def dominance(B: Any, groups: Any = None, *, size: int, steps: int = 40) -> _Relaxation:
    """γ(size) ≥ the estimate, by scaled block dominance; `data` are the weights."""
    matrix = sparse.csr_array(B, dtype=np.float64)
    columns = column_groups(groups, matrix.shape[1])
    pairs = _Pairs(matrix, columns)
    low, weights = 0.0, np.ones(len(columns))
    top = pairs.least_diagonal()
    if top <= 0.0 or pairs.excess(0.0, size, weights)[0] > 1.0:
        return _Relaxation(0.0, "dominance", weights, True)
    _, weights = pairs.excess(0.0, size, weights)
    high = top
    for _ in range(steps):
        middle = (low + high) / 2
        excess, better = pairs.excess(middle, size, weights)
        if excess <= 1.0:
            low, weights = middle, better
        else:
            high = middle
    return _Relaxation(float(np.sqrt(low)), "dominance", weights.copy(), True)


class _Pairs:
    """Blocks of G = BᵀB for pairs of nodes that share a row, batched by shape."""

    def __init__(self, matrix: sparse.csr_array, columns: NodeColumns) -> None:
        sizes = columns.sizes
        order = columns.order
        gram = (matrix[:, order].T @ matrix[:, order]).tocsr()
        starts = np.concatenate([[0], np.cumsum(sizes)])
        owner = np.repeat(np.arange(len(sizes)), sizes)
        coo = gram.tocoo()
        keys = np.unique(owner[coo.coords[0]] * len(sizes) + owner[coo.coords[1]])
        heads, tails = keys // len(sizes), keys % len(sizes)
        self.nodes = len(sizes)
        self.sizes = sizes
        self.diagonal = {}
        for a in np.unique(sizes):
            nodes = np.flatnonzero(sizes == a)
            self.diagonal[int(a)] = (nodes, _gather(gram, starts[nodes], starts[nodes], int(a), int(a)))
        keep = heads != tails
        self.heads, self.tails = heads[keep], tails[keep]
        self.batches = []
        for a in np.unique(sizes):
            for b in np.unique(sizes):
                pick = np.flatnonzero((sizes[self.heads] == a) & (sizes[self.tails] == b))
                if len(pick):
                    blocks = _gather(gram, starts[self.heads[pick]], starts[self.tails[pick]], int(a), int(b))
                    self.batches.append((pick, blocks))
        self.rank = np.arange(len(self.heads)) - np.searchsorted(self.heads, self.heads)

    def least_diagonal(self) -> float:
        return min(float(np.linalg.eigvalsh(blocks)[:, 0].min()) for _, blocks in self.diagonal.values())

    def couplings(self, tau: float) -> Array | None:
        """c_ij for all pairs, or None where a diagonal block is not above τ."""
        scales: dict[int, Array] = {}
        place = np.zeros(self.nodes, dtype=np.int64)
        for a, (nodes, blocks) in self.diagonal.items():
            try:
                factor = np.linalg.cholesky(blocks - tau * np.eye(a))
            except np.linalg.LinAlgError:
                return None
            scales[a] = np.swapaxes(np.linalg.inv(factor), 1, 2)
            place[nodes] = np.arange(len(nodes))
        result = np.zeros(len(self.heads))
        for pick, blocks in self.batches:
            left = scales[blocks.shape[1]][place[self.heads[pick]]]
            right = scales[blocks.shape[2]][place[self.tails[pick]]]
            image = np.swapaxes(left, 1, 2) @ blocks @ right
            one = 1 in blocks.shape[1:]
            norms = np.sqrt(np.square(image).sum(axis=(1, 2))) if one else np.linalg.norm(image, 2, axis=(1, 2))
            # the prover bounds norms of larger blocks from above by a power of the Gram matrix
            result[pick] = norms if one else norms * 1.006
        return result

    def excess(self, tau: float, size: int, weights: Array, iterations: int = 60) -> tuple[float, Array]:
        """Least found max_i (sum of the size − 1 largest c_ij w_j)/w_i, and its weights."""
        couplings = self.couplings(tau)
        if couplings is None:
            return float("inf"), weights
        best, best_weights = float("inf"), weights
        for _ in range(iterations):
            pulls = couplings * weights[self.tails]
            order = np.lexsort((-pulls, self.heads))
            kept = order[self.rank < size - 1]
            sums = np.bincount(self.heads[kept], weights=pulls[kept], minlength=self.nodes)
            ratio = float((sums / weights).max(initial=0.0))
            if ratio < best:
                best, best_weights = ratio, weights
            if best <= 1.0 - 1e-9:
                break
            # a node without neighbours keeps a small weight; the shift damps the oscillation on
            # bipartite fields
            mixed = weights + sums / max(ratio, 1e-300)
            weights = np.maximum(mixed / mixed.max(), 1e-9)
        return best * (1 + 1e-10), best_weights


def _gather(gram: Any, rows: NDArray[np.int64], columns: NDArray[np.int64], a: int, b: int) -> Array:
    result = np.zeros((len(rows), a, b))
    for p in range(a):
        for q in range(b):
            result[:, p, q] = np.asarray(gram[rows + p, columns + q]).ravel()
    return result


PAIRED_COORDINATES = 48  # coordinates: all pairs are variables
ROUNDS = 60  # of cuts on the linear relaxation
PER_ROUND = 8


class _FrontEnd(StrEnum):
    ORTOOLS = "ortools"
    PULP = "pulp"


@dataclass(slots=True)
class _Model:
    """min cost·x with rows low ≤ a·x, bounds, and binaries first."""

    cost: Array
    lower: Array
    upper: Array
    binaries: int
    rows: list[tuple[NDArray[np.int64], Array, float]] = field(default_factory=list)

    def add(self, where: Any, values: Any, low: float = 0.0) -> None:
        self.rows.append((np.asarray(where, dtype=np.int64), np.asarray(values, dtype=np.float64), low))


@dataclass(frozen=True, slots=True)
class _Answer:
    point: Array | None
    bound: float
    optimal: bool


def mixed_integer(
    B: Any, groups: Any = None, *, size: int, time_limit: float = 30.0, front_end: _FrontEnd | str = _FrontEnd.ORTOOLS
) -> _Relaxation:
    """γ(size) ≥ the estimate, as far as the solver's tolerances can be trusted."""
    dense = np.asarray(B.toarray() if sparse.issparse(B) else B, dtype=np.float64)
    columns = column_groups(groups, dense.shape[1])
    if dense.shape[1] > PAIRED_COORDINATES:
        raise ValueError(
            f"{dense.shape[1]} coordinates are more than {PAIRED_COORDINATES}, beyond which it proves nothing in any"
            " time worth waiting for; the search branches on the same choices with better bounds"
        )
    solve = {_FrontEnd.ORTOOLS: _ortools, _FrontEnd.PULP: _pulp}[_FrontEnd(front_end)]
    order = columns.order
    owner = np.repeat(np.arange(len(columns)), columns.sizes)
    gram = dense[:, order].T @ dense[:, order]
    scale = float(np.abs(gram).max()) or 1.0
    search = _Search(gram / scale, owner, min(size, len(columns)), time.monotonic() + time_limit, solve)
    bound, finished = search.run()
    return _Relaxation(float(np.sqrt(max(0.0, bound) * scale)), f"mixed-integer ({front_end})", None, finished)


class _Search:
    def __init__(self, gram: Array, owner: NDArray[np.int64], size: int, deadline: float, solve: Any) -> None:
        self.order, self.nodes, self.deadline, self.solve = len(gram), int(owner[-1]) + 1, deadline, solve
        self.place = np.zeros((self.order, self.order), dtype=np.int64)
        left, right = np.triu_indices(self.order)
        self.place[left, right] = self.nodes + np.arange(len(left))
        self.place[right, left] = self.place[left, right]
        self.model = self._base(gram, owner, size)

    def _base(self, gram: Array, owner: NDArray[np.int64], size: int) -> _Model:
        left, right = np.triu_indices(self.order)
        pairs, entries = np.flatnonzero(left != right), len(left)
        total = self.nodes + entries + len(pairs)  # binaries, X, and |X_ab| for a < b
        cost = np.zeros(total)
        cost[self.nodes : self.nodes + entries] = np.where(left == right, 1.0, 2.0) * gram[left, right]
        lower = np.zeros(total)
        lower[self.nodes + pairs] = -0.5
        upper = np.ones(total)
        upper[self.nodes + pairs] = 0.5
        upper[self.nodes + entries :] = 0.5
        model = _Model(cost, lower, upper, self.nodes)
        every = np.arange(self.nodes)
        model.add(every, -np.ones(self.nodes), -float(size))
        diagonal = np.diag(self.place)
        model.add(diagonal, np.ones(self.order), 1.0)
        model.add(diagonal, -np.ones(self.order), -1.0)
        for node in every:
            mine = diagonal[owner == node]
            model.add([node, *mine], [1.0, *(-np.ones(len(mine)))])
        largest = int(np.sort(np.bincount(owner))[-size:].sum())
        sizes = np.arange(self.nodes + entries, total)
        model.add(
            np.concatenate([diagonal, sizes]),
            np.concatenate([-np.ones(self.order), -2 * np.ones(len(sizes))]),
            -float(largest),
        )
        for number, pair in enumerate(pairs):
            x, absolute = self.nodes + pair, self.nodes + entries + number
            a, b = int(left[pair]), int(right[pair])
            model.add([absolute, x], [1.0, -1.0])
            model.add([absolute, x], [1.0, 1.0])
            model.add([diagonal[a], diagonal[b], absolute], [0.5, 0.5, -1.0])
            for member in {int(owner[a]), int(owner[b])}:
                model.add([member, absolute], [0.5, -1.0])
        return model

    def run(self) -> tuple[float, bool]:
        """The best bound met, and whether nothing more was to be gained."""
        bound, quiet = -np.inf, 0
        for _ in range(ROUNDS):
            answer = self.solve(self.model, False, self._left())
            gain = answer.bound - bound
            bound = max(bound, answer.bound)
            quiet = quiet + 1 if gain < 1e-4 else 0
            if answer.point is None or not self._cut(answer.point) or quiet >= 5 or self._left() <= 0:
                break
        for _ in range(20):
            if self._left() <= 0:
                return bound, False
            answer = self.solve(self.model, True, self._left())
            gain = answer.bound - bound
            bound = max(bound, answer.bound)
            if not answer.optimal or answer.point is None:
                return bound, False
            if not self._cut(answer.point) or gain < 1e-6:
                return bound, True
        return bound, False

    def _left(self) -> float:
        return self.deadline - time.monotonic()

    def _cut(self, point: Array) -> bool:
        """Add vᵀXv ≥ 0 for the worst eigenvectors; False when X is semidefinite already."""
        values, vectors = np.linalg.eigh(point[self.place])
        worst = [j for j in range(min(PER_ROUND, self.order)) if values[j] < -1e-6]
        left, right = np.triu_indices(self.order)
        factor = np.where(left == right, 1.0, 2.0)
        for j in worst:
            v = np.where(np.abs(vectors[:, j]) < 1e-7, 0.0, vectors[:, j])
            row = factor * v[left] * v[right]
            kept = np.flatnonzero(row)
            self.model.add(self.nodes + kept, row[kept])
        return bool(worst)


def _ortools(model: _Model, integer: bool, seconds: float) -> _Answer:
    from ortools.linear_solver import pywraplp

    solver = pywraplp.Solver.CreateSolver("SCIP" if integer else "GLOP")
    variables = [
        solver.IntVar(0, 1, "") if integer and j < model.binaries else solver.NumVar(float(a), float(b), "")
        for j, (a, b) in enumerate(zip(model.lower, model.upper, strict=True))
    ]
    for where, values, low in model.rows:
        row = solver.Constraint(low, solver.infinity())
        for j, value in zip(where.tolist(), values.tolist(), strict=True):
            row.SetCoefficient(variables[j], value)
    goal = solver.Objective()
    for j in np.flatnonzero(model.cost):
        goal.SetCoefficient(variables[j], float(model.cost[j]))
    goal.SetMinimization()
    solver.SetTimeLimit(max(1, int(1000 * seconds)))
    status = solver.Solve()
    solved = status == pywraplp.Solver.OPTIMAL
    if not integer:
        bound = goal.Value() if solved else -np.inf
    else:
        bound = goal.BestBound() if status in (pywraplp.Solver.OPTIMAL, pywraplp.Solver.FEASIBLE) else -np.inf
    point = np.array([v.solution_value() for v in variables]) if solved else None
    return _Answer(point, float(bound), solved)


def _pulp(model: _Model, integer: bool, seconds: float) -> _Answer:
    """CBC through PuLP.

    A run that is cut off has no bound to offer here (PuLP does not pass CBC's on).
    """
    import warnings

    import pulp

    with warnings.catch_warnings():
        # PuLP 3 announces other spellings for PuLP 4; these work from 2.9 on, and CBC comes with
        # the package
        warnings.simplefilter("ignore", DeprecationWarning)
        problem = pulp.LpProblem("support", pulp.LpMinimize)
        variables = [
            pulp.LpVariable(f"x{j}", float(a), float(b), "Integer" if integer and j < model.binaries else "Continuous")
            for j, (a, b) in enumerate(zip(model.lower, model.upper, strict=True))
        ]
        problem += pulp.LpAffineExpression((variables[j], float(model.cost[j])) for j in np.flatnonzero(model.cost))
        for where, values, low in model.rows:
            terms = [(variables[j], v) for j, v in zip(where.tolist(), values.tolist(), strict=True)]
            problem += pulp.LpAffineExpression(terms) >= low
        status = problem.solve(pulp.PULP_CBC_CMD(msg=False, timeLimit=max(1.0, seconds), gapRel=0.0, threads=1))
        if status != pulp.LpStatusOptimal or problem.sol_status != pulp.LpSolutionOptimal:
            return _Answer(None, -np.inf, False)
        return _Answer(np.array([v.value() or 0.0 for v in variables]), float(pulp.value(problem.objective)), True)


RELAXED_COORDINATES = 600  # coordinates: beyond it one eigenvalue decomposition per step no longer pays


def semidefinite(
    B: Any, groups: Any = None, *, size: int, iterations: int = 1500, time_limit: float | None = None
) -> _Relaxation:
    """γ(size) ≥ the estimate; `data` is the lower triangle of U, row by row, in the order of the
    nodes' columns.
    """
    dense = np.asarray(B.toarray() if sparse.issparse(B) else B, dtype=np.float64)
    columns = column_groups(groups, dense.shape[1])
    if dense.shape[1] > RELAXED_COORDINATES:
        raise ValueError(f"{dense.shape[1]} coordinates are more than {RELAXED_COORDINATES}")
    order = columns.order
    owner = np.repeat(np.arange(len(columns)), columns.sizes)
    gram = dense[:, order].T @ dense[:, order]
    scale = float(np.abs(gram).max()) or 1.0
    problem = _Dual(gram / scale, owner, min(size, len(columns)))
    finished = problem.solve(iterations, None if time_limit is None else time.monotonic() + time_limit)
    value = float(np.sqrt(max(0.0, problem.best) * scale))
    return _Relaxation(value, "semidefinite", (problem.dual * scale)[np.tril_indices(len(gram))], finished)


class _Dual:
    """ADMM on the primal; every tenth step the multiplier is evaluated as a dual bound."""

    def __init__(self, gram: Array, owner: NDArray[np.int64], size: int) -> None:
        self.gram, self.owner, self.size = gram, owner, size
        self.nodes = int(owner[-1]) + 1
        self.best = 0.0
        self.dual = np.zeros_like(gram)
        self.starts = np.searchsorted(owner, np.arange(self.nodes))
        for candidate in (np.zeros_like(gram), -self._off_diagonal(gram)):
            self._offer(candidate)

    def solve(self, iterations: int, deadline: float | None) -> bool:
        order = len(self.gram)
        rho = 0.5
        copy = np.eye(order) / order
        scaled = np.zeros_like(self.gram)
        quiet = 0
        for step in range(1, iterations + 1):
            x = _spectraplex(copy - scaled - self.gram / rho)
            before = copy
            copy = self._ball(x + scaled)
            scaled = scaled + x - copy
            if step % 10 == 0:
                held = self.best
                self._offer(-rho * scaled)
                self._offer(rho * scaled)
                quiet = quiet + 1 if self.best <= held * (1 + 1e-5) + 1e-12 else 0
                if quiet >= 15:
                    return True
                primal, dual = np.linalg.norm(x - copy), rho * np.linalg.norm(copy - before)
                if primal > 5 * dual:
                    rho, scaled = rho * 1.5, scaled / 1.5
                elif dual > 5 * primal:
                    rho, scaled = rho / 1.5, scaled * 1.5
                if deadline is not None and time.monotonic() > deadline:
                    return False
        return True

    def _offer(self, dual: Array) -> None:
        value = self.evaluate(dual)
        if value > self.best:
            self.best, self.dual = value, dual

    def evaluate(self, dual: Array) -> float:
        """λ_min(G + U) − b(U)."""
        norms = self._norms(dual)
        cover = min(float(norms.max()) * self.size, float(np.sort(norms, axis=1)[:, -self.size :].sum(axis=1).max()))
        return float(np.linalg.eigvalsh(self.gram + dual)[0]) - cover

    def _norms(self, matrix: Array) -> Array:
        """Block norms: Frobenius, which is at least the spectral norm the bound needs."""
        squares = np.add.reduceat(np.add.reduceat(np.square(matrix), self.starts, axis=0), self.starts, axis=1)
        return np.asarray(np.sqrt(squares))

    def _off_diagonal(self, matrix: Array) -> Array:
        return np.where(self.owner[:, None] == self.owner[None, :], 0.0, matrix)

    def _ball(self, matrix: Array) -> Array:
        """Projection on Σ‖X_ij‖_F ≤ s: block norms shrink by one amount, found by sorting."""
        norms = self._norms(matrix)
        flat = np.sort(norms.ravel())[::-1]
        if flat.sum() <= self.size:
            return matrix
        partial = (np.cumsum(flat) - self.size) / np.arange(1, len(flat) + 1)
        threshold = partial[np.flatnonzero(flat > partial)[-1]]
        factors = np.maximum(0.0, 1.0 - threshold / np.maximum(norms, 1e-300))
        return np.asarray(matrix * factors[np.ix_(self.owner, self.owner)])


def _spectraplex(matrix: Array) -> Array:
    """Projection on {X ⪰ 0, tr X = 1}."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    falling = values[::-1]
    partial = (np.cumsum(falling) - 1.0) / np.arange(1, len(falling) + 1)
    threshold = partial[np.flatnonzero(falling > partial)[-1]]
    kept = np.maximum(values - threshold, 0.0)
    positive = kept > 0
    return np.asarray((vectors[:, positive] * kept[positive]) @ vectors[:, positive].T)
