"""The verbs agree with each other, as the rooms behind them do
(tests/rrf_design/test_agreement.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agreeing import SIGNS, generated, live, page_words, true_field

import rrf_design as rrf
from rrf_design.goal import Goal

BUDGET = 4.25


def close(first: float | None, second: float | None) -> bool:
    return first == second or (first is not None and second is not None and first == pytest.approx(second, rel=1e-6))


def test_the_command_line_says_the_same(run: Any, tmp_path: Path) -> None:
    problem = rrf.Problem(
        k=1,
        target=0.1,
        epsilon=0.1,
        delta=0.5,
        nodes=[{"id": "a"}, {"id": "b"}, {"id": "c"}],
        relations=[{"id": "ab", "tail": "a", "head": "b"}, {"id": "bc", "tail": "b", "head": "c"}],
        anchors=[
            {"id": "x", "node": "a", "value": 1.0, "cost": 5.0},
            {"id": "y", "node": "c", "value": 1.0, "cost": 5.0},
        ],
        tiers=[{"id": "t", "blocks": ["x", "y"], "prices": [5.0, 2.0]}],
    )
    path = tmp_path / "problem.json"
    rrf.save(problem, path)
    plan = run("plan", path, "--json").json
    told = run("explain", path, "--select", ",".join(plan["selected"]), "--json").json
    written = run("certify", path, "--select", ",".join(plan["selected"]), "-o", tmp_path / "c.json", "--json").json
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps({"a": 1.0, "b": 1.0, "c": 9.0}), encoding="utf-8")
    fixed = run("repair", path, "-r", answers, "--select", ",".join(plan["selected"]), "--json").json
    for found in (plan, told, written, fixed):
        assert found["wanted"] == pytest.approx(0.4)
        assert found["epsilon"] == pytest.approx(0.1)
    assert plan["reached"] == told["reached"] == written["reached"]
    assert (fixed["verdict"] == "consistent") == plan["reached"]


@pytest.mark.parametrize("seed", range(0, 60, 5))
def test_every_verb_says_the_same_of_a_generated_file(run: Any, tmp_path: Path, seed: int) -> None:
    """A run with one wrong answer in three; then plan, explain, certify, repair and the pages are
    asked about what it bought.
    """
    problem = live(generated(seed))
    path, answers, model = tmp_path / "problem.json", tmp_path / "answers.json", tmp_path / "model.json"
    rrf.save(problem, path)
    truth = true_field(problem) | ({"n1": 9.0} if seed % 3 == 0 else {})
    model.write_text(json.dumps({"rules": [{"prompt": n, "text": f"{v}"} for n, v in truth.items()]}), encoding="utf-8")
    store = ("--store", tmp_path / "runs.sqlite")
    ran = run("acquire", path, "--model", f"scripted:{model}", "--budget", BUDGET, *store, "--json")
    (item,) = ran.json["items"]
    held = ",".join(item["selected"])
    told = run("explain", path, "--select", held, "--json")
    written = run("certify", path, "--select", held, "-o", tmp_path / "c.json", "--json")
    answers.write_text(json.dumps(item["answers"]), encoding="utf-8")
    fixed = run("repair", path, "-r", answers, "--select", held, "-o", tmp_path / "repair.json", "--json")

    repair, documents = item["repair"], (told.json, written.json)
    assert all(close(found["wanted"], item["goal"]) for found in documents)
    assert close(fixed.json["wanted"], repair["wanted"])
    assert all(close(found["epsilon"], told.json["epsilon"]) for found in documents)
    assert close(fixed.json["epsilon"], repair["epsilon"])
    assert all(close(found["robust_lower"], item["robust_lower"]) for found in (*documents, fixed.json))
    assert told.json["reached"] == written.json["reached"] == item["reached"]
    assert close(told.json["cost"], ran.json["spent"])
    assert ran.json["spent"] <= BUDGET
    assert (item["verdict"], item["assumes"]) == (fixed.json["verdict"], fixed.json["assumes"])
    passes = item["verdict"] in ("checked", "consistent")
    assert (ran.code, fixed.code) == (0 if passes else 1,) * 2
    assert told.code == (0 if told.json["reached"] else 1)
    assert written.code == (0 if written.json["reached"] or not Goal.of(problem).named else 1)
    assert ran.json["repaired"] == fixed.json["repaired"]

    for number, shown in enumerate((ran.json["run"], tmp_path / "repair.json")):
        page = tmp_path / f"{number}.html"
        assert run("report", shown, "-o", page, *(store if number == 0 else ())).code == 0
        words = page_words(page)
        assert f"{SIGNS[item['verdict']]}{item['verdict']}" in words
        assert ("The answers are consistent" in words) == (item["verdict"] == "consistent")


@pytest.mark.parametrize("seed", range(1, 60, 5))
def test_a_plan_within_its_money_stands_where_the_other_verbs_say(run: Any, tmp_path: Path, seed: int) -> None:
    path = tmp_path / "problem.json"
    rrf.save(generated(seed), path)
    plan = run("plan", path, "--budget", BUDGET, "-o", tmp_path / "plan.json", "--json")
    told = run("explain", path, "--select", ",".join(plan.json["selected"]), "--json")
    written = run("certify", path, "--plan", tmp_path / "plan.json", "-o", tmp_path / "c.json", "--json")
    for key in ("wanted", "epsilon", "robust_lower", "error_bound"):
        assert close(plan.json[key], written.json[key]), key
        assert close(plan.json[key], told.json[key]), key
    assert close(plan.json["cost"], told.json["cost"])
    assert plan.json["cost"] <= BUDGET
    assert plan.json["reached"] == told.json["reached"] == written.json["reached"]
    if written.json["robust_lower"] > 0:
        assert run("verify", tmp_path / "c.json", "--json").json["valid"]
    page = tmp_path / "plan.html"
    assert run("report", tmp_path / "plan.json", "-o", page).code == 0
    assert f"{plan.json['cost']:g}" in page_words(page)
