"""M_i = Q_i diag(exp s_i), truth z_i = M_i u_C, transports T_ij = M_j M_i⁻¹, and sparse corruptions of known place and size.

Every stage draws from a stream of its own, named by (master seed, experiment, stage, index), so that seed ranges never
overlap and no stage can shift another one's draws.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Edge = tuple[int, int]

DIM = 4
SPREAD = 0.12
CONDITION_LIMIT = 3.0
"""Largest condition number of a node map; fields above it are drawn again, before any corruption is sampled."""
AMPLITUDES = (0.9, 2.1)


def generator(master: int, experiment: str, stage: str, *index: int) -> np.random.Generator:
    """The random stream of one stage of one instance."""
    names = [zlib.crc32(experiment.encode()), zlib.crc32(stage.encode())]
    return np.random.default_rng([master, *names, *index])


@dataclass(frozen=True, slots=True)
class SyntheticField:
    """Node maps (n, d, d), truth (n, d), the component of each node, and how many draws the condition limit rejected."""

    maps: Array
    truth: Array
    component: tuple[int, ...]
    rejected: int

    @property
    def nodes(self) -> int:
        return len(self.component)

    @property
    def dim(self) -> int:
        return int(self.maps.shape[1])

    @property
    def groups(self) -> list[int]:
        return [self.dim] * self.nodes

    def transport(self, tail: int, head: int) -> Array:
        return np.asarray(self.maps[head] @ np.linalg.inv(self.maps[tail]))

    def relation_rows(self, edge: Edge) -> Array:
        """Rows z_head - T z_tail of one relation, (d, n d)."""
        tail, head = edge
        d = self.dim
        rows = np.zeros((d, self.nodes * d))
        rows[:, tail * d : (tail + 1) * d] = -self.transport(tail, head)
        rows[:, head * d : (head + 1) * d] = np.eye(d)
        return rows

    def anchor_rows(self, node: int) -> Array:
        rows = np.zeros((self.dim, self.nodes * self.dim))
        rows[:, node * self.dim : (node + 1) * self.dim] = np.eye(self.dim)
        return rows

    def operator(self, edges: Sequence[Edge], anchors: Sequence[int] = ()) -> Array:
        """B = [D; A] with unit weights, relations first."""
        blocks = [self.relation_rows(edge) for edge in edges] + [self.anchor_rows(node) for node in anchors]
        return np.concatenate(blocks) if blocks else np.zeros((0, self.nodes * self.dim))

    def members(self, component: int) -> list[int]:
        return [node for node, own in enumerate(self.component) if own == component]


def sample_field(rng: np.random.Generator, sizes: Sequence[int], *, dim: int = DIM) -> SyntheticField:
    """A clean field with one component per entry of `sizes`."""
    n = sum(sizes)
    rejected = 0
    while True:
        maps = np.empty((n, dim, dim))
        for node in range(n):
            q, r = np.linalg.qr(rng.normal(size=(dim, dim)))
            # Signs of R's diagonal fixed: only then is Q drawn uniformly, and the same on every LAPACK.
            maps[node] = (q * np.sign(np.diagonal(r))) @ np.diag(np.exp(rng.normal(0.0, SPREAD, size=dim)))
        if float(np.linalg.cond(maps).max()) <= CONDITION_LIMIT:
            break
        rejected += 1
    component = tuple(index for index, size in enumerate(sizes) for _ in range(size))
    latent = rng.normal(size=(len(sizes), dim))
    truth = np.einsum("nij,nj->ni", maps, latent[list(component)])
    return SyntheticField(maps, truth, component, rejected)


@dataclass(frozen=True, slots=True)
class Corruption:
    """Where the errors are, how large, and the error itself, (n, d)."""

    nodes: tuple[int, ...]
    amplitudes: tuple[float, ...]
    error: Array


def corrupt(rng: np.random.Generator, field: SyntheticField, k: int) -> Corruption:
    """k nodes uniformly without replacement; a Gaussian direction, normalised, times an amplitude in [0.9, 2.1]."""
    nodes = tuple(sorted(int(i) for i in rng.choice(field.nodes, size=k, replace=False)))
    error = np.zeros_like(field.truth)
    amplitudes = []
    for node in nodes:
        direction = rng.normal(size=field.dim)
        amplitudes.append(float(rng.uniform(*AMPLITUDES)))
        error[node] = amplitudes[-1] * direction / np.linalg.norm(direction)
    return Corruption(nodes, tuple(amplitudes), error)


def complete(nodes: Sequence[int]) -> list[Edge]:
    return [(a, b) for place, a in enumerate(nodes) for b in nodes[place + 1 :]]


def path(nodes: Sequence[int]) -> list[Edge]:
    return list(pairwise(nodes))


def random_tree(rng: np.random.Generator, nodes: Sequence[int]) -> list[Edge]:
    """Each node hangs on an earlier one, chosen uniformly."""
    return [(nodes[int(rng.integers(place))], nodes[place]) for place in range(1, len(nodes))]
