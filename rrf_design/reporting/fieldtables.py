"""The field in words and tables: what stands beside its drawing, for those who want the numbers or can't see it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from rrf_design.blocks import Anchor, Relation
from rrf_design.reporting.fieldview import (
    WORDS,
    FieldView,
    components,
    ends_words,
    family_of,
    relation_words,
    transport_words,
)
from rrf_design.reporting.markup import Markup, join, tag
from rrf_design.reporting.pages import number, prose, table, without_empty

FOLDED = 15
"""Tables of more rows are folded."""


def node_words(view: FieldView, name: str) -> str:
    """Everything about a node in one line."""
    node = view.problem.node_by_id[name]
    words = [f"node {name}", f"dimension {node.dim}"]
    words.append("asked" if name in view.open_nodes else f"not asked yet, costs {node.cost:g}")
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
        words = [
            f"relation {block.id}",
            relation_words(block),
            f"family {block.family}" if block.family else "",
        ]
    else:
        words = [f"anchor {block.id} on {', '.join(block.nodes[:6])}{' …' if len(block.nodes) > 6 else ''}"]
    words += [status + price, view.remarks.get(block.id, "")]
    if block.id in view.energies:
        words.append(f"energy on the witness: {energy_words(view.energies[block.id])}")
    return "; ".join(word for word in words if word)


def energy_words(energy: float) -> str:
    """‖C h‖² of a unit witness; nothing is called by its name."""
    return number(energy, 4) if energy > 0 else "blind"


def field_tables(view: FieldView, index: dict[str, int]) -> Markup:
    """Nodes and blocks that are drawn, and for a large field the sums over the rest; rows are tied to the drawing."""
    problem = view.problem
    nodes = list(problem.nodes) if view.whole else [problem.node_by_id[name] for name in view.drawn_nodes]
    nodes.sort(key=lambda node: -view.shares.get(node.id, 0.0))
    tied = Counter(
        name for block in problem.blocks if view.block_status(block) in ("owned", "bought") for name in block.nodes
    )
    rows = [
        [
            node.id,
            number(node.dim),
            "asked" if node.id in view.open_nodes else f"not asked, costs {node.cost:g}",
            number(tied[node.id]),
            f"{view.shares[node.id]:.1%}" if node.id in view.shares else "",
            *([("wrong" if node.id in view.wrong else "")] if view.wrong else []),
        ]
        for node in nodes
    ]
    columns = [
        "node",
        "dimension",
        "state",
        "blocks in the design",
        "share of witness",
        *(["response"] if view.wrong else []),
    ]
    near = set(view.drawn_nodes)
    blocks = [(j, b) for j, b in enumerate(problem.blocks) if near.issuperset(b.nodes)]
    blocks.sort(key=lambda item: -view.energies.get(item[1].id, 0.0))
    drawn = "" if view.whole else " drawn"
    follows = not view.whole  # a large field's tables follow what is drawn
    parts = [
        *folded(
            f"Nodes{drawn}",
            table(columns, rows, right=[1, 3, 4], keys=[f"n{index[node.id]}" for node in nodes], follows=follows),
            len(rows),
        ),
        *folded(f"Relations and anchors{drawn}", _block_table(view, blocks, follows=follows), len(blocks)),
    ]
    if not view.whole:
        parts += _totals(view)
    return join(parts)


def folded(heading: str, content: Markup, rows: int) -> list[Markup]:
    """A long table waits behind its heading; on paper it is unfolded."""
    if rows <= FOLDED:
        return [tag("h3", heading), content]
    return [
        tag("details", tag("summary", f"{heading} (", tag("span", number(rows), class_="count"), " rows)"), content)
    ]


def _block_table(view: FieldView, blocks: Sequence[tuple[int, Relation | Anchor]], *, follows: bool) -> Markup:
    rows = []
    for _, block in blocks:
        relation = isinstance(block, Relation)
        what = ends_words(block) if isinstance(block, Relation) else ", ".join(block.nodes[:6])
        kind = transport_words(block) if isinstance(block, Relation) else "anchor"
        energy = view.energies.get(block.id)
        rows.append(
            [
                block.id,
                "relation" if relation else "anchor",
                what,
                kind,
                block.family or "",
                WORDS[view.block_status(block)],
                "" if block.cost is None else number(block.cost),
                "" if energy is None else energy_words(energy),
            ]
        )
    columns = [
        "block",
        "kind",
        "nodes",
        "map",
        "family",
        "state",
        "cost (unit of costs)",
        "energy on the witness, ‖C h‖²",
    ]
    keys = [f"b{j}" for j, _ in blocks]
    if follows:  # the page's script fills all columns
        return table(columns, rows, right=[6, 7], keys=keys, follows=True)
    return without_empty(columns, rows, right=[6, 7], keys=keys)


def _totals(view: FieldView) -> list[Markup]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for block in view.problem.blocks:
        name = f"relation: {family_of(block)}" if isinstance(block, Relation) else "anchor"
        counts[name][view.block_status(block)] += 1
    kinds = ["owned", "bought", "sale", "waiting"]
    rows = [[name, *(number(c[kind]) for kind in kinds), number(c.total())] for name, c in counts.items()]
    rows.sort(key=lambda row: row[0])
    parts = components(view)
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
            f"{number(len(parts))} connected parts; {number(len(loose))} of them hold no anchor, which leaves an error shared by"
            " all their nodes invisible wherever the transports allow one."
        ),
        table(["parts", "nodes in each", "anchors in each", "one of them contains"], shown, right=[0, 1, 2], most=30),
    ]
