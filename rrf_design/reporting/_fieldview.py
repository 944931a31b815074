"""What a drawing of the field shows: which nodes and blocks, what they are to this design, and how
well each sees the witness.

A small field is drawn whole. Of a large one the neighbourhood of the witness is drawn, or of any
node the reader looks up, and the rest is given in numbers: how many of each kind, and which
_components no anchor holds. Beside the drawing stand the same facts as words and tables
(`field_tables`), for those who want the numbers or can't see it.

A page carries a large field as data (`carried`), so that the reader can look up any node:
`assets/field.js` draws from it what `graph` draws of the witness's neighbourhood, and fills the
same tables. The data is text in a hidden element: it is parsed as JSON and set as text, never as
markup.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rrf_design.blocks import Anchor, Relation
from rrf_design.reporting.pages import Column, Markup, figures, join, listing, number, prose, table, tag, visible

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
    values: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """What a node answered and what it became, in words; empty where there is none."""

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
        """‖C_j h‖² of the witness for every block of the problem: of those held, and of each other
        one where it were held, too.
        """
        return self.problem.design(list(self.selected)).energies(self.witness) if self.witness else {}

    def block_status(self, block: Relation | Anchor) -> str:
        """ "owned", "bought", "sale", or "waiting" for an owned block that touches a node not asked
        yet.
        """
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
        """All nodes of a small field; of a large one the witness and what is nearest to it, then
        the wrong ones.
        """
        names = [node.id for node in self.problem.nodes]
        if len(names) <= WHOLE:
            return tuple(names)
        return self.nearest(NEIGHBOURHOOD)

    def nearest(self, most: int) -> tuple[str, ...]:
        """At most so many nodes, breadth first from the witness and the wrong responses, in the
        problem's order.
        """
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
    """What a relation does in a word or two: identity, ×3, 2×3 matrix, permute 1 0, select 0 2,
    sum, difference, rows.
    """
    if relation.pair is None:
        return "rows" if relation.rows is not None else "difference" if relation.difference is not None else "sum"
    return relation.transport.label


def _relation_words(relation: Relation) -> str:
    """A relation as an equation: b = ×3 of a; total = net + tax; net = total − tax; net + tax −
    total = 0.
    """
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


def _ends_words(relation: Relation) -> str:
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


def _components(view: FieldView) -> list[Component]:
    """Connected parts of the design (what is on sale does not connect), smallest without an anchor
    first.
    """
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


FOLDED = 15
"""Tables of more rows are folded."""


def _asked(view: FieldView, name: str) -> str:
    """Whether a node was asked, and what asking it costs, or the question whose answer it stands
    in.
    """
    asked = view.problem.asked_as(name)
    if asked != name:
        return f"read from the answer of {asked}"
    return "asked" if name in view.open_nodes else f"not asked yet, costs {view.problem.node_by_id[name].cost:g}"


def node_words(view: FieldView, name: str) -> str:
    """Everything about a node in one line."""
    node = view.problem.node_by_id[name]
    words = [f"node {name}", f"dimension {node.dim}"]
    words.append(_asked(view, name))
    if name in view.shares:
        part = ", ".join(number(float(v), 3) for v in list(view.witness[name])[:6])
        words.append(f"{view.shares[name]:.1%} of the witness, along ({part})")
    if name in view.wrong:
        words.append("its response was wrong")
    if name in view.remarks:
        words.append(view.remarks[name])
    if node.prompt:
        words.append(f"asks: {node.prompt if len(node.prompt) <= 160 else node.prompt[:159] + '…'}")
    return "; ".join(words)


def block_words(view: FieldView, block: Relation | Anchor) -> str:
    """Everything about a block in one line."""
    status = WORDS[view.block_status(block)]
    price = "" if block.cost is None else f" for {block.cost:g}"
    if isinstance(block, Relation):
        family = f"family {block.family}" if block.family else ""
        words = [f"relation {block.id}", _relation_words(block), family]
    else:
        words = [f"anchor {block.id} on {', '.join(block.nodes[:6])}{' …' if len(block.nodes) > 6 else ''}"]
    words += [status + price, view.remarks.get(block.id, "")]
    if block.id in view.energies:
        words.append(f"energy on the witness: {_energy_words(view.energies[block.id])}")
    return "; ".join(word for word in words if word)


def _energy_words(energy: float) -> str:
    """‖C h‖² of a unit witness; nothing is called by its name."""
    return number(energy, 4) if energy > 0 else "blind"


def field_tables(view: FieldView, index: dict[str, int], *, open_rows: int = FOLDED) -> Markup:
    """Nodes and blocks that are drawn, and for a large field the sums over the rest; rows are tied
    to the drawing. Tables of more than `open_rows` rows are folded.
    """
    problem = view.problem
    nodes = list(problem.nodes) if view.whole else [problem.node_by_id[name] for name in view.drawn_nodes]
    nodes.sort(key=lambda node: -view.shares.get(node.id, 0.0))
    tied = Counter(
        name for block in problem.blocks if view.block_status(block) in ("owned", "bought") for name in block.nodes
    )
    follows = not view.whole  # a large field's tables follow what is drawn
    rows = listing(
        nodes,
        Column("node", lambda node: node.id),
        figures("dimension", lambda node: number(node.dim)),
        Column("state", lambda node: _asked(view, node.id)),
        figures("blocks in the design", lambda node: number(tied[node.id])),
        figures("share of witness", lambda node: f"{view.shares[node.id]:.1%}" if node.id in view.shares else ""),
        Column("response", lambda node: "wrong" if node.id in view.wrong else "") if view.wrong else None,
        keys=[f"n{index[node.id]}" for node in nodes],
        follows=follows,
    )
    near = set(view.drawn_nodes)
    blocks = [(j, b) for j, b in enumerate(problem.blocks) if near.issuperset(b.nodes)]
    blocks.sort(key=lambda item: -view.energies.get(item[1].id, 0.0))
    drawn = "" if view.whole else " drawn"
    parts = [
        *folded(f"Nodes{drawn}", rows, len(nodes), most=open_rows),
        *folded(
            f"Relations and anchors{drawn}", _block_table(view, blocks, follows=follows), len(blocks), most=open_rows
        ),
    ]
    if not view.whole:
        parts += _totals(view)
    return join(parts)


def folded(heading: str, content: Markup, rows: int, *, most: int = FOLDED) -> list[Markup]:
    """A long table waits behind its heading; on paper it is unfolded."""
    if rows <= most:
        return [tag("h3", heading), content]
    return [
        tag("details", tag("summary", f"{heading} (", tag("span", number(rows), class_="count"), " rows)"), content)
    ]


def _block_table(view: FieldView, blocks: Sequence[tuple[int, Relation | Anchor]], *, follows: bool) -> Markup:
    def energy(block: Relation | Anchor) -> str:
        return _energy_words(view.energies[block.id]) if block.id in view.energies else ""

    return listing(
        [block for _, block in blocks],
        Column("block", lambda b: b.id),
        Column("kind", lambda b: "relation" if isinstance(b, Relation) else "anchor"),
        Column("nodes", lambda b: _ends_words(b) if isinstance(b, Relation) else ", ".join(b.nodes[:6])),
        Column("map", lambda b: transport_words(b) if isinstance(b, Relation) else "anchor"),
        Column("family", lambda b: b.family or ""),
        Column("state", lambda b: WORDS[view.block_status(b)]),
        figures("cost (unit of costs)", lambda b: "" if b.cost is None else number(b.cost)),
        figures("energy on the witness, ‖C h‖²", energy),
        filled=not follows,  # else the page's script fills all columns
        keys=[f"b{j}" for j, _ in blocks],
        follows=follows,
    )


def _totals(view: FieldView) -> list[Markup]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for block in view.problem.blocks:
        name = f"relation: {family_of(block)}" if isinstance(block, Relation) else "anchor"
        counts[name][view.block_status(block)] += 1
    kinds = ["owned", "bought", "sale", "waiting"]
    rows = [[name, *(number(c[kind]) for kind in kinds), number(c.total())] for name, c in counts.items()]
    rows.sort(key=lambda row: row[0])
    parts = _components(view)
    loose = [part for part in parts if part.anchors == 0]
    alike: dict[tuple[int, int], list[str]] = defaultdict(list)
    for part in parts:
        alike[part.nodes, part.anchors].append(part.example)
    shown = [[number(len(found)), number(n), number(a), found[0]] for (n, a), found in alike.items()]
    return [
        tag("h3", "The whole field, by family"),
        table(["family", *(WORDS[kind] for kind in kinds), "all"], rows, right=range(1, 6)),
        tag("h3", "The whole field, by connected part"),
        prose(
            f"{number(len(parts))} connected parts; {number(len(loose))} of them hold no anchor, which leaves an error"
            " shared by all their nodes invisible wherever the transports allow one."
        ),
        table(["parts", "nodes in each", "anchors in each", "one of them contains"], shown, right=[0, 1, 2], most=30),
    ]


CARRIED = 20_000
"""Nodes of a field that its page carries: the nearest to the witness; about a megabyte."""
COLOURS = 7
"""Families of relations with a colour of their own."""


def carried(view: FieldView) -> Markup:
    """The hidden element with everything that a neighbourhood's drawing and tables show."""
    text = json.dumps(_field_data(view), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return tag("pre", text, class_="data", hidden=True)


def _field_data(view: FieldView) -> dict[str, Any]:
    """Columns by node index; indices are those of the problem file, as in the drawing's keys."""
    problem = view.problem
    names = [node.id for node in problem.nodes]
    near = names if len(names) <= CARRIED else list(view.nearest(CARRIED))
    index = {name: i for i, name in enumerate(names)}
    here = set(near)
    words = _Words()
    states = list(WORDS)
    blocks = [
        [
            j,
            words(block.id),
            [index[name] for name in block.nodes],
            words(transport_words(block)) if isinstance(block, Relation) else -1,
            -1 if block.family is None else words(block.family),
            states.index(view.block_status(block)),
            block.cost,
            words(_relation_words(block)) if isinstance(block, Relation) and block.pair is None else -1,
        ]
        for j, block in enumerate(problem.blocks)
        if here.issuperset(block.nodes)
    ]
    shares = view.shares
    return {
        "nodes": [[index[name], visible(name)] for name in near],
        "all": len(names),
        "allBlocks": len(problem.blocks),
        "dims": {index[name]: problem.node_by_id[name].dim for name in near if problem.node_by_id[name].dim != 1},
        "costs": {index[name]: problem.node_by_id[name].cost for name in near if name not in view.open_nodes},
        "shares": {index[name]: share for name, share in shares.items()},
        "along": {index[name]: [number(float(v), 3) for v in list(view.witness[name])[:6]] for name in shares},
        "wrong": [index[name] for name in view.wrong if name in here],
        "values": {index[name]: [visible(text) for text in said] for name, said in view.values.items() if name in here},
        "remarks": {visible(name): visible(text) for name, text in view.remarks.items()},
        "families": [visible(name) for name in view.families[:COLOURS]],
        "words": words.all,
        "blocks": blocks,
        "energies": {j: view.energies.get(b.id, 0.0) for j, b in enumerate(problem.blocks) if view.energies.get(b.id)},
    }


class _Words:
    """Texts that recur, each written once."""

    def __init__(self) -> None:
        self._place: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self._place.setdefault(visible(text), len(self._place))

    @property
    def all(self) -> list[str]:
        return list(self._place)
