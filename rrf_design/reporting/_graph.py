"""The field as a drawing: circles are questions, lines are relations by family, squares are
anchors.

Colour says which family a relation is of, the kind of line whether it is owned (solid), bought
(thick) or on sale (dashed), and the witness is a heavy ring with its share written beside it:
nothing is said by colour alone. Below a node stands what was answered, a wrong answer crossed out
with what it became.

Each connected component is laid out on its own (stress minimisation while it is small, forces
beyond) and scaled to a common edge length; the boxes are then packed into rows. The layout is
deterministic: the same field always looks the same.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.blocks import Anchor, Relation
from rrf_design.reporting._fieldview import (
    COLOURS,
    FOLDED,
    NEIGHBOURHOOD,
    WORDS,
    FieldView,
    block_words,
    carried,
    family_of,
    field_tables,
    node_words,
    transport_words,
)
from rrf_design.reporting.pages import Markup, number, tag

RADIUS = 13.0
LABELLED_EDGES = 24
MOST_EDGES = 600


def draw_field(view: FieldView, *, open_rows: int = FOLDED) -> Markup:
    """The drawing with its controls, legend and tables; a large field as a neighbourhood that can
    be chosen, and numbers. Tables of more than `open_rows` rows are folded.
    """
    drawn = set(view.drawn_nodes)
    index = {node.id: i for i, node in enumerate(view.problem.nodes)}
    blocks = [(j, b) for j, b in enumerate(view.problem.blocks) if drawn.issuperset(b.nodes)]
    order = {"bought": 0, "owned": 1, "waiting": 2, "sale": 3}
    blocks.sort(key=lambda item: order[view.block_status(item[1])])
    blocks = sorted(blocks[:MOST_EDGES])
    edges = [(index[b.nodes[0]], index[name]) for _, b in blocks for name in b.nodes[1:]]
    placed, size = _positions([index[name] for name in view.drawn_nodes], edges)
    svg = _svg(view, blocks, placed, size, index)
    drawing, hint = tag("div", svg, class_="drawing"), tag("output", _hint(view), class_="detail", aria_live="polite")
    data = None if view.whole else carried(view)
    beside = tag("div", field_tables(view, index, open_rows=open_rows), class_="beside")
    field = tag("div", _controls(view), drawing, hint, _legend(view), data, class_="field")
    return tag("figure", field, tag("figcaption", _caption(view, len(blocks))), beside, class_="figure")


def _caption(view: FieldView, shown: int) -> str:
    bent = [entry.id for entry in view.problem.nonlinear]
    if view.whole:
        told = f" Not drawn, since they are no rows of B: the nonlinear relations {', '.join(bent[:12])}."
        told = told if bent else ""
        return f"The field: {number(len(view.problem.nodes))} nodes, {number(shown)} relations and anchors drawn.{told}"
    return (
        f"The part of the field around the witness: {len(view.drawn_nodes)} of {number(len(view.problem.nodes))} nodes"
        f" and {number(shown)} of {number(len(view.problem.blocks))} relations and anchors; the tables below sum up the"
        " rest."
    )


def _hint(view: FieldView) -> str:
    more = "" if view.whole else " Double-click a node, or press Enter on it, for its neighbourhood."
    return (
        "Point at, tab to or tap anything in the drawing. Zoom with the buttons, +, − and 0, Ctrl and the wheel, or"
        f" two fingers; drag or use the arrow keys to move.{more}"
    )


def _controls(view: FieldView) -> Markup:
    boxes = [("nosale", "what is still on sale"), ("nolabels", "names")][not view.problem.on_sale :]
    field = tag("input", type="search", autocomplete="off", data_act="find")
    find = [tag("label", "Find a node ", field), tag("datalist"), _button("go", "Show")]
    around = None
    if not view.whole:
        sizes = [
            tag("option", str(many), value=str(many), selected=many == NEIGHBOURHOOD)
            for many in (NEIGHBOURHOOD // 2, NEIGHBOURHOOD, 2 * NEIGHBOURHOOD)
        ]
        chosen = tag("label", "Nodes drawn ", tag("select", sizes, data_act="size"))
        back = _button("back", "Back to the witness" if view.witness else "Back to the first")
        around = tag("span", _button("around", "Around the chosen node", disabled=True), chosen, back, class_="group")
    zoom = [
        _button("out", "−", title="Zoom out"),
        _button("in", "+", title="Zoom in"),
        _button("whole", "Whole drawing"),
    ]
    ticks = [tag("label", tag("input", type="checkbox", checked=True, data_hides=h), words) for h, words in boxes]
    return tag(
        "div",
        tag("span", "Show: ", ticks, class_="group"),
        tag("span", zoom, class_="group", role="group", aria_label="Zoom"),
        tag("span", find, class_="group"),
        around,
        _button("skip", "Skip the drawing"),  # seen when tabbed to: a drawing has many stops
        class_="controls",
    )


def _button(act: str, words: str, *, title: str | None = None, disabled: bool = False) -> Markup:
    return tag("button", words, type="button", data_act=act, title=title, aria_label=title, disabled=disabled)


def _svg(
    view: FieldView,
    blocks: Sequence[tuple[int, Relation | Anchor]],
    placed: dict[int, Point],
    size: Point,
    index: dict[str, int],
) -> Markup:
    texts = _Texts([(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS) for x, y in placed.values()])
    neighbours: dict[int, set[int]] = defaultdict(set)
    for _, block in blocks:
        for name in block.nodes:
            neighbours[index[name]].update(index[other] for other in block.nodes)
    single: dict[int, list[tuple[int, Anchor]]] = defaultdict(list)
    pair_count = Counter(
        tuple(sorted(index[n] for n in b.nodes)) for _, b in blocks if isinstance(b, Relation) and b.pair
    )
    seen: Counter[tuple[int, ...]] = Counter()
    lines: list[Markup] = []
    labelled = sum(isinstance(b, Relation) for _, b in blocks) <= LABELLED_EDGES
    for j, block in blocks:
        if isinstance(block, Relation) and block.pair is not None:
            pair = tuple(sorted(index[n] for n in block.nodes))
            bend = (seen[pair] - (pair_count[pair] - 1) / 2) * 34.0
            seen[pair] += 1
            lines.append(_relation(view, j, block, block.pair, placed, index, bend, labelled, texts))
        elif isinstance(block, Anchor) and len(block.nodes) == 1:
            single[index[block.nodes[0]]].append((j, block))
        else:
            lines.append(_several(view, j, block, placed, index))
    for i, anchors in single.items():
        for (j, anchor), angle in zip(anchors, _free_angles(i, placed, neighbours[i], len(anchors)), strict=True):
            lines.append(_anchor(view, j, anchor, placed[i], i, angle))
    names = [(view.problem.nodes[i].id, i, place) for i, place in placed.items()]
    names.sort(key=lambda one: (one[0] not in view.wrong, one[0] not in view.shares))  # what matters is placed first
    circles = [_node(view, i, name, place, texts) for name, i, place in names]
    if texts.left < 0 or texts.top < 0:  # a name reaches over the edge: everything moves
        right, down = max(0.0, 6 - texts.left), max(0.0, 6 - texts.top)
        moved = {i: (x + right, y + down) for i, (x, y) in placed.items()}
        return _svg(view, blocks, moved, (size[0] + right, size[1] + down), index)
    width, height = f"{max(size[0], texts.right + 6):.0f}", f"{max(size[1], texts.foot + 6):.0f}"
    words = f"Drawing of the field {view.problem.name} with {len(placed)} nodes"
    shape = {"viewBox": f"0 0 {width} {height}", "width": width, "height": height}
    return tag("svg", *lines, *circles, **shape, role="group", tabindex="0", aria_label=words)


def _relation(
    view: FieldView,
    j: int,
    block: Relation,
    ends: tuple[str, str],
    placed: dict[int, Point],
    index: dict[str, int],
    bend: float,
    labelled: bool,
    texts: _Texts,
) -> Markup:
    status = view.block_status(block)
    tail, head = ends
    (x1, y1), (x2, y2) = placed[index[tail]], placed[index[head]]
    if tail == head:
        path, middle, angle = (
            f"M{x1 - 6:.1f},{y1:.1f} C{x1 - 40:.1f},{y1 - 60:.1f} {x1 + 40:.1f},{y1 - 60:.1f} {x1 + 6:.1f},{y1:.1f}",
            (x1, y1 - 45),
            0.0,
        )
    else:
        length = math.hypot(x2 - x1, y2 - y1)
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        if index[tail] > index[head]:
            bend = -bend  # parallel relations bend to the same side whichever way they point
        cx, cy = (x1 + x2) / 2 - uy * bend, (y1 + y2) / 2 + ux * bend
        middle = ((x1 + x2) / 4 + cx / 2 + ux * 5, (y1 + y2) / 4 + cy / 2 + uy * 5)
        path, angle = f"M{x1:.1f},{y1:.1f} Q{cx:.1f},{cy:.1f} {x2:.1f},{y2:.1f}", math.degrees(math.atan2(uy, ux))
    family = family_of(block)
    colour = min(view.families.index(family), COLOURS)
    parts: list[Markup | None] = [
        tag("title", block_words(view, block)),
        tag("path", d=path, class_=f"edge {_line(status)}"),
        tag("path", d=path, stroke="transparent", stroke_width="14", fill="none"),
        tag(
            "path",
            d="M-6,-4.5 L6,0 L-6,4.5 Z",
            class_="arrow",
            transform=f"translate({middle[0]:.1f} {middle[1]:.1f}) rotate({angle:.1f})",
        ),
    ]
    if labelled and block.transport.kind == "scale":
        parts.append(_edge_label(transport_words(block), middle, angle, texts))
    nodes = " ".join(str(index[name]) for name in block.nodes)
    return tag("g", *parts, class_=f"c{colour} {_line(status)}", data_nodes=nodes, data_key=f"b{j}", tabindex="0")


def _edge_label(words: str, middle: Point, angle: float, texts: _Texts) -> Markup | None:
    """A word beside the middle of a line, on its lower side: above it a node's share of the witness
    may stand. None where another text stands.
    """
    turned = math.radians(angle)
    down = 1.0 if math.cos(turned) >= 0 else -1.0
    nx, ny = -down * math.sin(turned), down * math.cos(turned)
    side = "middle" if abs(nx) < 0.4 else ("start" if nx > 0 else "end")
    x, y = middle[0] + 11 * nx, middle[1] + 11 * ny + 5
    wide = LETTER * len(words)
    left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[side]
    if not texts.free(box := (left, y - 12, left + wide, y + 4)):
        return None
    texts.take(box)
    return tag("text", words, x=x, y=y, text_anchor=side, class_="name soft")


def _line(status: str) -> str:
    return {"owned": "", "bought": "bought", "sale": "sale", "waiting": "sale"}[status]


def _anchor(view: FieldView, j: int, block: Anchor, place: Point, node: int, angle: float) -> Markup:
    reach = RADIUS + 20
    x, y = place[0] + reach * math.cos(angle), place[1] + reach * math.sin(angle)
    status = view.block_status(block)
    return tag(
        "g",
        tag("title", block_words(view, block)),
        tag("line", x1=place[0], y1=place[1], x2=x, y2=y),
        tag("rect", x=x - 6, y=y - 6, width=12.0, height=12.0),
        class_=f"anchor {_line(status)}",
        data_nodes=str(node),
        data_key=f"b{j}",
        tabindex="0",
    )


def _several(
    view: FieldView, j: int, block: Relation | Anchor, placed: dict[int, Point], index: dict[str, int]
) -> Markup:
    """A block over several nodes: lines from each to a mark between them, round for a relation and
    square for an anchor.
    """
    spots = [placed[index[name]] for name in block.nodes]
    x, y = sum(p[0] for p in spots) / len(spots), sum(p[1] for p in spots) / len(spots)
    if len(spots) == 1:
        y -= RADIUS + 20
    status = _line(view.block_status(block))
    if isinstance(block, Relation):
        kind = f"c{min(view.families.index(family_of(block)), COLOURS)}"
        lines = [tag("path", d=f"M{px:.1f},{py:.1f} L{x:.1f},{y:.1f}", class_=f"edge {status}") for px, py in spots]
        mark = tag("circle", cx=x, cy=y, r=6.0, class_="arrow")
    else:
        kind = "anchor"
        lines = [tag("line", x1=px, y1=py, x2=x, y2=y) for px, py in spots]
        mark = tag("rect", x=x - 6, y=y - 6, width=12.0, height=12.0)
    return tag(
        "g",
        tag("title", block_words(view, block)),
        lines,
        mark,
        class_=f"{kind} {status}",
        data_nodes=" ".join(str(index[name]) for name in block.nodes),
        data_key=f"b{j}",
        tabindex="0",
    )


LINE, LETTER = 16.0, 7.4
"""Height of a line and width of a letter in a drawing, in its units."""
LONGEST_NAME = 18

Box = tuple[float, float, float, float]


@dataclass
class _Texts:
    """Where texts stand, so that none is written over another one or over a node."""

    taken: list[Box]
    left: float = 0.0
    top: float = 0.0
    right: float = 0.0
    foot: float = 0.0

    def place(self, lines: Sequence[str], around: Point) -> tuple[float, float, str] | None:
        """The foot of the first line and its anchor: below a node, above it or at a side, whatever
        is free; None where nothing is.
        """
        x, y = around
        wide, high = LETTER * max(map(len, lines)), LINE * len(lines)
        side = y - high / 2
        places = (
            ((x - wide / 2, y + RADIUS + 4), x, "middle"),
            ((x - wide / 2, y - RADIUS - 6 - high), x, "middle"),
            ((x + RADIUS + 6, side), x + RADIUS + 6, "start"),
            ((x - RADIUS - 6 - wide, side), x - RADIUS - 6, "end"),
        )
        for (left, top), at, anchor in places:
            if self.free(box := (left, top, left + wide, top + high)):
                self.take(box)
                return at, top + 12, anchor
        return None

    def free(self, box: Box) -> bool:
        return not any(
            box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3] for other in self.taken
        )

    def take(self, box: Box) -> None:
        self.taken.append(box)
        self.left, self.top = min(self.left, box[0]), min(self.top, box[1])
        self.right, self.foot = max(self.right, box[2]), max(self.foot, box[3])


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"


def _node(view: FieldView, i: int, name: str, place: Point, texts: _Texts) -> Markup:
    x, y = place
    share = view.shares.get(name)
    state = ["node"]
    if name not in view.open_nodes:
        state.append("unasked")
    if share is not None:
        state.append("witness")
    parts = [tag("title", node_words(view, name)), tag("circle", cx=x, cy=y, r=RADIUS)]
    if name in view.wrong:
        state.append("wrong")
        parts.append(tag("path", d=f"M{x - 6:.1f},{y - 6:.1f} l12,12 m0,-12 l-12,12"))
    if share is not None:
        at = (x + RADIUS + 5, y - RADIUS - 10, x + RADIUS + 5 + 4 * LETTER, y - RADIUS + 6)
        if texts.free(at):
            texts.take(at)
            parts.append(tag("text", f"{share:.0%}", x=at[0], y=y - RADIUS + 2, class_="share"))
    given, became = view.values.get(name, ("", ""))
    lines = [(_cut(name), "name"), (_cut(given), "given crossed" if name in view.wrong else "given")]
    lines.append((f"→ {_cut(became)}" if became and became != given else "", "became"))
    shown = [line for line in lines if line[0]]
    spot = texts.place([text for text, _ in shown], place)
    if spot is None:  # the name alone may have room
        shown, spot = shown[:1], texts.place([shown[0][0]], place)
    if spot is not None:
        at_x, at_y, anchor = spot
        for row, (text, kind) in enumerate(shown):
            parts.append(tag("text", text, x=at_x, y=at_y + LINE * row, text_anchor=anchor, class_=kind))
    return tag("g", *parts, class_=" ".join(state), data_nodes=str(i), data_key=f"n{i}", data_name=name, tabindex="0")


def _legend(view: FieldView) -> Markup:
    def sample(*parts: Markup, colour: int = 7) -> Markup:
        return tag("svg", *parts, viewBox="0 0 34 14", aria_hidden="true", class_=f"c{colour}")

    items = [
        tag("li", sample(tag("path", d="M2,7 H32", class_="edge bought"), colour=min(i, COLOURS)), name)
        for i, name in enumerate(view.families[:COLOURS])
    ]
    if (left := len(view.families) - COLOURS) > 0:
        items.append(tag("li", sample(tag("path", d="M2,7 H32", class_="edge bought")), f"{left} other families"))
    kinds = {view.block_status(block) for block in view.problem.blocks}
    for kind in ("owned", "bought", "sale"):
        if kind in kinds:
            items.append(tag("li", sample(tag("path", d="M2,7 H32", class_=f"edge {_line(kind)}")), WORDS[kind]))
    if view.problem.anchors:
        square = tag("rect", x=11.0, y=1.5, width=11.0, height=11.0)
        items += [
            tag("li", sample(tag("g", square, class_=f"anchor {_line(kind)}")), f"anchor, {WORDS[kind]}")
            for kind in ("owned", "bought", "sale")
            if any(view.block_status(a) == kind for a in view.problem.anchors)
        ]
    if view.shares:
        ring = tag("g", tag("circle", cx=17.0, cy=7.0, r=4.5), class_="node witness")
        items.append(tag("li", sample(ring), "node of the witness, with its share"))
    if view.wrong:
        cross = tag("g", tag("path", d="M12,2 l10,10 m0,-10 l-10,10"), class_="node wrong")
        items.append(tag("li", sample(cross), "wrong response"))
    return tag("ul", items, class_="legend")


EDGE = 120.0
"""Wanted length of a relation, in units of the drawing."""
APART = 62.0
"""Least distance between two nodes."""
MARGIN = 46.0
STRESS_LIMIT = 70

Point = tuple[float, float]


def _positions(nodes: Sequence[int], edges: Iterable[tuple[int, int]]) -> tuple[dict[int, Point], Point]:
    """Coordinates of each node, and the (width, height) of the drawing."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from((a, b) for a, b in edges if a != b)
    parts = [sorted(part) for part in nx.connected_components(graph)]
    parts.sort(key=lambda part: (-len(part), part))
    boxes = [_place(graph.subgraph(part), part) for part in parts]
    return _pack(parts, boxes)


def _place(graph: Any, part: list[int]) -> NDArray[np.float64]:
    """(len(part), 2) coordinates of one component, its corner at the origin."""
    import networkx as nx

    if len(part) == 1:
        return np.zeros((1, 2))
    if len(part) == 2:
        return np.array([[0.0, 0.0], [EDGE, 0.0]])
    start = nx.circular_layout(nx.Graph([(n, n) for n in part]))
    if len(part) <= STRESS_LIMIT:
        placed = nx.kamada_kawai_layout(graph, pos=start)
    else:
        placed = nx.spring_layout(graph, pos=start, seed=0, iterations=120, k=1.6 / math.sqrt(len(part)))
    xy = np.array([placed[n] for n in part])
    index = {n: i for i, n in enumerate(part)}
    lengths = [float(np.linalg.norm(xy[index[a]] - xy[index[b]])) for a, b in graph.edges]
    xy = _spread(_turn(xy) * (EDGE / max(float(np.median(lengths)), 1e-9)))
    return np.asarray(xy - xy.min(axis=0), dtype=np.float64)


def _turn(xy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rotated so that the longest extent lies across the page."""
    centred = xy - xy.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    return np.asarray(centred @ axes.T, dtype=np.float64)


def _spread(xy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pushes apart what stands closer than APART; a few rounds suffice for the sizes that are
    drawn.
    """
    xy = xy.copy()
    for _ in range(60):
        delta = xy[:, None, :] - xy[None, :, :]
        distance = np.linalg.norm(delta, axis=2) + np.eye(len(xy)) * APART
        close = np.clip(APART - distance, 0.0, None)
        if close.max() < 1.0:
            break
        direction = delta / np.maximum(distance, 1e-6)[:, :, None]
        xy += 0.5 * (direction * close[:, :, None]).sum(axis=1)
    return xy


def _pack(parts: Sequence[list[int]], boxes: Sequence[NDArray[np.float64]]) -> tuple[dict[int, Point], Point]:
    """Boxes into rows of a common width, tallest first."""
    sizes = [box.max(axis=0) + 2 * MARGIN for box in boxes]
    area = sum(float(w * h) for w, h in sizes)
    width = max(330.0, max(float(w) for w, _ in sizes), 1.35 * math.sqrt(area))
    placed: dict[int, Point] = {}
    x = y = row = 0.0
    for part, box, (w, h) in zip(parts, boxes, sizes, strict=True):
        if x > 0 and x + w > width:
            x, y, row = 0.0, y + row, 0.0
        for node, (px, py) in zip(part, box, strict=True):
            placed[node] = (x + MARGIN + float(px), y + MARGIN + float(py))
        x += float(w)
        row = max(row, float(h))
    used = max(px for px, _ in placed.values()) + MARGIN
    shift = (width - used) / 2 if y == 0.0 else 0.0
    return {node: (px + shift, py) for node, (px, py) in placed.items()}, (width, y + row)


def _free_angles(node: int, placed: Mapping[int, Point], neighbours: Iterable[int], count: int) -> list[float]:
    """Directions (radians) around a node for `count` anchors, in the widest gaps between its
    relations.
    """
    x, y = placed[node]
    taken = [math.atan2(placed[n][1] - y, placed[n][0] - x) for n in neighbours if n != node]
    taken += [math.pi / 2 - 0.7, math.pi / 2, math.pi / 2 + 0.7]  # the node's name stands below it,
    taken.append(-math.pi / 5)  # and its share of the witness to its upper right
    chosen: list[float] = []
    for _ in range(count):
        ring = sorted([*taken, *chosen])
        gaps = [(ring[(i + 1) % len(ring)] - a) % (2 * math.pi) or 2 * math.pi for i, a in enumerate(ring)]
        widest = max(range(len(ring)), key=lambda i: round(gaps[i], 6))
        chosen.append(math.remainder(ring[widest] + gaps[widest] / 2, 2 * math.pi))
    return chosen
