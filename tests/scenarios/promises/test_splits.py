"""A cell over splits: the fast bookkeeping against the product's own `choose`, and the promise where it can be counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rrf_design.risk import Among, Limit, Replay, choose
from scenarios.promises.panels import read_panel
from scenarios.promises.splits import Board, PromiseCell, play_cell

CELL = PromiseCell("crux", 0.1, 80, 30.0)


@pytest.fixture(scope="module")
def board(made_up_answers: Path) -> Board:
    return Board.of(read_panel(made_up_answers, CELL.panel), CELL.check)


def test_holm_on_one_split_is_the_choice_of_the_product(board: Board) -> None:
    rows = play_cell(board, CELL, splits=1, others=40, seed=3, diluted=True)
    (seed,) = np.random.SeedSequence([3, *map(ord, CELL.words)]).spawn(1)
    split = np.random.default_rng(seed).permutation(160)
    pilot, rest = split[:80], split[80:]
    policies = [
        Replay(p.name, p.cost[pilot], p.delivered[pilot], p.wrong[pilot], p.checked[pilot], p.value[pilot])
        for p in board.played
    ]
    chosen = choose(policies, Limit.of(0.1, among=Among.ALL), 0.95, population=160)
    place = [p.name for p in board.played].index(str(chosen))
    (holm,) = (row for row in rows if row["method"] == "Holm")
    assert holm["cost"] == pytest.approx(board.cost[rest, place].mean() / 30)
    assert holm["checks"] == pytest.approx(board.checked[rest, place].mean())
    assert holm["kept"] == float(board.wrong[:, place].sum() <= 16)


def test_methods_stand_where_they_must(board: Board) -> None:
    found = {row["method"]: row for row in play_cell(board, CELL, splits=12, others=60, seed=0, diluted=True)}
    assert found["check everything"]["cost"] == 1.0
    assert found["best in hindsight"]["kept"] == 1.0
    assert found["staggered fronts"]["cost"] <= found["front, discounted"]["cost"] + 1e-9 + 0.02
    assert found["plurality of all"]["checks"] == 0.0
    assert found["plurality of all"]["cost"] == pytest.approx(25 / 30)
    assert found["adaptive consistency"]["cost"] < found["plurality of all"]["cost"]
    assert all(0 <= row["checks"] <= 1 and 0 <= row["kept"] <= 1 for row in found.values())
