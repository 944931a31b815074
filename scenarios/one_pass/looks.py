"""One pass (`deliver`) on recorded answers beside the three steps pilot, policy and people: how
many rows people look at, and whether the promise was true.

A cell is a panel, a number of rows drawn from it, and a risk. Gold plays the people, in both. Of
the three steps the statement is 'file' (wrong rows in the file, the pilot's corrected), which is
what a pass promises; their audit is not counted.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.promises import OnePass
from rrf_design.risk import Statement, boundary, staggered
from scenarios.data_set_promises.boards import Board, own_family
from scenarios.data_set_promises.panels import Codes, panel_names, read_panel
from scenarios.data_set_promises.splits import CONFIDENCE, CountTests, OrderItems, PromiseCell, chosen_by
from scenarios.kit import Context, Part

PANELS = ("gsm8k", "gsm8k-small", "crux", "llmbar", "mmlu-pro")
SIZES = (300, 1000)
MOST = 2000
"""A panel of more rows is not played as a whole."""
RISKS = (0.01, 0.02, 0.05, 0.1)
LABELS = (50, 100, 200, 400)
LISTED = 63
PROTOTYPE: dict[tuple[str, int], tuple[int, int, int, int]] = {
    ("gsm8k", 300): (227, 175, 90, 48),
    ("gsm8k-small", 300): (236, 191, 121, 73),
    ("crux", 300): (239, 188, 114, 70),
    ("llmbar", 300): (286, 267, 212, 144),
    ("mmlu-pro", 300): (286, 270, 230, 184),
    ("gsm8k", 1000): (614, 413, 168, 71),
    ("gsm8k-small", 1000): (680, 471, 273, 144),
    ("mmlu-pro", 1000): (930, 857, 696, 535),
    ("gsm8k", 1319): (758, 495, 187, 89),
    ("gsm8k-small", 1319): (841, 567, 328, 167),
    ("crux", 800): (566, 390, 208, 118),
    ("llmbar", 734): (718, 677, 450, 273),
}
"""Looks of the throw-away prototype at RISKS: means over 200 draws of rows."""


def pass_parts(context: Context, folder: Path) -> list[Part]:
    """A part for each panel, size and risk that the folder has rows for."""
    found: list[Part] = []
    for name in (name for name in PANELS if name in panel_names(folder)):
        rows = len(read_panel(folder, name).gold)
        sizes = [size for size in SIZES if size < rows] + [rows] * (rows <= MOST)
        found += [{"one pass": name, "rows": size, "risk": risk} for size in sizes for risk in RISKS]
    return found[: 2 * len(RISKS)] if context.quick else found


def pass_part(context: Context, folder: Path, part: Part) -> list[dict[str, Any]]:
    """One cell: means over draws of rows and of their order."""
    panel, size, risk = read_panel(folder, part["one pass"]), int(part["rows"]), float(part["risk"])
    board = Board.of(panel, own_family(panel), float(context["check"]))
    seeds = np.random.SeedSequence([context["seed"], size, *map(ord, panel.name)]).spawn(context["passes"])
    passed, kept, sequence, steps = [], [], [], []
    for number, child in enumerate(seeds):
        rng = np.random.default_rng(child)
        places, others = rng.permutation(len(panel.gold))[:size], rng.permutation(len(panel.gold))[: context["others"]]
        answers, gold = panel.answers[places], panel.gold[places]
        made = walked(answers, gold, risk=risk, seed=number)
        passed.append(made.looks)
        kept.append(left_wrong(made, gold) <= made.allowed)
        sequence.append(one_sequence(answers, gold, risk=risk, rng=rng))
        steps.append(three_steps(board, places, others, risk=risk, check=float(context["check"])))
    today = np.mean(steps, axis=0)
    looks = np.array(passed, dtype=np.float64)
    row = {
        "cell": f"{panel.name}, {size:,} rows, r = {risk:.0%}",
        "rows": size,
        "one pass": float(looks.mean()),
        "±": float(looks.std(ddof=1) / np.sqrt(len(looks))) if len(looks) > 1 else None,
        "nine in ten": float(np.quantile(looks, 0.9)),
        "of all rows": float(looks.mean() / size),
        "kept": float(np.mean(kept)),
        "three steps, best pilot": float(today.min()),
        "its labels": LABELS[int(today.argmin())],
        "one random sequence": float(np.mean(sequence)),
    }
    known = PROTOTYPE.get((panel.name, size))
    return [{**row, "prototype": None if known is None else known[RISKS.index(risk)]}]


def walked(answers: Codes, gold: Codes, *, risk: float, seed: int) -> OnePass:
    """A pass whose rows are labelled by gold until nothing is asked for."""
    made = OnePass(
        answers, risk=Fraction(str(risk)), confidence=CONFIDENCE, seed=seed, digest=lambda picks, withheld: ""
    )
    while rows := made.next().rows:
        for place in rows:
            made.label({place: [int(gold[place])] if gold[place] in answers[place] else []})
    return made


def left_wrong(made: OnePass, gold: Codes) -> int:
    """Of the rows that nobody looked at."""
    return sum(int(made.picks.code[place] != gold[place]) for place in range(made.rows) if place not in made.looked)


def one_sequence(answers: Codes, gold: Codes, *, risk: float, rng: np.random.Generator) -> int:
    """Looks of the same test without doubtful rows first: all rows, at random."""
    made = OnePass(answers, risk=Fraction(str(risk)), confidence=CONFIDENCE, seed=0, digest=lambda picks, withheld: "")
    limits = boundary(len(gold), made.allowed, 1 - CONFIDENCE, most=LISTED)
    marks = rng.permutation(made.picks.code != gold)
    found = np.concatenate([[0], np.cumsum(marks)])
    return next(n for n, wrong in enumerate(found.tolist()) if limits.stops(n, wrong))


def three_steps(
    board: Board, places: NDArray[np.int64], others: NDArray[np.int64], *, risk: float, check: float
) -> list[float]:
    """Looks of a pilot and of people after it, for each size of a pilot."""
    chains, found = OrderItems.of(board, others).chains(), []
    for labels in LABELS:
        if labels >= len(places):
            found.append(float(len(places)))
            continue
        cell = PromiseCell(board.panel.name, risk, labels, check)
        tests = CountTests(cell, len(places), Statement.FILE)
        order = staggered(chains, tests.limit, tests.scope, confidence=CONFIDENCE)
        chosen = chosen_by(board, cell, tests, places[:labels], order)
        rest = places[labels:]
        found.append(labels + (len(rest) if chosen is None else float(board.checked[rest, chosen].sum())))
    return found
