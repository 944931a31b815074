"""Regions to be asked for rows: a few nodes more than a support, where a fractional design obeys every single support.

Supports that meet must be mended by the same purchases, and hulls of single supports don't know of each other: on 100 nodes at k = 2
the linear bound on a cost of 60 stops at 54.7 with them and at 57.9 with regions of one and two nodes more. Regions are grown first
from weak supports, each by the node that its weakest direction sees most of, then by every neighbour. With 200 nodes at k = 1 and
t = 1.26 the bound rises from 306.3 to 313.8 of 314. Finds candidates; proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rrf_design.planning.proof.weak import WeakSupports

Array = NDArray[np.float64]
WIDEST = 6  # coordinates of a region: beyond, its least purchases take too long to list for what they are worth
EVERY = (
    3  # from supports of so many nodes on every neighbour is tried: of pairs the grown regions say nearly all there is
)


def stages(weak: WeakSupports) -> int:
    """How many kinds of regions are worth asking: by one node more each, then with every neighbour; none where nodes are wide."""
    arena = weak.arena
    more = min(WIDEST // int(np.diff(weak.offsets).max()), arena.n) - arena.size
    return 0 if more <= 0 else more + 1 if arena.size >= EVERY else 1


def grown(weak: WeakSupports, shares: Array, level: float, *, more: int) -> Iterator[tuple[int, ...]]:
    """Weak supports of a fractional design with so many nodes more, weakest first."""
    size = weak.arena.size
    _, found = weak.look(shares, level, grown=size + more)
    yield from _distinct(found, size)


def around(
    weak: WeakSupports, shares: Array, level: float, *, tight: list[tuple[int, ...]]
) -> Iterator[tuple[int, ...]]:
    """Weak supports, and the regions whose rows are tight, with every single neighbour through what is held."""
    size = weak.arena.size
    _, found = weak.look(shares, level)
    pointer, neighbours = weak.graph(weak.held(shares) > 0.0)
    known: set[tuple[int, ...]] = set()
    most = WIDEST // int(np.diff(weak.offsets).max())
    for nodes in [*_distinct(found, size - 1), *(t for t in tight if size < len(t) < most)]:
        for other in sorted({int(o) for i in nodes for o in neighbours[pointer[i] : pointer[i + 1]]} - set(nodes)):
            region = tuple(sorted((*nodes, other)))
            if region not in known:
                known.add(region)
                yield region


def _distinct(found: NDArray[np.int64], size: int) -> list[tuple[int, ...]]:
    """The sets of more than `size` nodes, each once."""
    sets = (tuple(sorted(i for i in row if i >= 0)) for row in found.tolist())
    return list(dict.fromkeys(nodes for nodes in sets if len(nodes) > size))
