"""A support, or a region of several, and the blocks around it: whether it reaches a target depends
on these alone.

Blocks that look alike from the support, matrix for matrix and bit for bit, are of one kind and
count only by their number. The kernels `counts` and `covers` of `solvers.kernels` look for the
least counts that suffice and find the row of their hull that a fractional design misses by most;
here it is given the matrices, and a row can be asked for its bound at any target.

A region has more nodes than a support. It reaches a target when all supports in it do, with the
same purchases: its rows say what no row of a single support can, because one purchase seldom mends
two supports that meet.

Uncertain blocks are of one kind only with others of the same radius. Buying one may be what is
wrong around a support, because it joins nodes and is uncertain: then a row's weights are negative.

`HullPool` keeps all hull rows found so far for one evaluator, and their bounds at every target
asked about. A row is a left side, Σ weights·blocks, with the supports it was found around. Its
bound depends on the target only, and rises with it: so one pool serves budgets, targets and
frontiers alike, and a bound between two known equal ones needs no search.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rrf_design.planning.proof.cuts import CutRow

if TYPE_CHECKING:
    from rrf_design.planning.evaluator import Evaluator

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
_Kind = tuple[tuple[int, ...], bytes, float]
TAKEN = (1.0 - 1e-9, 0.7, 0.4, 0.15)
"""Members with such a share are taken for granted; the fewer are left, the shorter the list and the
weaker the row.
"""
ULP = 2.0**-52
BITS = 63
"""Nodes of one support that a mask can hold.

Around more of them nothing counts as uncertain: the rows are those of the plain margin, which hold
with radii too and only ask for less.
"""


@dataclass(frozen=True, slots=True)
class HullRow:
    """Σ weights·(blocks bought) ≥ bound, in whole numbers, for every design that reaches the target
    it was made for.

    Weights of uncertain blocks may be negative: with them more is needed here.
    """

    neighbourhood: Neighbourhood
    weights: Whole  # (members,)
    bound: int | None
    """None: no purchase suffices."""

    def missed(self, here: Array) -> bool:
        """By these shares of the members, clearly."""
        if self.bound is None:
            return True
        most = self.bound - int(np.minimum(self.weights, 0).sum())
        return self.bound - float(self.weights @ here) > 1e-5 * most


@dataclass(frozen=True, slots=True)
class Spread:
    """What is uncertain around a support or region, with a bit for each of its nodes (see
    `solvers.kernels.covering_minimum`).
    """

    masks: Whole  # (kinds,) nodes of one block
    radii: Array  # (kinds,) squared radius of one block
    owned: Whole  # (owned blocks,)
    squares: Array  # (owned blocks,)
    supports: Whole  # sets of nodes that must suffice; none: nothing is uncertain
    node_of: Whole  # (coordinates,)

    @property
    def unsure(self) -> NDArray[np.bool_]:
        """(kinds,) whether a block may do harm: it is uncertain, or joins nodes."""
        return np.asarray((self.radii > 0.0) | (self.masks & (self.masks - 1) != 0))

    def arrays(self, chosen: Whole | None = None) -> tuple[Whole, Array, Whole, Array, Whole, Whole]:
        """As the kernel takes it, with all kinds or some."""
        masks, radii = (self.masks, self.radii) if chosen is None else (self.masks[chosen], self.radii[chosen])
        return masks, radii, self.owned, self.squares, self.supports, self.node_of


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """One support or region with everything on sale that touches it."""

    support: tuple[int, ...]
    sets: Whole  # (supports of a region, coordinates), padded with −1; none where it is one support itself
    members: Whole  # positions among the evaluator's variable blocks, kind after kind
    sizes: Whole  # (kinds,)
    owned: Array  # (width, width)
    parts: Array  # (kinds, width, width), of one block each
    spread: Spread
    room: float
    """Above the rounding of every sum of these matrices and of its elimination: λ_min closer to a
    target counts as reaching it.
    """

    def separate(self, shares: Array, target: float) -> HullRow | None:
        """The row that these shares of the variable blocks miss by most; None when they miss
        none.
        """
        here = shares[self.members]
        row = self._separate(here, target, both=False)
        if (row is None or not row.missed(here)) and len(self.spread.supports):
            row = self._separate(here, target, both=True)
        return row if row is not None and row.missed(here) else None

    def _separate(self, here: Array, target: float, *, both: bool) -> HullRow | None:
        """The same from the members' shares; with `both`, members may be wanted and unwanted."""
        from solvers.kernels.covers import separate

        for taken in TAKEN:
            status, bound, weights = separate(
                self.sets,
                self.spread.arrays(),
                self.owned,
                self.parts,
                self.sizes,
                here,
                target - self.room,
                np.sqrt(target),
                taken,
                both,
            )
            if status != -2:
                break
        if status == -2 and both:  # too long to list, but a whole design that fails can be told from all others
            weights = np.where(here > 0.5, np.where(np.repeat(self.spread.unsure, self.sizes), -1, 0), 1)
            found = self.bound(weights, target)
            return HullRow(self, weights, found)
        if status == -1:
            return HullRow(self, np.zeros(len(here), dtype=np.int64), None)
        return HullRow(self, weights, int(bound)) if status == 1 else None

    def bound(self, weights: Whole, target: float) -> int | None:
        """Least Σ weights·counts that reaches a target; None when no purchase does.

        Smaller when that was too long to find out.
        """
        from solvers.kernels.counts import least_weight

        owned, at, both = self.owned.copy(), 0, bool((weights < 0).any())
        chosen, sizes, prefix, starts = list[int](), list[int](), list[int](), list[int]()
        for k, size in enumerate(self.sizes.tolist()):
            rising = np.sort(weights[at : at + size])
            if not (both and self.spread.unsure[k]):
                rising = rising[rising != 0]  # what weighs nothing is lent
            at += size
            owned += (size - len(rising)) * self.parts[k]
            if len(rising):
                chosen.append(k)
                starts.append(len(prefix))
                prefix += [0, *np.cumsum(rising).tolist()]
                sizes.append(len(rising))
        few = np.array(chosen, dtype=np.int64)
        status, least = least_weight(
            self.sets,
            self.spread.arrays(few),
            owned,
            self.parts[few],
            np.array(sizes, dtype=np.int64),
            np.array([*prefix, 0], dtype=np.int64),
            np.array(starts, dtype=np.int64),
            target - self.room,
            np.sqrt(target),
        )
        return None if status == -1 else int(least)


def _supports(places: list[Whole], size: int) -> Whole:
    """Coordinates of every support of so many nodes in a region; none where the nodes are not
    more.
    """
    if len(places) <= size:
        return np.zeros((0, 0), dtype=np.int64)
    listed = [np.concatenate(some) for some in combinations(places, size)]
    result = np.full((len(listed), max(map(len, listed))), -1, dtype=np.int64)
    for row, coordinates in zip(result, listed, strict=True):
        row[: len(coordinates)] = coordinates
    return result


class Neighbourhoods:
    """What lies around the supports and regions of one evaluator; each is looked at once."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.position = np.full(len(evaluator.block_nodes), -1, dtype=np.int64)
        self.position[evaluator.variable] = np.arange(len(evaluator.variable))
        self.nodes = tuple(tuple(sorted(set(nodes))) for nodes in evaluator.block_nodes)
        self._own: dict[int, Array] = {}
        self._parts: dict[tuple[int, tuple[int, ...]], tuple[bytes, Array]] = {}
        self._known: dict[tuple[int, ...], Neighbourhood] = {}

    def __getitem__(self, support: tuple[int, ...]) -> Neighbourhood:
        if support not in self._known:
            self._known[support] = self._look(support)
        return self._known[support]

    def _look(self, support: tuple[int, ...]) -> Neighbourhood:
        evaluator, inside = self.evaluator, {node: number for number, node in enumerate(support)}
        ends = np.cumsum([0, *(self._width(i) for i in support)])
        place = {i: np.arange(a, b) for i, a, b in zip(support, ends[:-1], ends[1:], strict=True)}
        owned, robust = np.zeros((ends[-1], ends[-1])), evaluator.robust and len(support) <= BITS
        kinds: dict[_Kind, list[int]] = {}
        matrices: dict[_Kind, Array] = {}
        held = dict[int, float]()
        blocks = sorted({j for i in support for j in evaluator.touching[i]})
        for block in blocks:
            nodes = tuple(i for i in self.nodes[block] if i in inside)
            key, part = self.part(block, nodes)
            square = float(evaluator.radii[block]) ** 2
            if self.position[block] < 0:
                if robust:
                    mask = sum(1 << inside[i] for i in nodes)
                    held[mask] = held.get(mask, 0.0) + square
                if key:
                    where = np.concatenate([place[i] for i in nodes])
                    owned[where[:, None], where] += part
            elif key or robust:
                kinds.setdefault((nodes, key, square), []).append(int(self.position[block]))
                matrices[nodes, key, square] = part
        # the most numerous last: scanned, not branched on
        order = sorted(kinds, key=lambda key: (len(kinds[key]), kinds[key]))
        parts = np.zeros((len(order), *owned.shape))
        for number, kind in enumerate(order):
            where = np.concatenate([place[i] for i in kind[0]])
            parts[number, where[:, None], where] = matrices[kind]
        sizes = np.array([len(kinds[key]) for key in order], dtype=np.int64)
        trace = float(np.trace(owned) + (np.trace(parts, axis1=1, axis2=2) * sizes).sum())
        size = min(evaluator.size, len(support))
        chosen = [sum(1 << i for i in some) for some in combinations(range(len(support)), size)] if robust else []
        return Neighbourhood(
            support=support,
            sets=_supports(list(place.values()), evaluator.size),
            members=np.array([j for key in order for j in kinds[key]], dtype=np.int64),
            sizes=sizes,
            owned=owned,
            parts=parts,
            spread=Spread(
                masks=np.array([sum(1 << inside[i] for i in kind[0]) * robust for kind in order], dtype=np.int64),
                radii=np.array([kind[2] * robust for kind in order], dtype=np.float64),
                owned=np.array(list(held), dtype=np.int64),
                squares=np.array(list(held.values()), dtype=np.float64) * (1 - 1e-12),
                supports=np.array(chosen, dtype=np.int64),
                node_of=np.repeat(np.arange(len(support)), np.diff(ends)),
            ),
            room=((len(owned) + 4) ** 2 + len(blocks)) * ULP * trace,
        )

    def _width(self, node: int) -> int:
        ends = self.evaluator.operator.node_offsets
        return int(ends[node + 1] - ends[node])

    def part(self, block: int, nodes: tuple[int, ...]) -> tuple[bytes, Array]:
        """C_jᵀC_j on some of the block's own nodes, with its bytes to compare; empty bytes when it
        sees nothing there.
        """
        key = (block, nodes)
        if key not in self._parts:
            own, at, columns = self._rows(block), 0, list[int]()
            for node in self.nodes[block]:
                if node in nodes:
                    columns += range(at, at + self._width(node))
                at += self._width(node)
            rows = own[:, columns]
            part = rows.T @ rows + 0.0  # no negative zeros: equal matrices have equal bytes
            self._parts[key] = (part.tobytes() if part.any() else b"", part)
        return self._parts[key]

    def _rows(self, block: int) -> Array:
        """(rows, coordinates of its own nodes) of a block, dense."""
        if block not in self._own:
            op = self.evaluator.operator
            a, b = int(op.block_offsets[block]), int(op.block_offsets[block + 1])
            columns = self.evaluator.columns_of(self.nodes[block]) if self.nodes[block] else np.zeros(0, dtype=np.int64)
            place = {int(c): i for i, c in enumerate(columns)}
            dense = np.zeros((b - a, len(columns)))
            for row in range(a, b):
                for at in range(op.matrix.indptr[row], op.matrix.indptr[row + 1]):
                    dense[row - a, place[int(op.matrix.indices[at])]] += op.matrix.data[at]
            self._own[block] = dense
        return self._own[block]


HOPELESS = float("inf")
"""Instead of a bound: no purchase around this support reaches the target."""
_NONE = np.zeros(0, dtype=np.int64)


@dataclass(slots=True)
class _Side:
    """One left side. `known` holds (target, bound) by rising target; HOPELESS comes last."""

    blocks: Whole  # positions among the evaluator's variable blocks
    coefficients: Whole
    around: list[tuple[Neighbourhood, Whole]] = field(default_factory=list)
    known: list[tuple[float, float]] = field(default_factory=list)
    made: dict[float, CutRow] = field(default_factory=dict)
    least: int = field(init=False)
    """Of the left side, whatever is bought."""

    def __post_init__(self) -> None:
        self.least = int(np.minimum(self.coefficients, 0).sum())

    def bound(self, target: float) -> float:
        at = bisect_left(self.known, (target, -HOPELESS))
        if at < len(self.known) and self.known[at][0] == target:
            return self.known[at][1]
        below = self.known[at - 1][1] if at else self.least
        above = self.known[at][1] if at < len(self.known) else None
        found = below if below in (HOPELESS, above) else self._search(target)
        insort(self.known, (target, found))
        return found

    def _search(self, target: float) -> float:
        least = [hood.bound(weights, target) for hood, weights in self.around]
        return HOPELESS if None in least else max(b for b in least if b is not None)

    def row(self, target: float, variable_of: Whole) -> CutRow | None:
        """For this target, coefficients cut down to what they can be needed for; None where the
        target asks nothing.
        """
        bound = self.bound(target)
        if bound <= self.least:
            return None
        if bound not in self.made:
            if bound == HOPELESS:
                self.made[bound] = CutRow(_NONE, _NONE, 1)
            else:
                cut = np.minimum(self.coefficients, int(bound) - self.least)
                self.made[bound] = CutRow(variable_of[self.blocks], cut, int(bound))
        return self.made[bound]


class HullPool:
    """Left sides by what they say; grows only."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.hoods = Neighbourhoods(evaluator)
        self.sides: list[_Side] = []
        self._index: dict[bytes, int] = {}
        self._raised = 0

    @property
    def learnt(self) -> int:
        """Changes with everything that is learnt."""
        return len(self.sides) + self._raised

    def add(self, row: HullRow, target: float) -> bool:
        """Keep a row found at a target; False when it is known, or a larger bound for the same left
        side is.
        """
        hood = row.neighbourhood
        used = np.flatnonzero(row.weights)
        used = used[np.argsort(hood.members[used])]
        blocks, coefficients = hood.members[used], row.weights[used]
        key = blocks.tobytes() + b"|" + coefficients.tobytes()
        if not len(used):
            key += repr(hood.support).encode()
        bound = HOPELESS if row.bound is None else float(row.bound)
        if key not in self._index:
            self._index[key] = len(self.sides)
            self.sides.append(_Side(blocks, coefficients, [(hood, row.weights)], [(target, bound)]))
            return True
        side = self.sides[self._index[key]]
        if bound <= side.bound(target):
            return False
        side.around.append((hood, row.weights))
        side.known = [(target, bound)]
        self._raised += 1
        return True

    def bounds(self, target: float) -> NDArray[np.float64]:
        """(sides,) the bound of each, or HOPELESS."""
        return np.array([side.bound(target) for side in self.sides])

    def rows(self, target: float, variable_of: Whole) -> list[CutRow | None]:
        """One row per left side for this target; None where the target asks nothing of it.

        The same object where it is the same row.

        A row that asks nothing must never reach a solver: with its coefficients cut down to 0 it
        reads as something else.
        """
        return [side.row(target, variable_of) for side in self.sides]
