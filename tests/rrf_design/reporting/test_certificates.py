from __future__ import annotations

from typing import Any

import pytest

import rrf_design as rrf
from rrf_design import Problem
from rrf_design.reporting.certificates import NOT_SAID
from rrf_design.reporting.documents import read, render, selected_of
from rrf_design.reporting.pages import at_most


@pytest.fixture(scope="module")
def certificate(problem: Problem) -> dict[str, Any]:
    document: dict[str, Any] = rrf.certify(problem, ["a3"], epsilon=0.05).document
    return document


def test_the_promise_with_its_assumptions_and_limits(problem: Problem, certificate: dict[str, Any]) -> None:
    made = render(read(certificate, problem=problem))
    assert "Certificate for small field" in made
    bound = at_most(certificate["error"]["bound"])
    promise = (
        f"repaired answers are within {bound} of the truth, provided that at most 1 answer is wrong and the noise of"
        " all rows together is at most 0.05."
    )
    assert made.index(promise) < made.index("<h2>")
    for text in (*certificate["assumptions"], *NOT_SAID):
        assert text.replace("'", "&#x27;") in made
    assert certificate["digest"] in made
    assert "rrf-design verify" in made


def test_the_margin_without_whitening_is_told_apart(problem: Problem) -> None:
    noisy = problem.model_dump(by_alias=True, exclude_defaults=True)
    noisy["anchors"][0]["sigma"] = 0.5
    field = Problem(**noisy)
    document = rrf.certify(field, ["a3"], epsilon=0.05).document
    made = render(read(document, problem=field))
    assert ("without whitening" in made) == (document["provenance"]["unwhitened"] is not None)
    assert document["provenance"]["unwhitened"] is not None


def test_a_certificate_of_nothing(problem: Problem) -> None:
    nothing = rrf.certify(problem)
    made = render(read(nothing, problem=problem))
    assert "Nothing is promised at 1 wrong answer" in made
    assert "Two errors that can&#x27;t be told apart" in made


def uncertain(problem: Problem, **more: Any) -> Problem:
    plain = problem.model_dump(by_alias=True, exclude_defaults=True)
    plain["relations"][0]["uncertainty"] = 0.01
    return Problem(**{**plain, **more})


def test_without_a_bound_on_the_field_no_error_is_promised_and_the_page_says_why(problem: Problem) -> None:
    field = uncertain(problem)
    document = rrf.certify(field, ["a3"], epsilon=0.05).document
    assert document["error"]["spread"] is None
    made = render(read(document, problem=field))
    assert "No error bound is promised: blocks are uncertain, and nothing bounds the true answers" in made
    assert "of the truth, provided" not in made


def test_with_an_amplitude_it_is_part_of_the_premise(problem: Problem) -> None:
    field = uncertain(problem, amplitude=40.0)
    made = render(read(rrf.certify(field, ["a3"], epsilon=0.05).document, problem=field))
    assert "the true answers on uncertain blocks have a norm of at most 40" in made
    assert "what uncertain blocks add" in made


def test_without_noise_there_is_no_bound_to_promise(problem: Problem) -> None:
    made = render(read(rrf.certify(problem, ["a3"]).document, problem=problem))
    assert ("no noise radius is declared" in made) == (rrf.certify(problem, ["a3"]).document["error"]["bound"] is None)


def test_a_certificate_is_a_design_too(problem: Problem, certificate: dict[str, Any]) -> None:
    assert selected_of(read(certificate, problem=problem)) == ("a3",)


def test_without_its_problem_it_still_has_a_page(certificate: dict[str, Any]) -> None:
    made = render(read(certificate)).partition("<script>")[0]
    assert "data-nodes=" not in made
    assert "The witness" in made


def test_further_budgets_are_drawn(problem: Problem) -> None:
    field = Problem(
        nodes=[{"id": f"n{i}"} for i in range(8)],
        relations=[{"id": f"r{i}", "tail": f"n{i}", "head": f"n{(i + 1) % 8}"} for i in range(8)],
        anchors=[{"id": f"a{i}", "node": f"n{i}"} for i in range(8)],
    )
    found = rrf.certify(field)
    made = render(read(found, problem=field))
    assert ("If more answers are wrong" in made) == (len(found.document["budgets"]) > 0)


def test_the_pair_that_nobody_can_tell_apart_is_shown(problem: Problem, certificate: dict[str, Any]) -> None:
    made = render(read(certificate, problem=problem))
    pair = certificate["rivals"]
    assert "The pair that nobody can tell apart" in made
    assert "Both fit one measurement within ε = 0.05" in made
    assert "no method can promise less than half of that" in made
    for name in (*pair["first"]["support"], *pair["second"]["support"]):
        assert f"{name} is off by" in made


def test_how_often_the_premise_fails_is_shown_where_a_pilot_counted_it(certificate: dict[str, Any]) -> None:
    assert "How often that fails" not in render(read(certificate))
    made = render(read({**certificate, "pilot": {"sentence": "At most 14.14 % <b>fail</b> the premise."}}))
    assert "How often that fails, from a pilot: At most 14.14 % &lt;b&gt;fail&lt;/b&gt; the premise." in made
