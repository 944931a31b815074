"""One page for each kind of document: what it leads with and what it never claims."""

from __future__ import annotations

import html
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design import InputError, Problem
from rrf_design._explain import explain
from rrf_design.documents import sealed
from rrf_design.files import digest
from rrf_design.reporting._sentences import _field_sentence
from rrf_design.reporting.certificates import NOT_SAID
from rrf_design.reporting.delivery import vector
from rrf_design.reporting.designs import bounds_words, comparison_page, gamma
from rrf_design.reporting.documents import PageSource, read, render, selected_of
from rrf_design.reporting.pages import at_least, at_most
from rrf_design.verdict import Verdict


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


@pytest.fixture(scope="module")
def plan(problem: Problem) -> Any:
    return rrf.plan(problem, budget=4.0)


def test_a_plan_says_what_to_buy_and_how_far_from_the_best_it_is(problem: Problem, plan: Any) -> None:
    made = render(read(plan, problem=problem))
    assert "Plan for small field" in made
    for block in plan.selected:
        assert block in made
    assert f"{plan.gamma:.5g}" in made
    assert "best possible" in made
    assert "owned already" in made
    assert 'class="anchor bought"' in made


def test_only_what_the_plan_proves_is_called_proven(problem: Problem, plan: Any) -> None:
    made = render(read(plan, problem=problem))
    last = f"lower bound {at_least(plan.gamma_lower)}, upper bound {at_most(plan.gamma_upper)}"
    assert "at the end with its proven lower and upper bounds" in made
    assert made.count(last) == 1
    for step in plan.trajectory:
        assert f"{step.block} at" in made


def test_a_plan_without_its_problem_has_no_drawing(plan: Any) -> None:
    made = render(read(plan)).partition("<script>")[0]
    assert "data-nodes=" not in made
    assert plan.digest in made


def test_a_plan_for_another_problem_is_refused(plan: Any) -> None:
    other = Problem(nodes=[{"id": "a"}])
    with pytest.raises(rrf.InputError, match="another problem"):
        read(plan, problem=other)


def test_a_plan_says_which_margin_its_goal_is_held_against(problem: Problem) -> None:
    made = render(read(rrf.plan(problem, target=0.3), problem=problem))
    assert "with declared uncertainty taken off" not in made
    unsure = Problem(
        k=1,
        target=0.5,
        nodes=[{"id": "a"}, {"id": "b"}],
        relations=[{"id": "ab", "tail": "a", "head": "b", "uncertainty": 0.1}],
        anchors=[{"id": name, "node": name.lower(), "value": 1.0, "cost": 1.0} for name in "AB"],
    )
    found = rrf.plan(unsure, budget=4.0)
    made = render(read(found, problem=unsure))
    assert found.robust_lower is not None
    certain, plain = at_least(found.robust_lower, 7), at_least(found.gamma_lower, 7)
    assert f"certain are {certain} with declared uncertainty taken off, {plain} without" in made
    assert "with declared uncertainty taken off" in made.partition("best possible")[2][:60]


def test_a_plan_that_misses_its_target_says_so(problem: Problem) -> None:
    missed = rrf.plan(problem, target=50.0)
    assert str(missed.status) == "infeasible"
    assert "out of reach" in render(read(missed, problem=problem))


def test_a_frontier_has_a_point_for_every_step(problem: Problem) -> None:
    found = rrf.frontier(problem)
    made = render(read(found, problem=problem))
    assert made.count('class="hit"') == len(found.points)
    assert "The first positive margin costs" in made
    for point in found.points:
        assert (
            f"lower bound {at_least(problem.margin(point.selected).lower)}, upper bound {at_most(point.upper_bound)}"
            in made
        )


def test_a_frontier_claims_no_lower_bound_that_its_document_lacks(problem: Problem) -> None:
    document = sealed("rrf-frontier", rrf.frontier(problem).to_json())
    assert "lower bound not known" not in render(read(document))
    for point in document["points"]:
        del point["gamma_lower"]
    assert "lower bound not known" in render(read(document))


def test_the_name_of_a_frontier(problem: Problem) -> None:
    made = render(read(rrf.frontier(problem), problem=problem))
    assert "Frontier of small field" in made


def test_nothing_to_buy() -> None:
    alone = Problem(name="alone", nodes=[{"id": "a"}, {"id": "b"}], relations=[{"id": "r", "tail": "a", "head": "b"}])
    made = render(read(rrf.plan(alone, budget=1.0), problem=alone))
    assert "Buy nothing" in made
    made = render(read(rrf.frontier(alone), problem=alone))
    assert "No amount of money" in made


def test_a_frontier_with_repeats_shows_promised_errors() -> None:
    again = Problem(
        nodes=[{"id": "x", "sigma": 0.1, "again": 0.5, "most_repeats": 2}],
        anchors=[{"id": "a", "node": "x", "value": 1.0, "cost": 1.0}],
    )
    made = render(read(rrf.frontier(again), problem=again))
    assert "How the promised error falls with money" in made
    assert "a, x asked 2 times" in made
    assert "The first promise, an error of at most" in made


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


VERDICTS = [verdict.value for verdict in Verdict]


def test_a_run_shows_money_margin_answers_and_purchases(problem: Problem, live: dict[str, Any]) -> None:
    made = render(read(live, problem={"": problem}))
    for text in (
        "Run: small field",
        "Money over time: spent (unit of costs), purchase by purchase",
        "time since the beginning (seconds)",
        "settled (UTC)",
        "before each purchase and at the end",
        "Every purchase",
        "budget 5",
    ):
        assert text in made
    assert "parse failure" in made
    assert live["run"] in made
    assert "data-nodes=" in made


def test_hours_are_hours_and_a_document_without_times_has_its_order(live: dict[str, Any]) -> None:
    began = 1_700_000_000.0
    purchases = [{**p, "at": began + 3600.0 * i} for i, p in enumerate(live["purchases"])]
    header = {**live["header"], "created": "2023-11-14T22:13:20+00:00"}
    made = render(read({**live, "purchases": purchases, "header": header}))
    assert "time since the beginning (hours)" in made
    assert "2023-11-14 23:13:20" in made
    old = [{name: value for name, value in p.items() if name != "at"} for p in live["purchases"]]
    made = render(read({**live, "purchases": old}))
    assert "purchases, in order" in made
    assert "settled (UTC)" not in made


def test_real_money_has_its_own_curve(live: dict[str, Any]) -> None:
    purchases = [{**p, "money": 0.25} for p in live["purchases"]]
    made = render(read({**live, "purchases": purchases, "money": 0.25 * len(purchases)}))
    assert "paid to the model's provider" in made.replace("&#x27;", "'")


def test_many_fields_are_summed_up(live: dict[str, Any]) -> None:
    items = [{**live["items"][0], "item": f"item {i}"} for i in range(80)]
    made = render(read({**live, "items": items, "verdicts": {**live["verdicts"], live["verdict"]: 80}}))
    assert "designs that reach their goal" in made
    assert made.index("Every item") < made.index("Money over time")
    assert made.count("<h2>") == 3
    assert made.count('class="items"') == 1


def test_some_fields_are_shown_one_by_one_folded(problem: Problem, live: dict[str, Any]) -> None:
    items = [{**live["items"][0], "item": f"item {i}"} for i in range(3)]
    made = render(read({**live, "items": items}, problem={"item 1": problem}))
    assert "Field by field" in made
    for i in range(3):
        assert f"<summary>item {i}: {live['verdict']}; certified γ₁" in made
    assert made.count('class="field"') == 1


def test_an_unfinished_run_has_no_repair(live: dict[str, Any]) -> None:
    item = {**live["items"][0], "repair": None, "gamma_lower": 0.0}
    made = render(read({**live, "items": [item], "open_reviews": 2, "lost": 1.0}))
    assert "No repair: the run has not come to its end" in made
    assert "2 reviews by people are still open" in made
    assert "lost to a crash" in made


def test_the_sentence_leads_and_is_the_verdicts(live: dict[str, Any]) -> None:
    made = render(read(live))
    assert live["verdict"] in VERDICTS
    assert made.index(html.escape(_field_sentence(live["items"][0]["repair"]))) < made.index("<h2>")


def test_a_run_that_reaches_its_goal_and_contradicts_itself_is_not_called_good(live: dict[str, Any]) -> None:
    item = live["items"][0]
    nothing = {**item["repair"], "verdict": "contradicted", "repaired": dict.fromkeys(item["repair"]["repaired"])}
    odd = {**item, "reached": True, "verdict": "contradicted", "repair": {**nothing, "support": []}}
    counts = dict.fromkeys(VERDICTS, 0) | {"contradicted": 1}
    made = render(read({**live, "items": [odd], "verdict": "contradicted", "verdicts": counts}))
    assert "No value may be used" in made
    table = made.partition("Answers, and what they became")[2]
    for value in item["answers"].values():  # what was answered is shown all the same
        assert f">{vector(value)}<" in table
    assert item["answers"]
    assert 'class="callout good"' not in made


def test_questions_and_raw_answers_stand_on_the_page(live: dict[str, Any]) -> None:
    answer = {
        "item": "",
        "node": "original",
        "request": {"prompt": "What is 2 + 3?"},
        "reply": {"text": "It is <b>5</b>.", "outcome": "answered"},
        "parsed": {"canonical": "5", "status": "parsed"},
    }
    made = render(replace(read(live), answers=[answer]))
    assert "What is 2 + 3?" in made
    assert "It is &lt;b&gt;5&lt;/b&gt;." in made
    assert "Questions and raw answers" not in render(read(live))


def test_a_curve_of_many_purchases_is_thinned(live: dict[str, Any]) -> None:
    many = [{**live["purchases"][0], "price": 1.0, "at": 0.0} for _ in range(5000)]
    made = render(read({**live, "purchases": many}))
    assert "at 400 of 5001 moments" in made
    assert len(made) < 400_000


def test_only_a_run_that_goes_on_loads_itself_anew(live: dict[str, Any]) -> None:
    assert 'http-equiv="refresh"' in render(replace(read(live), refresh=5))
    assert 'http-equiv="refresh"' not in render(read(live))
