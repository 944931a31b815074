from __future__ import annotations

import numpy as np
import pytest

from rrf_design import InputError, Problem
from rrf_design.explaining import explain
from rrf_design.reporting.comparison import comparison_page
from rrf_design.reporting.documents import PageSource, read


def design(problem: Problem, *selected: str, k: int | None = None) -> PageSource:
    return read(explain(problem, selected, k=k, mend=False, by_budget=True))


def test_two_designs_side_by_side(problem: Problem) -> None:
    made = comparison_page(design(problem), design(problem, "a3"), names=("owned", "with a3"))
    assert "owned against with a3" in made
    assert made.index("with a3 sees its worst error better") < made.index("<h2>")
    assert "only in with a3" in made
    assert "The margin of both designs" in made


def test_how_one_sees_the_others_witness_is_the_length_of_what_it_measures(problem: Problem) -> None:
    first, second = design(problem, "a3"), design(problem, "a3", "r12")
    operator, witness = problem.operator(["a3"]), second.data["witness"]
    whole = {name: witness.get(name, [0.0] * problem.node_by_id[name].dim) for name in operator.node_ids}
    seen = float(np.linalg.norm(operator.matrix @ operator.stack(whole)))
    assert f">{seen:.5g}<" in comparison_page(first, second)


def test_equal_designs_are_not_called_better(problem: Problem) -> None:
    assert "The bounds overlap" in comparison_page(design(problem, "a3"), design(problem, "a3"))


def test_a_witness_on_nodes_the_other_does_not_have(problem: Problem) -> None:
    other = Problem(nodes=[{"id": "elsewhere"}], anchors=[])
    assert "asks nodes that it does not have" in comparison_page(design(problem), design(other))


def test_another_k_is_refused(problem: Problem) -> None:
    with pytest.raises(InputError, match="at one k, not at 1 and 2"):
        comparison_page(design(problem), design(problem, k=2))
