"""The ten prespecified operator designs on four nodes, and what each must recover whatever the
model (paper, "Response fields and designs").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.problem import Problem
from solvers.decoding import SupportDecoder

Array = NDArray[np.float64]
NODES = 4

_TREE = ((0, 1), (0, 2), (0, 3))
_TRIANGLE = ((0, 1), (0, 2), (1, 2))
_COMPLETE = tuple(combinations(range(NODES), 2))


@dataclass(frozen=True, slots=True)
class FieldDesign:
    """Relations between canonicalised answers (identity transports) and fully anchored nodes; γ₁ as
    published.
    """

    name: str
    edges: tuple[tuple[int, int], ...]
    anchors: tuple[int, ...]
    published: float


DESIGNS: tuple[FieldDesign, ...] = (
    FieldDesign("one_relation", ((0, 1),), (), 0.0),
    FieldDesign("paired_relations", ((0, 1), (2, 3)), (), 0.0),
    FieldDesign("three_node_chain", ((0, 1), (1, 2)), (), 0.0),
    FieldDesign("spanning_tree", _TREE, (), 0.765),
    FieldDesign("triangle_plus_isolate", _TRIANGLE, (), 0.0),
    FieldDesign("typed_complete", _COMPLETE, (), 1.414),
    FieldDesign("tree_plus_anchor", _TREE, (0,), 0.835),
    FieldDesign("triangle_anchor_component", _TRIANGLE, (0,), 0.0),
    FieldDesign("triangle_anchor_isolate", _TRIANGLE, (3,), 1.000),
    FieldDesign("complete_plus_anchor", _COMPLETE, (0,), 1.414),
)


def problem(
    design: FieldDesign,
    *,
    dim: int = 1,
    k: int = 1,
    weights: Sequence[float] | None = None,
    value: Sequence[float] | None = None,
) -> Problem:
    """The design as a problem; `weights` one per relation (default 1), `value` what the anchors
    say.
    """
    each = [1.0] * len(design.edges) if weights is None else list(weights)
    said = {} if value is None else {"value": [float(v) for v in value]}
    relations = [
        {"id": f"r{tail}{head}", "tail": str(tail), "head": str(head), "weight": float(weight)}
        for (tail, head), weight in zip(design.edges, each, strict=True)
    ]
    return Problem(
        name=design.name,
        k=k,
        nodes=[{"id": str(node), "dim": dim} for node in range(NODES)],
        relations=relations,
        anchors=[{"id": f"a{node}", "node": str(node), **said} for node in design.anchors],
    )


@dataclass(frozen=True)
class PreparedDesign:
    """A design ready to decode many fields of one dimension: its operator, margin and support
    decoder.
    """

    design: FieldDesign
    dim: int
    k: int = 1
    weights: tuple[float, ...] | None = None

    @cached_property
    def problem(self) -> Problem:
        return problem(self.design, dim=self.dim, k=self.k, weights=self.weights)

    @cached_property
    def matrix(self) -> Array:
        return np.asarray(self.problem.operator().matrix.toarray())

    @cached_property
    def gamma(self) -> float:
        """γ_k to nine decimals, which is also the paper's rule for zero: designs with one margin
        differ in its last digits by rounding, and ranks would tell them apart.
        """
        return round(float(self.problem.margin().value), 9)

    @cached_property
    def decoder(self) -> SupportDecoder:
        return SupportDecoder(self.matrix, [self.dim] * NODES)

    @property
    def rows(self) -> int:
        return len(self.design.edges) + len(self.design.anchors)

    def syndrome(self, field: Array, anchor: Array) -> Array:
        """B y - c for a field (4, dim); anchored nodes are compared with `anchor`."""
        relations = len(self.design.edges) * self.dim
        target = np.concatenate([np.zeros(relations), *[anchor] * len(self.design.anchors)])
        return np.asarray(self.matrix @ field.ravel() - target)

    def repair(self, field: Array, anchor: Array) -> FieldRepair:
        """Least residual over supports of at most k nodes; among equal explanations the first, as
        an enumeration meets it.
        """
        s = self.syndrome(field, anchor)
        slack = 1e-9 * max(1.0, float(np.abs(field).max(initial=0.0)))
        found = self.decoder.decode(s, k=self.k, tolerance=slack)
        if found.explanations:
            least = min(len(e.support) for e in found.explanations)
            chosen: Any = min((e for e in found.explanations if len(e.support) == least), key=lambda e: e.support)
        else:
            chosen = found
        error = np.asarray(chosen.error).reshape(field.shape)
        return FieldRepair(field - error, error, tuple(chosen.support), float(chosen.residual), len(found.explanations))


@dataclass(frozen=True, slots=True)
class FieldRepair:
    """The repaired field, the edit, its support and residual, and how many minimal supports explain
    the data.
    """

    field: Array
    error: Array
    support: tuple[int, ...]
    residual: float
    explanations: int


@cache
def prepared(name: str, dim: int, k: int = 1, weights: tuple[float, ...] | None = None) -> PreparedDesign:
    return PreparedDesign(next(d for d in DESIGNS if d.name == name), dim, k, weights)


def recovered_placements(name: str, dim: int = 1) -> tuple[float, ...]:
    """Normalised error ‖ê − e*‖/‖e*‖ for one wrong answer at node 0, 1, 2, 3: 0 where the design
    must recover it.
    """
    ready = prepared(name, dim)
    truth = np.full((NODES, dim), 7.0)
    result = []
    for node in range(NODES):
        field = truth.copy()
        field[node] += np.linspace(1.0, 2.0, dim)
        repaired = ready.repair(field, truth[0])
        result.append(float(np.linalg.norm(repaired.field - truth) / np.linalg.norm(field - truth)))
    return tuple(result)
