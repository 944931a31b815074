"""A large field as data in its page, so that the reader can look up any node and see its neighbourhood drawn.

`assets/field.js` draws from this what `graph` draws of the witness's neighbourhood, and fills the same tables. The data is
text in a hidden element: it is parsed as JSON and set as text, never as markup.
"""

from __future__ import annotations

import json
from typing import Any

from rrf_design.blocks import Relation
from rrf_design.reporting.fieldview import WORDS, FieldView, relation_words, transport_words
from rrf_design.reporting.markup import Markup, tag, visible
from rrf_design.reporting.pages import number

CARRIED = 20_000
"""Nodes of a field that its page carries: the nearest to the witness; about a megabyte."""
COLOURS = 7
"""Families of relations with a colour of their own."""


def carried(view: FieldView) -> Markup:
    """The hidden element with everything that a neighbourhood's drawing and tables show."""
    text = json.dumps(field_data(view), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return tag("pre", text, class_="data", hidden=True)


def field_data(view: FieldView) -> dict[str, Any]:
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
            words(relation_words(block)) if isinstance(block, Relation) and block.pair is None else -1,
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
