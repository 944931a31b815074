"""The margin when r nodes are known to be missing: γ(k | R) = min over |T| ≤ 2k of σ_min(B_{R ∪ T}).

Two candidate errors may both fill the erased nodes R and differ on at most 2k others, so their difference lives on
R ∪ T: this margin takes the place of γ_k in the stability theorem, and it is larger than the one for k + r corrupted
nodes because R is known. Small fields are enumerated. On larger ones the columns of R are projected out, the fast
engine gives the margin γ_P of what is left, and for u = Bh with h on R ∪ T

    ‖h_T‖ ≤ ‖(I − Π)u‖ / γ_P,    ‖h_R‖ ≤ (‖Πu‖ + β‖h_T‖) / σ_min(B_R),    β² = the 2k largest ‖ΠB_j‖² added up,

so γ(k | R) is at least the reciprocal of the norm of that 2×2 matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.decoding.spans import DEPENDENT, as_operator, project_out, span_of
from solvers.groups import column_groups
from solvers.result import Margin, Status

ENUMERATE = 20_000
"""Up to so many sets T are looked at one by one."""

TOGETHER = 256
"""So many of them at once."""


@dataclass(frozen=True, slots=True)
class ErasureMargin:
    """γ(k | R) between `lower` and `upper`, and the witness that attains `upper`."""

    value: float
    lower: float
    upper: float
    support: tuple[int, ...]
    direction: NDArray[np.float64]
    status: Status
    method: str
    others: float
    """Lower bound on the margin of the nodes that were answered (γ_P): their errors are within 2ε of it in any case."""

    def __post_init__(self) -> None:
        self.direction.setflags(write=False)


def erasure_margin(
    B: Any, groups: Any = None, *, known: Sequence[int], k: int | None = None, size: int | None = None, **options: Any
) -> ErasureMargin:
    """γ(k | R) for erased nodes `known`, or the same with |T| ≤ `size`; `options` go to `solvers.support_margin`."""
    if (k is None) == (size is None):
        raise ValueError("give exactly one of k and size")
    others_at_most = 2 * k if k is not None else size or 0
    operator = as_operator(B)
    columns = column_groups(groups, operator.shape[1])
    erased = tuple(sorted({int(i) for i in known}))
    rest = [i for i in range(len(columns)) if i not in set(erased)]
    size = min(others_at_most, len(rest))
    projected = _others(operator, columns, erased, rest, size, options)
    norm = float(np.linalg.norm(operator.data if not isinstance(operator, np.ndarray) else operator))
    others = np.inf if projected is None else max(0.0, projected.lower - 1e-13 * norm)
    if comb(len(rest), size) <= ENUMERATE:
        sets = [tuple(sorted((*erased, *part))) for part in combinations(rest, size)]
        value, support, direction = _smallest(operator, columns, _worst(operator, columns, sets))
        lower = 0.0 if value == 0.0 else max(0.0, value - 1e-13 * norm)
        return ErasureMargin(value, lower, value, support, direction, Status.EXACT, "enumerate", others)
    assert projected is not None
    witness = tuple(sorted((*erased, *(rest[i] for i in projected.support))))
    value, support, direction = _smallest(operator, columns, witness)
    lower = min(value, _combined(operator, columns, erased, rest, others, size) if erased else others)
    return ErasureMargin(value, lower, value, support, direction, Status.BOUNDED, "projection", others)


def _others(
    operator: Any, columns: Any, erased: tuple[int, ...], rest: list[int], size: int, options: dict[str, Any]
) -> Margin | None:
    if not rest or not size:
        return None
    from solvers.gamma import support_margin

    index = np.concatenate([columns[i] for i in erased]) if erased else np.zeros(0, dtype=np.int64)
    part = operator[:, index]
    basis = span_of(part if isinstance(part, np.ndarray) else part.toarray())
    kept = project_out(operator, basis)[:, np.concatenate([columns[i] for i in rest])]
    return support_margin(kept, [len(columns[i]) for i in rest], size=size, **options)


def _combined(operator: Any, columns: Any, erased: tuple[int, ...], rest: list[int], others: float, size: int) -> float:
    index = np.concatenate([columns[i] for i in erased])
    part = operator[:, index]
    dense = part if isinstance(part, np.ndarray) else part.toarray()
    sigma = float(np.linalg.svd(dense, compute_uv=False)[-1]) if dense.shape[0] >= dense.shape[1] else 0.0
    if sigma <= DEPENDENT * max(1.0, float(np.linalg.norm(dense))) or others == 0.0:
        return 0.0
    shadow = span_of(dense).T @ operator
    lengths = [float(np.linalg.norm(shadow[:, columns[i]], 2)) for i in rest]
    beta = float(np.sqrt(np.sum(np.square(np.sort(lengths)[-size:]))))
    bound = np.array([[1.0 / others, 0.0], [beta / (others * sigma), 1.0 / sigma]])
    return float((1.0 - 1e-9) / np.linalg.norm(bound, 2))


def _worst(operator: Any, columns: Any, sets: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The set with the least singular value; among equals, which differ in their last digits only, the first."""
    dense = operator if isinstance(operator, np.ndarray) else operator.toarray()
    if dense.shape[0] > dense.shape[1]:
        dense = np.linalg.qr(dense, mode="r")  # a rotation of the rows changes no singular value
    indices = [np.concatenate([columns[i] for i in nodes]) for nodes in sets]
    least = np.zeros(len(sets))
    lengths = np.array([len(index) for index in indices])
    for length in np.unique(lengths[lengths <= dense.shape[0]]):  # with fewer rows than columns it is zero
        places = np.flatnonzero(lengths == length)
        for some in np.array_split(places, -(-len(places) // TOGETHER)):
            stacked = dense[:, np.array([indices[i] for i in some])].transpose(1, 0, 2)
            values = np.linalg.svd(stacked, compute_uv=False)
            zero = values[:, -1] <= DEPENDENT * np.maximum(1.0, values[:, 0])
            least[some] = np.where(zero, 0.0, values[:, -1])
    return sets[int(np.argmax(least <= least.min() * (1 + 1e-9)))]


def _smallest(
    operator: Any, columns: Any, nodes: tuple[int, ...]
) -> tuple[float, tuple[int, ...], NDArray[np.float64]]:
    index = np.concatenate([columns[i] for i in nodes])
    part = operator[:, index]
    dense = part if isinstance(part, np.ndarray) else part.toarray()
    direction = np.zeros(operator.shape[1])
    if not dense.shape[0]:
        direction[index[0]] = 1.0
        return 0.0, nodes, direction
    _, values, right = np.linalg.svd(dense, full_matrices=True)
    direction[index] = right[-1]
    value = float(values[-1]) if dense.shape[0] >= dense.shape[1] else 0.0
    return (0.0 if value <= DEPENDENT * max(1.0, float(values[0])) else value), nodes, direction
