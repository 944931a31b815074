"""measure: from labels to proposals, and bad calls in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

RECIPE = """
[data]
table = "t.csv"
id = "no"
gold = "truth"
[answer]
of = "a"
tolerance = 0.001
[[ask]]
id = "a"
prompt = "How many? {{ no }}"
[[ask]]
id = "b"
like = "a"
prompt = "Say how many. {{ no }}"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("rrf.toml").write_text(RECIPE)
    Path("t.csv").write_text("no,truth\n1,7\n2,8\n3,\n")
    said = [("1", "a", 7), ("1", "b", 7), ("2", "a", 8), ("2", "b", 9), ("3", "a", 1)]
    lines = [json.dumps({"id": i, "node": n, "value": v}) for i, n, v in said]
    Path("r.jsonl").write_text("\n".join(lines))
    return tmp_path


def test_answers_and_relations(here: Path, run: Run) -> None:
    ran = run("measure", "--responses", "r.jsonl", "--json")
    assert ran.code == 0
    found = ran.json
    assert (found["format"], found["items"]) == ("rrf-measurement", 2)
    assert [entry["wrong"] for entry in found["wrong_answers"]["nodes"]] == [0, 1]
    assert found["relations"][0]["broken"] == found["relations"][0]["one_right"] == 1
    ran = run("measure", "--responses", "r.jsonl")
    assert ran.code == 0
    assert "b like a" in ran.out


def test_judges(here: Path, run: Run) -> None:
    Path("j.csv").write_text("id,judge,value,truth\n1,x,yes,yes\n2,x,no,yes\n1,y,yes,yes\n")
    ran = run("measure", "--judgements", "j.csv")
    assert ran.code == 0
    out = ran.out
    assert "x and y agree in 1 of 1 items" in out
    assert "rate = " in out


def test_verifiers_of_a_run(here: Path, run: Run) -> None:
    """Both items are asked, and a judge says what is right: it is wrong about the second."""
    judge = (
        '[[check]]\nid = "judge"\nof = "a"\nsigma = 1.0\nby = { verifier = "scripted:j.json", prompt = "Is it {{ answer'
        ' }}?" }\n'
    )
    Path("rrf.toml").write_text(RECIPE + judge)
    Path("s.json").write_text(json.dumps({"default": "7"}))
    Path("j.json").write_text(json.dumps({"default": "7"}))
    run("acquire", "--model", "scripted:s.json", "--mode", "agnostic", "-q")
    ran = run("measure", "--run", "last", "--json")
    assert ran.code == 0
    (found,) = ran.json["judges"]
    assert (found["judge"], found["judged"], found["right"]) == ("judge", 2, 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "give --responses or --run with a recipe"),
        (["--responses", "r.jsonl", "--confidence", "1"], "between 0 and 1"),
    ],
)
def test_bad_calls_are_one_line(here: Path, run: Run, given: list[str], message: str) -> None:
    ran = run("measure", *given)
    assert ran.code == 2
    said = ran.err
    assert message in said
    assert said.count("\n") == 1
