"""rrf-design plan: documents out, the exit code as an answer."""

from __future__ import annotations

import json

import pytest

TEXT = """
[problem]
name = "triangle and isolate"
k = 1
budget = 3.0

[[nodes]]
id = "a"
[[nodes]]
id = "b"
[[nodes]]
id = "c"
[[nodes]]
id = "isolate"

[[relations]]
id = "ab"
tail = "a"
head = "b"
[[relations]]
id = "bc"
tail = "b"
head = "c"
[[relations]]
id = "ca"
tail = "c"
head = "a"
[[relations]]
id = "out"
tail = "a"
head = "isolate"
cost = 1.5

[[anchors]]
id = "a3"
node = "isolate"
cost = 2.0
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text(TEXT)
    return path


def test_json_has_the_promised_keys(run, file):
    ran = run("plan", file, "--json")
    assert ran.code == 0
    assert {"selected", "cost", "gamma", "upper_bound", "gap", "status", "trajectory"} <= set(ran.json)
    assert ran.json["selected"] == ["a3"]
    assert (ran.json["gamma"], ran.json["status"]) == (1.0, "optimal")
    assert {"block", "cost", "gamma", "support"} <= set(ran.json["trajectory"][0])


def test_exit_codes(run, file):
    assert run("plan", file, "--target", "0.5").code == 0
    missed = run("plan", file, "--target", "5", "--json")
    assert (missed.code, missed.json["status"], missed.json["gamma"]) == (1, "infeasible", 1.0)
    unknown = run("plan", file, "--budget", "1", "--method", "magic")
    assert unknown.code == 2
    assert unknown.err.startswith("rrf-design: method: 'magic' is not one of auto, greedy")
    assert "Traceback" not in unknown.err


def test_without_budget_and_target(run, tmp_path):
    path = tmp_path / "bare.toml"
    path.write_text(TEXT.replace("budget = 3.0\n", ""))
    ran = run("plan", path)
    assert ran.code == 2
    assert "neither a budget nor a target is given" in ran.err


def test_text_says_what_to_buy_and_why(run, file):
    ran = run("plan", file, "--explain")
    assert "γ_1 = 1 for 2 of 3" in ran.out
    assert (
        "proven to be the best; found by hull rows and witness cuts; objective gamma: rows as they are weighted"
        in ran.out
    )
    assert "No design within the budget does better, and none that does as well costs less" in ran.out
    assert "a3 sees" in ran.out
    assert "1 is left over" in ran.out
    assert "proven" in ran.out
    hasty = run("plan", file, "--method", "greedy", "--budget", "2").out
    assert "found by the witness greedy" in hasty
    poor = run("plan", file, "--budget", "0.5").out
    assert "buys nothing: the cheapest purchase costs 1.5" in poor


def test_written_plan_is_the_printed_one(run, file, tmp_path):
    ran = run("plan", file, "--method", "greedy", "--json", "-o", tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text()) == ran.json
    assert "written to" in ran.err
