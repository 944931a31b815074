from __future__ import annotations

from rrf_design import Problem
from rrf_design.reporting.comparison import comparison_page
from rrf_design.reporting.designs import Design


def test_two_designs_side_by_side(problem: Problem) -> None:
    made = comparison_page(Design(problem, (), "owned"), Design(problem, ("a3",), "with a3"))
    assert "owned against with a3" in made
    assert "with a3 sees its worst error better" in made
    assert "only in with a3" in made


def test_equal_designs_are_not_called_better(problem: Problem) -> None:
    made = comparison_page(Design(problem, ("a3",), "A"), Design(problem, ("a3",), "B"))
    assert "The bounds overlap" in made


def test_a_witness_on_nodes_the_other_does_not_have(problem: Problem) -> None:
    other = Problem(nodes=[{"id": "elsewhere"}], anchors=[])
    assert "asks nodes that it does not have" in comparison_page(Design(problem), Design(other))
