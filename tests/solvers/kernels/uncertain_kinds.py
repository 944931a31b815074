"""Small choices of uncertain matrices, each judged by definition: what the kernels with radii are
held to.
"""

from __future__ import annotations

from itertools import product

import numpy as np


class Uncertain:
    """Kinds of uncertain matrices on a few nodes, one coordinate each; some are owned.

    Every choice is judged by definition.
    """

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.nodes, kinds = int(rng.integers(2, 4)), int(rng.integers(2, 5))
        self.sizes = rng.integers(1, 3, size=kinds)
        vectors = [self._vector(rng) for _ in range(kinds + 1)]
        masks = [sum(1 << int(i) for i in np.flatnonzero(v)) for v in vectors]
        self.parts = np.array([np.outer(v, v) for v in vectors[:kinds]])
        self.owned = np.outer(vectors[-1], vectors[-1])
        self.masks, self.radii = np.array(masks[:kinds]), rng.choice([0.0, 0.01, 0.04, 0.2], size=kinds)
        self.held, self.squares = np.array(masks[-1:]), rng.choice([0.0, 0.02], size=1)
        self.root = float(rng.choice([0.2, 0.4, 0.7]))
        self.shares = np.round(rng.random(int(self.sizes.sum())) * rng.choice([0.6, 1.0]), int(rng.integers(0, 2)))
        self.spread = (
            self.masks,
            self.radii,
            self.held,
            self.squares,
            np.array([(1 << self.nodes) - 1]),
            np.arange(self.nodes),
        )
        self.kind = np.repeat(np.arange(kinds), self.sizes)
        designs = np.array(list(product([0, 1], repeat=len(self.kind))))
        self.good = designs[[self.reaches([d[self.kind == k].sum() for k in range(kinds)]) for d in designs]]

    def _vector(self, rng: np.random.Generator) -> np.ndarray:
        vector = np.zeros(self.nodes)
        chosen = rng.choice(self.nodes, size=int(rng.integers(1, 3)), replace=False)
        vector[chosen] = rng.choice([1.0, -1.0, 2.0], size=len(chosen))
        return vector

    def reaches(self, counts) -> bool:
        counts = np.array(counts)
        there = [*((int(m), s) for m, s in zip(self.held, self.squares, strict=True))]
        there += [(int(m), c * r) for m, c, r in zip(self.masks, counts, self.radii, strict=True) if c]
        gram = self.owned + np.tensordot(counts.astype(float), self.parts, 1)
        parts = {i: 1 << i for i in range(self.nodes)}
        for _ in range(self.nodes):
            for mask, _ in there:
                joined = 0
                for part in parts.values():
                    joined |= part if part & mask else 0
                parts = {i: joined if part & mask else part for i, part in parts.items()}
        for part in set(parts.values()):
            columns = [i for i in range(self.nodes) if part >> i & 1]
            eta = np.sqrt(sum(square for mask, square in there if mask & part))
            level = np.linalg.eigvalsh(gram[np.ix_(columns, columns)])[0]
            if level < (self.root + eta) ** 2 + 1e-12:
                return False
        return True
