"""A support, or a region of several, and the blocks around it: whether it reaches a target depends on these alone.

Blocks that look alike from the support, matrix for matrix and bit for bit, are of one kind and count only by their number. The
kernel of `solvers.kernels.counts` lists the least counts that suffice and finds the row of their hull that a fractional design
misses by most; here it is given the matrices, and a row can be asked for its bound at any target.

A region has more nodes than a support. It reaches a target when all supports in it do, with the same purchases: its rows say what no
row of a single support can, because one purchase seldom mends two supports that meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rrf_design.planning.arena import Arena

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
TAKEN = (1.0 - 1e-9, 0.7, 0.4, 0.15)
"""Members with such a share are taken for granted; the fewer are left, the shorter the list and the weaker the row."""
ULP = 2.0**-52


@dataclass(frozen=True, slots=True)
class HullRow:
    """Σ weights·(blocks bought) ≥ bound, in whole numbers, for every design that reaches the target it was made for."""

    neighbourhood: Neighbourhood
    weights: Whole  # (members,)
    bound: int | None
    """None: no purchase suffices."""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """One support or region with everything on sale that touches it."""

    support: tuple[int, ...]
    sets: Whole  # (supports of a region, coordinates), padded with −1; none where it is one support itself
    members: Whole  # positions among the arena's variable blocks, kind after kind
    sizes: Whole  # (kinds,)
    owned: Array  # (width, width)
    parts: Array  # (kinds, width, width), of one block each
    radii: Array  # (kinds,) squared radius of one block; zero unless what is owned keeps it connected, and in regions
    eta: float  # the same of what is owned
    room: float
    """Above the rounding of every sum of these matrices and of its elimination: λ_min closer to a target counts as reaching it."""

    def separate(self, shares: Array, target: float) -> HullRow | None:
        """The row that these shares of the variable blocks miss by most; None when they miss none."""
        from solvers.kernels.counts import separate

        here = shares[self.members]
        for taken in TAKEN:
            bound, weights = separate(
                self.sets,
                self.owned,
                self.parts,
                self.sizes,
                here,
                target - self.room,
                np.sqrt(target),
                self.radii,
                self.eta,
                taken,
            )
            if bound != -2:
                break
        if bound == -1:
            return HullRow(self, weights, None)
        if bound <= 0 or float(weights @ here) > bound * (1 - 1e-5):
            return None
        return HullRow(self, weights, int(bound))

    def bound(self, weights: Whole, target: float) -> int | None:
        """Least Σ weights·counts that reaches a target; None when no purchase does, 0 when that was too long to find out."""
        from solvers.kernels.counts import least_weight

        owned, at = self.owned.copy(), 0
        parts, sizes, prefix, starts, radii = list[Array](), list[int](), list[int](), list[int](), list[float]()
        for k, size in enumerate(self.sizes.tolist()):
            rising = np.sort(weights[at : at + size])
            at += size
            free = int((rising == 0).sum())
            owned += free * self.parts[k]
            if free < size:
                starts.append(len(prefix))
                prefix += [0, *np.cumsum(rising[free:]).tolist()]
                parts.append(self.parts[k])
                sizes.append(size - free)
                radii.append(float(self.radii[k]))
        few = np.array(parts) if parts else np.zeros((0, *owned.shape))
        least = least_weight(
            self.sets,
            owned,
            few,
            np.array(sizes, dtype=np.int64),
            np.array([*prefix, 0], dtype=np.int64),
            np.array(starts, dtype=np.int64),
            target - self.room,
            np.sqrt(target),
            np.array(radii),
            self.eta,
        )
        return None if least == -1 else max(int(least), 0)


class _Joined:
    """Which nodes of a support what is owned connects: radii count in full on connected supports only."""

    def __init__(self, support: tuple[int, ...]) -> None:
        self.part = {i: i for i in support}

    def join(self, nodes: tuple[int, ...]) -> None:
        old = {self.part[i] for i in nodes}
        self.part = {i: min(old) if p in old else p for i, p in self.part.items()}

    @property
    def whole(self) -> bool:
        return len(set(self.part.values())) == 1


def _supports(places: list[Whole], size: int) -> Whole:
    """Coordinates of every support of so many nodes in a region; none where the nodes are not more."""
    if len(places) <= size:
        return np.zeros((0, 0), dtype=np.int64)
    listed = [np.concatenate(some) for some in combinations(places, size)]
    result = np.full((len(listed), max(map(len, listed))), -1, dtype=np.int64)
    for row, coordinates in zip(result, listed, strict=True):
        row[: len(coordinates)] = coordinates
    return result


class Neighbourhoods:
    """What lies around the supports and regions of one arena; each is looked at once."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.position = np.full(len(arena.block_nodes), -1, dtype=np.int64)
        self.position[arena.variable] = np.arange(len(arena.variable))
        self.nodes = tuple(tuple(sorted(set(nodes))) for nodes in arena.block_nodes)
        self._own: dict[int, Array] = {}
        self._parts: dict[tuple[int, tuple[int, ...]], tuple[bytes, Array]] = {}
        self._known: dict[tuple[int, ...], Neighbourhood] = {}

    def __getitem__(self, support: tuple[int, ...]) -> Neighbourhood:
        if support not in self._known:
            self._known[support] = self._look(support)
        return self._known[support]

    def _look(self, support: tuple[int, ...]) -> Neighbourhood:
        arena, inside = self.arena, set(support)
        ends = np.cumsum([0, *(self._width(i) for i in support)])
        place = {i: np.arange(a, b) for i, a, b in zip(support, ends[:-1], ends[1:], strict=True)}
        owned = np.zeros((ends[-1], ends[-1]))
        kinds: dict[tuple[tuple[int, ...], bytes, float], list[int]] = {}
        matrices: dict[tuple[tuple[int, ...], bytes, float], Array] = {}
        joined, eta = _Joined(support), 0.0
        blocks = sorted({j for i in support for j in arena.touching[i]})
        for block in blocks:
            nodes = tuple(i for i in self.nodes[block] if i in inside)
            key, part = self.part(block, nodes)
            square = float(arena.radii[block]) ** 2
            if self.position[block] < 0:
                joined.join(nodes)
                eta += square
            if not key:
                continue
            if self.position[block] < 0:
                where = np.concatenate([place[i] for i in nodes])
                owned[where[:, None], where] += part
            else:
                kinds.setdefault((nodes, key, square), []).append(int(self.position[block]))
                matrices[nodes, key, square] = part
        order = sorted(
            kinds, key=lambda key: (len(kinds[key]), kinds[key])
        )  # the most numerous last: scanned, not branched on
        parts = np.zeros((len(order), *owned.shape))
        for number, kind in enumerate(order):
            where = np.concatenate([place[i] for i in kind[0]])
            parts[number, where[:, None], where] = matrices[kind]
        sizes = np.array([len(kinds[key]) for key in order], dtype=np.int64)
        plain = len(support) > arena.size or not joined.whole
        trace = float(np.trace(owned) + (np.trace(parts, axis1=1, axis2=2) * sizes).sum())
        return Neighbourhood(
            support=support,
            sets=_supports(list(place.values()), arena.size),
            members=np.array([j for key in order for j in kinds[key]], dtype=np.int64),
            sizes=sizes,
            owned=owned,
            parts=parts,
            radii=np.array([0.0 if plain else kind[2] for kind in order]),
            eta=0.0 if plain else eta * (1 - 1e-12),
            room=((len(owned) + 4) ** 2 + len(blocks)) * ULP * trace,
        )

    def _width(self, node: int) -> int:
        ends = self.arena.operator.node_offsets
        return int(ends[node + 1] - ends[node])

    def part(self, block: int, nodes: tuple[int, ...]) -> tuple[bytes, Array]:
        """C_jᵀC_j on some of the block's own nodes, with its bytes to compare; empty bytes when it sees nothing there."""
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
            op = self.arena.operator
            a, b = int(op.block_offsets[block]), int(op.block_offsets[block + 1])
            columns = self.arena.columns_of(self.nodes[block]) if self.nodes[block] else np.zeros(0, dtype=np.int64)
            place = {int(c): i for i, c in enumerate(columns)}
            dense = np.zeros((b - a, len(columns)))
            for row in range(a, b):
                for at in range(op.matrix.indptr[row], op.matrix.indptr[row + 1]):
                    dense[row - a, place[int(op.matrix.indices[at])]] += op.matrix.data[at]
            self._own[block] = dense
        return self._own[block]
