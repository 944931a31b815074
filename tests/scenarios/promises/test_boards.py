from __future__ import annotations

from pathlib import Path

import numpy as np

from scenarios.promises.boards import Boards
from scenarios.promises.panels import read_panel


def test_the_products_family_has_climbs_and_the_plain_one_none(made_up_answers: Path) -> None:
    boards = Boards.of(read_panel(made_up_answers, "crux"), 30.0)
    assert len(boards.plain.played) == 144
    assert any(", " in p.name for p in boards.product.played)
    assert not any(", " in p.name for p in boards.plain.played)
    for board in (boards.product, boards.plain):
        assert board.cost.shape == board.wrong.shape == (160, len(board.played))
        assert not np.logical_and(board.wrong, board.checked).any()
