"""What a drawing of the field shows: which nodes and blocks, what they are to this design, and how well each sees the witness.

A small field is drawn whole. Of a large one the neighbourhood of the witness is drawn, or of any node the reader looks up,
and the rest is told in numbers: how many of each kind, and which components no anchor holds.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from rrf_design.blocks import Anchor, Relation

if TYPE_CHECKING:
    from rrf_design.problem import Problem

WHOLE = 120
"""Fields of at most so many nodes are drawn whole."""
NEIGHBOURHOOD = 60
"""Nodes drawn of a larger field."""

WORDS = {"owned": "owned", "bought": "bought", "sale": "on sale", "waiting": "waits for a node that is not asked"}


@dataclass(frozen=True)
class FieldView:
    """A problem, what is bought of it, and what is to be pointed out on it."""

    problem: Problem
    selected: Sequence[str] = ()
    witness: Mapping[str, Sequence[float]] = field(default_factory=dict)
    wrong: Collection[str] = ()
    """Nodes whose response was found wrong."""
    remarks: Mapping[str, str] = field(default_factory=dict)
    """More words about a node or a block."""

    @cached_property
    def open_nodes(self) -> frozenset[str]:
        if self.problem.nonlinear:  # everything is asked there, and no design speaks of it
            return frozenset(self.problem.node_by_id)
        return self.problem.design(list(self.selected)).opened

    @cached_property
    def shares(self) -> dict[str, float]:
        """How much of the witness's squared length each node carries that carries any."""
        return self.problem.design(list(self.selected)).shares(self.witness) if self.witness else {}

    @cached_property
    def energies(self) -> dict[str, float]:
        """‖C_j h‖² of the witness for every block of the problem, owned or not."""
        return self.problem.structure.energies(self.witness) if self.witness else {}

    def block_status(self, block: Relation | Anchor) -> str:
        """ "owned", "bought", "sale", or "waiting" for an owned block that touches a node not asked yet."""
        if block.id in self._chosen:
            return "bought"
        if not block.owned:
            return "sale"
        return "owned" if self.open_nodes.issuperset(block.nodes) else "waiting"

    @cached_property
    def _chosen(self) -> frozenset[str]:
        return frozenset(self.selected)

    @cached_property
    def families(self) -> tuple[str, ...]:
        """Families of relations by name (transports where there is none), most frequent first."""
        return tuple(name for name, _ in Counter(family_of(r) for r in self.problem.relations).most_common())

    @cached_property
    def drawn_nodes(self) -> tuple[str, ...]:
        """All nodes of a small field; of a large one the witness and what is nearest to it, then the wrong ones."""
        names = [node.id for node in self.problem.nodes]
        if len(names) <= WHOLE:
            return tuple(names)
        return self.nearest(NEIGHBOURHOOD)

    def nearest(self, most: int) -> tuple[str, ...]:
        """At most so many nodes, breadth first from the witness and the wrong responses, in the problem's order."""
        names = [node.id for node in self.problem.nodes]
        neighbours: defaultdict[str, list[str]] = defaultdict(list)
        for block in self.problem.blocks:
            for name in block.nodes:
                neighbours[name].extend(other for other in block.nodes if other != name)
        start = [*self.witness, *self.wrong] or names[:1]
        found = dict.fromkeys(start[:most])
        queue = deque(found)
        while queue and len(found) < most:
            for other in neighbours[queue.popleft()]:
                if other not in found and len(found) < most:
                    found[other] = None
                    queue.append(other)
        return tuple(name for name in names if name in found)

    @property
    def whole(self) -> bool:
        return len(self.problem.nodes) <= WHOLE


def family_of(relation: Relation) -> str:
    """The name a relation's type goes by in legends: its family, or else its kind of transport."""
    return relation.family if relation.family is not None else transport_words(relation)


def transport_words(relation: Relation) -> str:
    """What a relation does in a word or two: identity, ×3, a 2×3 matrix, permute 1 0, select 0 2, sum, difference, rows."""
    if relation.pair is None:
        return "rows" if relation.rows is not None else "difference" if relation.difference is not None else "sum"
    transport = relation.transport
    if transport.scale is not None:
        return f"×{transport.scale:g}"
    if transport.matrix is not None:
        return f"{len(transport.matrix)}×{len(transport.matrix[0])} matrix"
    for kind in ("permute", "select"):
        indices = getattr(transport, kind)
        if indices is not None:
            return f"{kind} {' '.join(map(str, indices[:6]))}{' …' if len(indices) > 6 else ''}"
    return "identity"


def relation_words(relation: Relation) -> str:
    """A relation as an equation: b = ×3 of a; total = net + tax; net = total − tax; net + tax − total = 0."""
    if relation.pair is not None:
        tail, head = relation.pair
        return f"{head} = {transport_words(relation)} of {tail}"
    if relation.rows is not None:
        numbers = {name: part[0][0] for name, part in relation.rows.items() if len(part) == len(part[0]) == 1}
        if len(numbers) < len(relation.rows):
            return f"rows over {_shown(relation.nodes, ', ')}"
        signed = _shown(
            [f"{'−' if c < 0 else '+'} {'' if abs(c) == 1 else f'{abs(c):g} '}{n}" for n, c in numbers.items()], " "
        )
        return f"{signed.removeprefix('+ ')} = {_offset(relation)}"
    joined = _shown(relation.parts, " − " if relation.difference is not None else " + ")
    shift = "" if relation.offset == 0.0 else f" + {_offset(relation)}"
    return f"{relation.head} = {joined}{shift}"


def ends_words(relation: Relation) -> str:
    """The nodes of a relation: tail → head; parts → whole; or all of them."""
    if relation.rows is not None:
        return _shown(relation.nodes, ", ")
    return f"{_shown(relation.nodes[:-1] or relation.nodes, ', ')} → {relation.head}"


def _offset(relation: Relation) -> str:
    return f"{relation.offset:g}" if isinstance(relation.offset, float) else "offset"


def _shown(words: Sequence[str], mark: str) -> str:
    return mark.join(words[:6]) + (f"{mark}…" if len(words) > 6 else "")


@dataclass(frozen=True, slots=True)
class Component:
    """A connected part of the design: nodes that relations and shared anchors tie together."""

    nodes: int
    anchors: int
    example: str


def components(view: FieldView) -> list[Component]:
    """Connected parts of the design (what is on sale does not connect), smallest without an anchor first."""
    parent = {name: name for name in view.open_nodes}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    active = [b for b in view.problem.blocks if view.block_status(b) in ("owned", "bought")]
    for block in active:
        for other in block.nodes[1:]:
            parent[root(other)] = root(block.nodes[0])
    sizes = Counter(root(name) for name in parent)
    anchored = Counter(root(block.nodes[0]) for block in active if isinstance(block, Anchor))
    first = {root(node.id): node.id for node in reversed(view.problem.nodes) if node.id in parent}
    found = [Component(size, anchored[name], first[name]) for name, size in sizes.items()]
    return sorted(found, key=lambda part: (part.anchors > 0, part.nodes, part.example))
