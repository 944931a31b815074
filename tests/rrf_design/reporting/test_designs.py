from __future__ import annotations

from rrf_design import Problem
from rrf_design.files import digest
from rrf_design.reporting.designs import Design, bounds_words, design_page, gamma


def test_the_page_says_what_margin_explain_and_the_file_say(problem: Problem) -> None:
    made = design_page(Design(problem, ("a3",)))
    margin = problem.margin(["a3"])
    assert f"{margin.value:.5g}" in made
    assert "γ₁" in made
    assert digest(problem) in made
    assert "1 bought" in made


def test_a_zero_margin_is_shown_as_such(problem: Problem) -> None:
    made = design_page(Design(problem))
    assert "Nothing in this design touches isolate" in made
    assert "zero, up to rounding" in made


def test_a_bound_is_never_called_exact() -> None:
    assert bounds_words(0.1, 0.2, "bounded").startswith("not settled")
    assert bounds_words(0.1, 0.1, "exact").startswith("exact")
    assert gamma(12) == "γ₁₂"
