"""Panels that nobody chose: eight nodes drawn at random from all that a set of answers has, by a
recorded seed.

The orders of tests and the climbs were chosen while looking at the panels of the published cells.
These were drawn after everything was fixed, and played once. A node that `panels.json` prices
nowhere costs MIDDLE; nodes stand in the order of their price.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from scenarios.data_set_promises.panels import Panel, nodes_of_set, price_list, read_codes

SIZE = 8
MIDDLE = 2.0
SEED = 20_261_118


def drawn_panel(folder: Path, kept: str, draw: int) -> Panel | None:
    """The panel of this draw; None where the set has fewer than eight nodes."""
    nodes = nodes_of_set(folder, kept)
    if len(nodes) < SIZE:
        return None
    rng = np.random.default_rng(np.random.SeedSequence([SEED, draw, *map(ord, kept)]))
    prices = price_list(folder)
    drawn = [nodes[at] for at in rng.choice(len(nodes), size=SIZE, replace=False)]
    order = sorted(drawn, key=lambda node: (prices.get(node, MIDDLE), nodes.index(node)))
    answers, gold = read_codes(folder, kept, order)
    price = np.array([prices.get(node, MIDDLE) for node in order])
    return Panel(f"{kept}, draw {draw}", answers, gold, price, tuple(order))
