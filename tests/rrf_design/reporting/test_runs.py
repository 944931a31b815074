from __future__ import annotations

import html
from dataclasses import replace
from typing import Any

from rrf_design import Problem
from rrf_design.reporting._sentences import _field_sentence
from rrf_design.reporting.delivery import vector
from rrf_design.reporting.documents import read, render
from rrf_design.verdict import Verdict

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
