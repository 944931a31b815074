"""The page of a design, and of two side by side."""

from __future__ import annotations

import numpy as np
import pytest

from rrf_design import InputError, Problem
from rrf_design._explain import explain
from rrf_design.files import digest
from rrf_design.reporting.designs import bounds_words, comparison_page, gamma
from rrf_design.reporting.documents import PageSource, read, render


def test_the_page_says_what_margin_explain_and_the_file_say(problem: Problem) -> None:
    made = render(read(explain(problem, ["a3"], by_budget=True)))
    margin = problem.margin(["a3"])
    assert f"{margin.value:.5g}" in made
    assert "γ₁" in made
    assert digest(problem) in made
    assert "1 bought" in made
    assert "How many wrong answers" in made
    assert "data-nodes=" in made


def test_the_sentence_leads(problem: Problem) -> None:
    made = render(read(explain(problem)))
    assert made.index("This design is not enough") < made.index("<h2>")
    assert "Nothing in this design touches isolate" in made
    assert "zero, up to rounding" in made
    modest = problem.model_copy(update={"target": None})
    assert "This design is enough: it reaches a positive margin" in render(read(explain(modest, ["a3"])))


def test_a_goal_that_is_missed_is_not_called_reached(problem: Problem) -> None:
    wishing = problem.model_copy(update={"target": 50.0})
    made = render(read(explain(wishing, ["a3"])))
    assert "it does not reach the margin 50" in made
    assert "Nothing on sale reaches the margin 50" in made


def test_without_its_problem_the_document_has_a_page_all_the_same(problem: Problem) -> None:
    made = render(read(explain(problem, ["a3"]).to_json())).partition("<script>")[0]
    assert "data-nodes=" not in made
    assert digest(problem) in made


def test_a_problem_has_to_be_explained_first(problem: Problem) -> None:
    with pytest.raises(InputError, match="before it is explained"):
        render(read(problem))


def test_a_bound_is_never_called_exact() -> None:
    assert bounds_words(0.1, 0.2, "bounded").startswith("not settled")
    assert bounds_words(0.1, 0.1, "exact").startswith("exact")
    assert gamma(12) == "γ₁₂"


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
