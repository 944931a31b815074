"""Where the nodes of a drawn field stand: components apart, neighbours near, nothing on top of anything else.

Each connected component is laid out on its own (stress minimisation while it is small, forces beyond) and scaled to
a common edge length; the boxes are then packed into rows. Deterministic: the same field always looks the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

EDGE = 120.0
"""Wanted length of a relation, in units of the drawing."""
APART = 62.0
"""Least distance between two nodes."""
MARGIN = 46.0
STRESS_LIMIT = 70

Point = tuple[float, float]


def positions(nodes: Sequence[int], edges: Iterable[tuple[int, int]]) -> tuple[dict[int, Point], Point]:
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
    """Pushes apart what stands closer than APART; a few rounds suffice for the sizes that are drawn."""
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


def free_angles(node: int, placed: Mapping[int, Point], neighbours: Iterable[int], count: int) -> list[float]:
    """Directions (radians) around a node for `count` anchors, in the widest gaps between its relations."""
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
