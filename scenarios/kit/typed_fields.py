"""Path-consistent typed fields with known truth, their margins, and what the two decoders make of
them (paper, "Synthetic theorem-verification protocol").

M_i = Q_i diag(exp s_i), truth z_i = M_i u_C, transports T_ij = M_j M_i⁻¹, and sparse corruptions of
known place and size. Every stage draws from a stream of its own, named by (master seed, experiment,
stage, index), so that seed ranges never overlap and no stage can shift another one's draws.

The penalty of the proximal decoder is chosen on calibration fields and frozen. Success thresholds
are fixed here, before any result: a decoder has to bring back the field, not merely lower its
residual.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from solvers import margin
from solvers.decoding import SupportDecoder, group_lasso

Array = NDArray[np.float64]
Edge = tuple[int, int]

DIM = 4
SPREAD = 0.12
CONDITION_LIMIT = 3.0
"""Largest condition number of a node map; fields above it are drawn again, before any corruption is
sampled.
"""
AMPLITUDES = (0.9, 2.1)


def generator(master: int, experiment: str, stage: str, *index: int) -> np.random.Generator:
    """The random stream of one stage of one instance."""
    names = [zlib.crc32(experiment.encode()), zlib.crc32(stage.encode())]
    return np.random.default_rng([master, *names, *index])


@dataclass(frozen=True, slots=True)
class SyntheticField:
    """Node maps (n, d, d), truth (n, d), the component of each node, and how many draws the
    condition limit rejected.
    """

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
            # Signs of R's diagonal fixed: only then is Q drawn uniformly, and the same on every
            # LAPACK.
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
    """k nodes uniformly without replacement; a Gaussian direction, normalised, times an amplitude
    in [0.9, 2.1].
    """
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


ZERO = 1e-10
ZERO_RESIDUAL = 1e-9


@dataclass(frozen=True, slots=True)
class Measured:
    """`gamma` is zero exactly when the value is below 1e-10 and its witness leaves a residual below
    1e-9.
    """

    gamma: float
    value: float
    support: tuple[int, ...]
    residual: float
    """‖Bh‖ of the stored unit witness, computed afresh: it must equal the value."""
    witness_ok: bool

    @property
    def zero(self) -> bool:
        return self.gamma == 0.0


def measure(B: NDArray[np.float64], groups: Sequence[int], k: int, *, zero: float = ZERO) -> Measured:
    """The exact margin, and whether its witness passes: unit length, at most 2k nodes, the claimed
    residual.
    """
    found = margin(B, list(groups), k=k)
    h = np.asarray(found.direction, dtype=np.float64)
    residual = float(np.linalg.norm(B @ h))
    owner = np.repeat(np.arange(len(groups)), groups)
    carried = {int(i) for i in owner[np.abs(h) > 0]}
    scale = max(1.0, float(np.linalg.norm(B, 2)) if B.size else 1.0)
    ok = (
        abs(float(np.linalg.norm(h)) - 1.0) <= 1e-9
        and len(carried) <= 2 * k
        and carried <= set(found.support)
        and abs(residual - found.value) <= 1e-8 * scale
    )
    gamma = 0.0 if found.value < zero and residual < ZERO_RESIDUAL else float(found.value)
    return Measured(gamma, float(found.value), tuple(int(i) for i in found.support), residual, ok)


EXACT_SUCCESS = 1e-6
"""Relative field error below which exact repair of a noiseless instance counts as success."""
CONVEX_SUCCESS = 5e-2
"""The same for the penalised decoder, which shrinks every error by design."""
PENALTIES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
"""Calibration grid for λ, relative to the smallest λ that returns no edit at all."""


@dataclass(frozen=True, slots=True)
class DecodedField:
    """What a decoder returned, beside the truth."""

    relative_error: float
    """‖ẑ − z*‖ / max(‖z*‖, 1e-12)"""
    absolute_error: float
    localization: float
    """Share of corrupted nodes among the k largest edits."""
    residual: float
    explanations: int
    """How many minimal supports explain the syndrome (exact decoder), 0 when none does or nobody
    counted.
    """
    converged: bool = True
    """False: an iterative decoder stopped before its gap closed.

    Never to be mixed with those that did.
    """


def exact(
    B: Array, groups: Sequence[int], syndrome: Array, *, k: int, truth: Array, error: Array, epsilon: float = 0.0
) -> DecodedField:
    """Smallest support within ε; among equals the first, as in the paper's enumeration."""
    found = SupportDecoder(B, list(groups)).decode(syndrome, k=k, epsilon=epsilon, tolerance=1e-9 * (1.0 + epsilon))
    if found.explanations:
        least = min(len(e.support) for e in found.explanations)
        chosen = min((e for e in found.explanations if len(e.support) == least), key=lambda e: e.support)
        estimate, residual = chosen.error, chosen.residual
    else:
        estimate, residual = found.error, found.residual
    return _judge(estimate, residual, k=k, truth=truth, error=error, explanations=len(found.explanations))


def convex(
    B: Array, groups: Sequence[int], syndrome: Array, *, k: int, truth: Array, error: Array, penalty: float
) -> DecodedField:
    """Penalised group-ℓ₁ with λ = `penalty` times the λ at which everything is shrunk to zero."""
    top = _largest_penalty(B, groups, syndrome)
    if top == 0.0:
        return _judge(np.zeros(B.shape[1]), 0.0, k=k, truth=truth, error=error, explanations=0)
    found = group_lasso(B, list(groups), syndrome=syndrome, penalty=penalty * top, tolerance=1e-8)
    judged = _judge(found.error, found.residual, k=k, truth=truth, error=error, explanations=0)
    return replace(judged, converged=bool(found.converged))


def calibrate(instances: Iterable[tuple[Array, Sequence[int], Array, int, Array, Array]]) -> float:
    """The penalty of the grid with the least median relative error on calibration instances,
    converged runs only.
    """
    cases = list(instances)
    scores = []
    for penalty in PENALTIES:
        found = [
            convex(B, groups, s, k=k, truth=truth, error=error, penalty=penalty)
            for B, groups, s, k, truth, error in cases
        ]
        errors = [one.relative_error for one in found if one.converged]
        scores.append(float(np.median(errors)) if errors else np.inf)
    return PENALTIES[int(np.argmin(scores))]


def _largest_penalty(B: Array, groups: Sequence[int], syndrome: Array) -> float:
    correlation = B.T @ syndrome
    cuts = np.cumsum(groups)[:-1]
    return max((float(np.linalg.norm(part)) for part in np.split(correlation, cuts)), default=0.0)


def _judge(estimate: Array, residual: float, *, k: int, truth: Array, error: Array, explanations: int) -> DecodedField:
    edits = np.asarray(estimate).reshape(truth.shape)
    # y = z* + e and ẑ = y − ê, so ẑ − z* = e − ê.
    miss = float(np.linalg.norm(error - edits))
    sizes = np.linalg.norm(edits, axis=1)
    largest = {int(i) for i in np.argsort(-sizes, kind="stable")[:k] if sizes[i] > 0}
    wrong = {int(i) for i in np.flatnonzero(np.linalg.norm(error, axis=1))}
    return DecodedField(
        miss / max(float(np.linalg.norm(truth)), 1e-12),
        miss,
        len(largest & wrong) / max(len(wrong), 1),
        residual,
        explanations,
    )
