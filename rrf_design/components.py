"""The component criterion (paper, "Null space and sparse anchor coverage"): for fields of identity relations, γ_k is zero
exactly when some component without an anchor has at most 2k nodes. No matrix is needed to see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rrf_design.blocks import Anchor, Relation
from rrf_design.errors import InputError
from rrf_design.margins import check_k

if TYPE_CHECKING:
    from rrf_design.problem import Problem, Selection


@dataclass(frozen=True, slots=True)
class ComponentCriterion:
    """Components of a design, smallest unanchored one first to matter."""

    k: int
    components: tuple[tuple[str, ...], ...]
    anchored: tuple[bool, ...]

    @property
    def unanchored(self) -> tuple[tuple[str, ...], ...]:
        """Components without an anchor, smallest first: each carries a shared error that no relation can see."""
        free = [c for c, held in zip(self.components, self.anchored, strict=True) if not held]
        return tuple(sorted(free, key=len))

    @property
    def zero(self) -> bool:
        """Whether γ_k = 0."""
        return bool(self.unanchored) and len(self.unanchored[0]) <= 2 * self.k

    @property
    def injective(self) -> bool:
        """Whether even dense errors are visible: every component is anchored."""
        return not self.unanchored


def component_criterion(problem: Problem, select: Selection = None, *, k: int | None = None) -> ComponentCriterion:
    """The criterion for what is owned plus what is selected; InputError where it does not apply.

    It needs identity transports everywhere, and anchors that fix their whole node (`rows` the identity).

    γ_k = 0 exactly where a component without an anchor has at most 2k nodes.

    >>> import networkx as nx
    >>> import rrf_design as rrf
    >>> found = rrf.component_criterion(rrf.from_graph(nx.path_graph(3), k=1))
    >>> found.zero, found.unanchored
    (False, (('0', '1', '2'),))
    """
    import networkx as nx

    operator = problem.operator(select)
    if not operator.premise.plain:
        raise InputError(
            "components: the criterion is for answers that fail one by one, all delivered, with checks that hold"
        )
    graph = nx.Graph()
    graph.add_nodes_from(operator.node_ids)
    anchored: set[str] = set()
    for name in operator.block_ids:
        block = problem.block_by_id[name]
        if isinstance(block, Relation):
            if block.pair is None:
                raise InputError(
                    f"relation {name!r}: among several nodes; the criterion is for identity relations of two"
                )
            if block.transport.kind != "identity":
                raise InputError(
                    f"relation {name!r}: transport {block.transport.kind}; the criterion is for identity relations"
                )
            if len(block.nodes) == 2:
                graph.add_edge(*block.nodes)
        elif isinstance(block, Anchor):
            if block.rows is not None:
                raise InputError(f"anchor {name!r}: partial rows; the criterion is for anchors that fix a whole node")
            anchored.update(block.nodes)
    order = {name: i for i, name in enumerate(operator.node_ids)}
    parts = sorted(
        (tuple(sorted(part, key=order.__getitem__)) for part in nx.connected_components(graph)),
        key=lambda p: order[p[0]],
    )
    return ComponentCriterion(
        k=check_k(k, problem.k),
        components=tuple(parts),
        anchored=tuple(any(name in anchored for name in part) for part in parts),
    )
