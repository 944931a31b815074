from __future__ import annotations

from rrf_design import Problem
from rrf_design.reporting.fieldtables import block_words, energy_words, field_tables, node_words
from rrf_design.reporting.fieldview import FieldView


def test_everything_about_a_node_and_a_block(problem: Problem) -> None:
    view = FieldView(problem, ["a3"], {"original": [0.6], "tripled": [0.8]}, {"tripled"}, {"tripled": "off by 2"})
    words = node_words(view, "tripled")
    for part in ("dimension 1", "asked", "64.0% of the witness, along (0.8)", "its response was wrong", "off by 2"):
        assert part in words
    assert "not asked yet, costs 1" in node_words(view, "unasked")
    assert "What is 2 + 3?" in node_words(view, "original")
    assert block_words(view, problem.block_by_id["r02"]).startswith(
        "relation r02; tripled = ×3 of original; owned; energy"
    )
    assert "bought for 2" in block_words(view, problem.block_by_id["a3"])


def test_rows_are_tied_to_the_drawing(problem: Problem) -> None:
    index = {node.id: i for i, node in enumerate(problem.nodes)}
    made = field_tables(FieldView(problem), index)
    assert made.count('data-key="n') == len(problem.nodes)
    assert made.count('data-key="b') == len(problem.blocks)


def test_a_block_that_sees_nothing_is_called_blind() -> None:
    assert energy_words(0.0) == "blind"
    assert energy_words(0.25) == "0.25"
