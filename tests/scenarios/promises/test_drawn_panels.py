from __future__ import annotations

from pathlib import Path

import numpy as np

from scenarios.promises.drawn_panels import SIZE, drawn_panel
from scenarios.promises.panels import nodes_of_set


def test_a_draw_is_the_same_each_time_and_cheap_nodes_come_first(made_up_answers: Path) -> None:
    first, again, other = (drawn_panel(made_up_answers, "llmbar", draw) for draw in (0, 0, 1))
    assert first is not None
    assert again is not None
    assert other is not None
    assert first.nodes == again.nodes != other.nodes
    assert len(set(first.nodes)) == SIZE == first.answers.shape[1]
    assert (np.diff(first.prices) >= 0).all()
    assert set(first.nodes) <= set(nodes_of_set(made_up_answers, "llmbar"))


def test_a_set_with_few_nodes_has_no_draw(made_up_answers: Path) -> None:
    assert drawn_panel(made_up_answers, "nothing-like-it", 0) is None
