"""γ by small mixed-integer programs, one for each ball of the field: a second opinion by general
solvers, which know nothing of the search they are compared with.

Let a support of at most s nodes be harmful at τ, λ_min(G_SS) < τ. Whiten the diagonal blocks of
G − τI and scale node i by w_i > 0: N = D(G − τI)D then has a negative eigenvalue μ on S, and on one
connected part C of S; let g be its eigenvector there and r the node where its block is largest. So
all of C lies within s − 1 steps of r, and γ² ≥ τ when no node is such a root. For each root, in its
ball:

    z_i = 1 for nodes of C, at most s of them, connected: a node has a chosen neighbour, and one is
    chosen at every distance before its own; z_r = 1
    X = ggᵀ with tr X_rr = 1 ≥ tr X_ii ≤ z_i, |X_ab| ≤ z_i and z_j, |X_ab| ≤ (X_aa + X_bb)/2
    (Ng)_a = μ g_a, so Σ_b N_ab X_ab ≤ 0 for every coordinate a
    X ⪰ 0, by cuts vᵀXv ≥ 0 at the points that were proposed

N joins neighbours only. So X needs entries for pairs in a clique of the ball's chordal extension,
the root being in each: where these are semidefinite, the rest can be completed. A support that is
proposed and is harmless is ruled out with all parts of the largest harmless set around it, so the
programs end whatever the solver's tolerances are; one that is harmful lowers the threshold. A root
whose weighted couplings add up to at most 1 needs no program (`bounds.dominance_sums`), and most of
the others none over whole numbers: the linear relaxation has no point either.

All balls are asked at a common threshold, and all again at another one: its N has other
eigenvectors, so a support may then have its root where nothing was found before. What comes out is
a float of solvers with tolerances: an estimate, to be proved again before anybody prints it. One
model, two front ends: OR-Tools and PuLP.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from solvers._gram import NodeColumns, column_groups
from solvers.bounds import Relaxation, dominance_sums
from solvers.tasks import Stop, run_tasks

Array = NDArray[np.float64]

LEVELS = (0.97, 0.99, 0.999)  # shares of the best value known that are asked for, one after the other
LOWER = (0.9, 0.75, 0.5, 0.25)  # asked of the balls that are still open at the first of them
ENTRIES = 1200  # of X in one ball: the chordal extension of 48 dense coordinates has 1,176
PROGRAMS = 4000  # balls
TOGETHER = 8  # balls in one task
RELAXED = 4  # rounds of cuts on the linear relaxation
NOTHING = 1e-15  # squares of margins, beside the largest entry of G: no program tells them from zero
NEGATIVE = 1e-6  # eigenvalues of X below this are cut off


class FrontEnd(StrEnum):
    """Which library hands the programs to a solver: SCIP through OR-Tools, or CBC through PuLP."""

    ORTOOLS = "ortools"
    PULP = "pulp"


@dataclass(frozen=True, slots=True)
class _Answer:
    """Of one program: a point, or the proof that there is none, or neither."""

    point: Array | None
    infeasible: bool


@dataclass(slots=True)
class _Model:
    """Rows low ≤ a·x with bounds; the first variables are binary."""

    cost: Array
    lower: Array
    upper: Array
    binaries: int
    rows: list[tuple[NDArray[np.int64], Array, float]]

    def add(self, where: Any, values: Any, low: float = 0.0) -> None:
        self.rows.append((np.asarray(where, dtype=np.int64), np.asarray(values, dtype=np.float64), low))

    def relaxed(self) -> _Answer:
        """The least point when nothing need be a whole number."""
        from scipy.optimize import linprog

        lengths = np.cumsum([0, *(len(where) for where, *_ in self.rows)])
        entries = np.concatenate([values for _, values, _ in self.rows])
        where = np.concatenate([where for where, *_ in self.rows])
        matrix = sparse.csr_array((-entries, where, lengths), shape=(len(self.rows), len(self.cost)))
        low = np.array([low for *_, low in self.rows])
        found = linprog(
            self.cost, A_ub=matrix, b_ub=-low, bounds=np.column_stack([self.lower, self.upper]), method="highs"
        )
        return _Answer(found.x if found.status == 0 else None, found.status == 2)


@dataclass(frozen=True, slots=True)
class _BallField:
    """G by nodes, scaled to a largest entry of 1, and which nodes share a row."""

    gram: sparse.csr_array
    starts: NDArray[np.int64]
    near: tuple[NDArray[np.int64], ...]
    size: int

    @classmethod
    def of(cls, matrix: sparse.csr_array, columns: NodeColumns, size: int) -> tuple[_BallField, float]:
        """The field, and what G was divided by."""
        placed = matrix[:, columns.order].tocsr()
        gram = (placed.T @ placed).tocsr()
        scale = float(abs(gram).max()) if gram.nnz else 0.0
        scale = scale or 1.0
        owner = np.repeat(np.arange(len(columns)), columns.sizes)
        touched = sparse.csr_array(
            (np.ones(placed.nnz), (placed.tocoo().coords[0], owner[placed.tocoo().coords[1]])),
            shape=(matrix.shape[0], len(columns)),
        )
        pairs = (touched.T @ touched).tocsr()  # of ones: no entry cancels
        near = tuple(pairs.indices[pairs.indptr[i] : pairs.indptr[i + 1]] for i in range(len(columns)))
        near = tuple(np.sort(others[others != i]) for i, others in enumerate(near))
        return cls(gram / scale, columns.offsets, near, size), scale

    def whitened(self, tau: float, weights: Array) -> sparse.csr_array:
        """N = D(G − τI)D: its diagonal blocks are w_i² times the identity."""
        blocks = []
        for i, (a, b) in enumerate(pairwise(self.starts)):
            block = self.gram[a:b, a:b].toarray() - tau * np.eye(b - a)
            blocks.append(weights[i] * np.linalg.inv(np.linalg.cholesky(block)))
        factor = sparse.block_diag(blocks, format="csr")
        shifted = self.gram - tau * sparse.eye_array(self.gram.shape[0], format="csr")
        return (factor @ shifted @ factor.T).tocsr()

    def ball(self, root: int) -> dict[int, int]:
        """Nodes that a connected support with this node can have, the nearest first, with their
        distance from it.
        """
        steps = {root: 0}
        queue = [root]
        for node in queue:
            if steps[node] == self.size - 1:
                break
            for other in self.near[node].tolist():
                if other not in steps:
                    steps[other] = steps[node] + 1
                    queue.append(other)
        return steps

    def cliques(self, ball: dict[int, int], root: int) -> list[list[int]]:
        """Of a chordal extension of the ball, by eliminating the node with the fewest neighbours
        first; the root is in each.
        """
        left = {i: {int(j) for j in self.near[i] if j in ball} - {root} for i in ball if i != root}
        found: list[set[int]] = []
        while left:
            node = min(left, key=lambda i: (len(left[i]), i))
            others = left.pop(node)
            for other in others:
                left[other] |= others
                left[other] -= {other, node}
            if not any(others | {node} <= clique for clique in found):
                found.append(others | {node})
        return [[root, *sorted(clique)] for clique in found] or [[root]]

    def entries(self, cliques: Sequence[Sequence[int]]) -> int:
        """How many entries of X the cliques need, counted once for each."""
        widths = np.diff(self.starts)
        return sum(int(widths[c].sum()) * (int(widths[c].sum()) + 1) // 2 for c in cliques)


class _BallProgram:
    """The model of one root, and the cuts it has learnt."""

    def __init__(self, field: _BallField, whitened: sparse.csr_array, root: int) -> None:
        self.ball = field.ball(root)
        self.nodes = list(self.ball)
        self.place_of = {node: number for number, node in enumerate(self.nodes)}
        columns = [np.arange(field.starts[i], field.starts[i + 1]) for i in self.nodes]
        offsets = np.cumsum([0, *(len(c) for c in columns)])
        self.own = [np.arange(a, b) for a, b in pairwise(offsets)]
        owner = np.repeat(np.arange(len(self.nodes)), np.diff(offsets))
        chosen = np.concatenate(columns)
        self.form = whitened[chosen][:, chosen].toarray()
        self.cliques = [
            np.concatenate([self.own[self.place_of[i]] for i in clique]) for clique in field.cliques(self.ball, root)
        ]
        self.entry = self._entries(len(chosen))
        self.model = self._base(field, owner)
        self.fixed = len(self.model.rows)

    def _entries(self, order: int) -> NDArray[np.int64]:
        """(order, order): the variable of each entry of X that there is, −1 elsewhere."""
        entry = np.full((order, order), -1, dtype=np.int64)
        wanted = np.zeros((order, order), dtype=bool)
        for clique in self.cliques:
            wanted[np.ix_(clique, clique)] = True
        left, right = np.nonzero(np.triu(wanted))
        entry[left, right] = entry[right, left] = len(self.nodes) + np.arange(len(left))
        return entry

    def _base(self, field: _BallField, owner: NDArray[np.int64]) -> _Model:
        nodes, entry = len(self.nodes), self.entry
        total = int(entry.max()) + 1
        left, right = np.nonzero(np.triu(entry >= 0))
        cost, lower, upper = np.zeros(total), np.zeros(total), np.ones(total)
        cost[entry[left, right]] = np.where(left == right, 1.0, 2.0) * self.form[left, right]
        lower[entry[left, right]] = np.where(left == right, 0.0, -1.0)
        lower[0] = 1.0
        model = _Model(cost, lower, upper, nodes, [])
        model.add(np.arange(nodes), -np.ones(nodes), -float(field.size))
        traces = [entry[own, own] for own in self.own]
        model.add(traces[0], np.ones(len(traces[0])), 1.0)
        model.add(traces[0], -np.ones(len(traces[0])), -1.0)
        for node in range(1, nodes):
            model.add([node, *traces[node]], [1.0, *(-np.ones(len(traces[node])))])
        for a, b in zip(left.tolist(), right.tolist(), strict=True):
            if a == b:
                continue
            for sign in (1.0, -1.0):
                model.add([entry[a, a], entry[b, b], entry[a, b]], [0.5, 0.5, sign])
                for node in {int(owner[a]), int(owner[b])} - {0}:
                    model.add([node, entry[a, b]], [1.0, sign])
        for a in range(len(owner)):
            others = np.flatnonzero(self.form[a])
            model.add(entry[a, others], -self.form[a, others])
        self._connect(field, model)
        return model

    def _connect(self, field: _BallField, model: _Model) -> None:
        steps = np.array(list(self.ball.values()))
        for number, node in enumerate(self.nodes[1:], start=1):
            beside = [self.place_of[j] for j in field.near[node].tolist() if j in self.place_of]
            if 0 not in beside:
                model.add([number, *beside], [-1.0, *np.ones(len(beside))])
            for step in range(1, steps[number]):
                layer = np.flatnonzero(steps == step)
                model.add([number, *layer], [-1.0, *np.ones(len(layer))])

    def cut(self, point: Array) -> bool:
        """Add vᵀXv ≥ 0 for the worst eigenvectors of every clique; False where X is semidefinite in
        all.
        """
        known = len(self.model.rows)
        for clique in self.cliques:
            values, vectors = np.linalg.eigh(point[self.entry[np.ix_(clique, clique)]])
            left, right = np.triu_indices(len(clique))
            for j in np.flatnonzero(values < -NEGATIVE)[:3]:
                v = np.where(np.abs(vectors[:, j]) < 1e-7, 0.0, vectors[:, j])
                row = np.where(left == right, 1.0, 2.0) * v[left] * v[right]
                kept = np.flatnonzero(row)
                self.model.add(self.entry[clique[left[kept]], clique[right[kept]]], row[kept])
        return len(self.model.rows) > known

    def forget(self, point: Array) -> None:
        """Cuts that this point does not feel: the integer solver is quicker without them."""
        rows = self.model.rows
        rows[self.fixed :] = [row for row in rows[self.fixed :] if row[1] @ point[row[0]] < row[2] + 1e-3]

    def harmless(self, chosen: Sequence[int]) -> bool:
        """Whether N is semidefinite on these nodes, by their number in the ball."""
        part = np.concatenate([self.own[i] for i in chosen])
        return bool(np.linalg.eigvalsh(self.form[np.ix_(part, part)])[0] >= 0.0)

    def rule_out(self, chosen: list[int]) -> bool:
        """Ask for a node outside the largest harmless set around a harmless support; False where
        there is none.
        """
        for node in range(len(self.nodes)):
            if node not in chosen and self.harmless([*chosen, node]):
                chosen.append(node)
        outside = [node for node in range(len(self.nodes)) if node not in chosen]
        if outside:
            self.model.add(outside, np.ones(len(outside)), 1.0)
        return bool(outside)


@dataclass(frozen=True, slots=True)
class _Settled:
    """What came of one root."""

    root: int
    proven: bool
    harmful: tuple[int, ...] = ()
    """A support below the threshold, by node."""
    programs: int = 0
    """Over whole numbers."""


def _settle(program: _BallProgram, root: int, solve: Any, deadline: float, stop: Stop | None) -> _Settled:
    """Prove that no harmful support has this root, or find one."""
    for _ in range(RELAXED):
        answer = program.model.relaxed()
        if answer.infeasible:
            return _Settled(root, True)
        if answer.point is None or not program.cut(answer.point):
            break
        program.forget(answer.point)
    programs = 0
    while time.time() < deadline and not (stop is not None and stop[0]):
        answer = solve(program.model, max(deadline - time.time(), 0.05))
        programs += 1
        if answer.infeasible:
            return _Settled(root, True, (), programs)
        if answer.point is None:
            break
        chosen = [node for node in range(len(program.nodes)) if answer.point[node] > 0.5]
        if not program.harmless(chosen):
            return _Settled(root, False, tuple(program.nodes[i] for i in chosen), programs)
        program.cut(answer.point)
        if not program.rule_out(chosen):
            return _Settled(root, True, (), programs)
    return _Settled(root, False, (), programs)


def _batch(
    field: _BallField,
    whitened: sparse.csr_array,
    roots: tuple[int, ...],
    front_end: FrontEnd,
    deadline: float,
    stop: Stop | None = None,
) -> list[_Settled]:
    """Several roots, none of which may take more than a few times its share of what time is
    left.
    """
    solve = {FrontEnd.ORTOOLS: _ortools, FrontEnd.PULP: _pulp}[front_end]
    settled = []
    for number, root in enumerate(roots):
        now = time.time()
        if now > deadline or (stop is not None and stop[0]):
            settled.append(_Settled(root, False))
            continue
        most = min(deadline, now + max(4 * (deadline - now) / (len(roots) - number), 1.0))
        settled.append(_settle(_BallProgram(field, whitened, root), root, solve, most, stop))
    return settled


def mixed_integer(
    B: Any,
    groups: Any = None,
    *,
    size: int,
    upper: float | None = None,
    time_limit: float = 30.0,
    front_end: FrontEnd | str = FrontEnd.ORTOOLS,
    n_jobs: int | None = None,
) -> Relaxation:
    """γ(size) ≥ the estimate, as far as the solvers' tolerances can be trusted; `upper` is a value
    that a support is known to have, if one is.
    """
    front = FrontEnd(front_end)
    matrix = sparse.csr_array(B, dtype=np.float64)
    columns = column_groups(groups, matrix.shape[1])
    field, scale = _BallField.of(matrix, columns, min(size, len(columns)))
    search = _BallSearch(field, matrix / np.sqrt(scale), columns, front, n_jobs)
    if upper is not None:
        search.best = min(search.best, upper * upper / scale)
    estimate, finished = search.run(time.time() + time_limit)
    value = float(np.sqrt(max(0.0, estimate) * scale))
    return Relaxation(value, f"mixed-integer ({front})", None, finished, search.told())


class _BallSearch:
    """All balls of a field, at one threshold after the other."""

    def __init__(
        self, field: _BallField, matrix: sparse.csr_array, columns: NodeColumns, front: FrontEnd, n_jobs: int | None
    ) -> None:
        self.field, self.matrix, self.columns, self.front, self.n_jobs = field, matrix, columns, front, n_jobs
        self.reached = 0.0
        """The largest square that all balls were proven for together."""
        self.relaxed: set[int] = set()
        self.solved: set[int] = set()
        self.programs = 0
        self.best = min(self._value((i,)) for i in range(len(columns)))

    def _value(self, support: Sequence[int]) -> float:
        part = np.concatenate([np.arange(*self.field.starts[i : i + 2]) for i in support])
        return float(np.linalg.eigvalsh(self.field.gram[part][:, part].toarray())[0])

    def told(self) -> str:
        """How many programs were really solved."""
        balls, linear = len(self.columns), len(self.relaxed - self.solved)
        return (
            f"of {balls} balls {balls - linear - len(self.solved)} needed no program, {linear} a linear one, and"
            f" {len(self.solved)} were asked {self.programs} programs over whole numbers"
        )

    def run(self, deadline: float) -> tuple[float, bool]:
        """The square that all balls are proven for, and whether nothing more was asked."""
        if self.best <= NOTHING:
            return 0.0, True
        for number, level in enumerate(LEVELS):
            left = deadline - time.time()
            if not self._reach(level, deadline if number else time.time() + 0.6 * left):
                break
        else:
            return self.reached, True
        if number == 0:
            for level in LOWER:
                if time.time() >= deadline or self._reach(level, time.time() + 0.5 * (deadline - time.time())):
                    break
        return self.reached, False

    def _reach(self, level: float, deadline: float) -> bool:
        """Ask all balls at this share of the best value; again where one of them lowers it."""
        while self.best > NOTHING:
            tau = level * level * self.best
            settled = self._ask(tau, deadline)
            found = [one.harmful for one in settled if one.harmful]
            if not found:
                whole = all(one.proven for one in settled)
                self.reached = max(self.reached, tau) if whole else self.reached
                return whole
            self.best = min(self.best, *map(self._value, found))
        return False

    def _ask(self, tau: float, deadline: float) -> list[_Settled]:
        """Settle the balls at this threshold; those that need no program are not among them."""
        weights, sums = dominance_sums(self.matrix, self.columns, size=self.field.size, tau=tau)
        asked = np.flatnonzero(sums > weights)
        if not len(asked):
            return []
        self._check(asked)
        whitened = self.field.whitened(tau, weights)
        # neighbours share much of their balls: roots far from each other are asked together
        count = -(-len(asked) // TOGETHER)
        jobs = [
            (self.field, whitened, tuple(asked[number::count].tolist()), self.front, deadline)
            for number in range(count)
        ]
        done = [one for batch in run_tasks(_batch, jobs, n_jobs=self.n_jobs, work=float("inf")) for one in batch]
        for one in done:
            self.programs += one.programs
            (self.solved if one.programs else self.relaxed).add(one.root)
        return done

    def _check(self, asked: NDArray[np.int64]) -> None:
        """Refuse what would prove nothing in any time worth waiting for."""
        if len(asked) > PROGRAMS:
            raise ValueError(
                f"{len(asked)} balls would need a program each, and more than {PROGRAMS} take longer than is worth"
                f" waiting for; a field of {PROGRAMS} nodes would do"
            )
        most, reach = self._largest(asked, self.field.size)
        if most <= ENTRIES:
            return
        smaller = next((s for s in range(self.field.size - 2, 1, -2) if self._largest(asked, s)[0] <= ENTRIES), None)
        would = (
            f"k = {smaller // 2} would do here"
            if smaller
            else f"balls of {int(((8 * ENTRIES + 1) ** 0.5 - 1) / 2)} coordinates would do, whatever is related in them"
        )
        raise ValueError(
            f"the largest ball, of radius {self.field.size - 1}, has {reach} coordinates and {most} pairs of them in a"
            f" clique, and programs of more than {ENTRIES} end with nothing in any time worth waiting for; {would}"
        )

    def _largest(self, asked: NDArray[np.int64], size: int) -> tuple[int, int]:
        """Entries of X in the largest ball, and its coordinates."""
        field = _BallField(self.field.gram, self.field.starts, self.field.near, size)
        widths = np.diff(field.starts)
        largest = (0, 0)
        for root in asked.tolist():
            ball = field.ball(root)
            wide = int(widths[list(ball)].sum())
            if wide * (wide + 1) // 2 > largest[0]:  # no ball of fewer pairs can be the largest
                most = wide * (wide + 1) // 2 if wide > ENTRIES else field.entries(field.cliques(ball, root))
                largest = max(largest, (most, wide))
                if wide > ENTRIES:
                    return largest
        return largest


def _ortools(model: _Model, seconds: float) -> _Answer:
    """SCIP through OR-Tools: any point will do, so nothing is minimised."""
    from ortools.linear_solver import pywraplp

    solver = pywraplp.Solver.CreateSolver("SCIP")
    variables = [
        solver.IntVar(float(a), 1, "") if j < model.binaries else solver.NumVar(float(a), float(b), "")
        for j, (a, b) in enumerate(zip(model.lower, model.upper, strict=True))
    ]
    for where, values, low in model.rows:
        row = solver.Constraint(low, solver.infinity())
        for j, value in zip(where.tolist(), values.tolist(), strict=True):
            row.SetCoefficient(variables[j], value)
    solver.SetTimeLimit(max(1, int(1000 * seconds)))
    status = solver.Solve()
    if status in (pywraplp.Solver.OPTIMAL, pywraplp.Solver.FEASIBLE):
        return _Answer(np.array([v.solution_value() for v in variables]), False)
    return _Answer(None, status == pywraplp.Solver.INFEASIBLE)


def _pulp(model: _Model, seconds: float) -> _Answer:
    """CBC through PuLP."""
    import warnings

    import pulp

    with warnings.catch_warnings():
        # PuLP 3 announces other spellings for PuLP 4; these work from 2.9 on, and CBC comes with
        # the package
        warnings.simplefilter("ignore", DeprecationWarning)
        problem = pulp.LpProblem("ball", pulp.LpMinimize)
        variables = [
            pulp.LpVariable(f"x{j}", float(a), float(b), "Integer" if j < model.binaries else "Continuous")
            for j, (a, b) in enumerate(zip(model.lower, model.upper, strict=True))
        ]
        problem += pulp.lpSum([])
        for where, values, low in model.rows:
            terms = [(variables[j], v) for j, v in zip(where.tolist(), values.tolist(), strict=True)]
            problem += pulp.LpAffineExpression(terms) >= low
        status = problem.solve(pulp.PULP_CBC_CMD(msg=False, timeLimit=max(1.0, seconds), threads=1))
        if status == pulp.LpStatusInfeasible:
            return _Answer(None, True)
        if status != pulp.LpStatusOptimal:
            return _Answer(None, False)
        return _Answer(np.array([v.value() or 0.0 for v in variables]), False)
