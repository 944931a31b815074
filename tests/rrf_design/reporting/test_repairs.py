from __future__ import annotations

from typing import Any

from rrf_design import Problem
from rrf_design.reporting.delivery import vector
from rrf_design.reporting.documents import read, render


def test_wrong_answers_and_what_they_became(problem: Problem, repaired: dict[str, Any]) -> None:
    assert repaired["support"] == ["tripled"]
    made = render(read(repaired, problem=problem))
    assert "Repair of small field" in made
    for cell in (">17<", ">15<", ">wrong<", ">kept<", ">no answer<", "refusal"):
        assert cell in made
    assert 'class="node wrong"' in made
    assert "γ₁" in made


def test_every_value_stands_with_its_bound(problem: Problem, repaired: dict[str, Any]) -> None:
    made = render(read({**repaired, "bounds": {"tripled": 0.25}}, problem=problem))
    assert ">±0.25<" in made
    assert ">within</th>" not in render(read({**repaired, "bounds": {}}, problem=problem))


def test_without_its_problem_the_field_is_not_drawn(repaired: dict[str, Any]) -> None:
    made = render(read(repaired))
    assert "data-nodes=" not in made.partition("<script>")[0]
    assert repaired["problem"] in made


def test_what_can_not_be_told_apart_is_said(repaired: dict[str, Any]) -> None:
    other = {"support": ["original"], "repaired": {"original": None}, "residual": 0.0, "free": 1}
    unsure = {
        **repaired,
        "verdict": "ambiguous",
        "alternatives": [other],
        "indistinguishable": ["original"],
        "error_bound": None,
    }
    made = render(read(unsure))
    assert "without any measurement changing: original" in made
    assert "original: not determined" in made
    assert "Only some of the values may be used: more than one explanation fits" in made
    assert "no bound" in made


def test_truth_names_the_failures(repaired: dict[str, Any]) -> None:
    made = render(read({**repaired, "truth_error": 2.5, "failures": ["budget violation"]}))
    assert "off by 2.5; failures: budget violation" in made


def test_a_contradiction_hands_out_nothing(repaired: dict[str, Any]) -> None:
    nothing = dict.fromkeys(repaired["repaired"])
    refuted = {**repaired, "verdict": "contradicted", "repaired": nothing, "support": [], "error": {}, "bounds": {}}
    made = render(read(refuted))
    assert made.index("No value may be used: nothing explains what was measured") < made.index("<h2>")
    assert "not determined" in made
    assert ">15<" not in made


def test_the_sentence_with_its_premise_leads(repaired: dict[str, Any]) -> None:
    sure = {**repaired, "verdict": "consistent", "assumes": "at most 1 of 3 answers is wrong", "bounds": {"a": 0.125}}
    made = render(read(sure))
    words = "none is further than 0.125 from the truth, provided that at most 1 of 3 answers is wrong."
    assert made.index(words) < made.index("<h2>")
    assert "guaranteed" not in made.partition("<script>")[0]


def test_vectors_are_cut_and_amounts_keep_their_digits() -> None:
    assert vector([1.0, 2.5]) == "1, 2.5"
    assert vector([11879.56]) == "11879.56"
    assert vector([0.1 + 0.2]) == "0.3"
    assert vector(list(range(10))).endswith("… (10 coordinates)")
