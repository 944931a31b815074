"""measure: from labels to proposals, and bad calls in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rrf_design.cli import main

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


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("rrf.toml").write_text(RECIPE)
    Path("t.csv").write_text("no,truth\n1,7\n2,8\n3,\n")
    said = [("1", "a", 7), ("1", "b", 7), ("2", "a", 8), ("2", "b", 9), ("3", "a", 1)]
    lines = [json.dumps({"id": i, "node": n, "value": v}) for i, n, v in said]
    Path("r.jsonl").write_text("\n".join(lines))
    return tmp_path


def test_answers_and_relations(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("measure", "--responses", "r.jsonl", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["format"], found["items"]) == ("rrf-measurement", 2)
    assert [entry["wrong"] for entry in found["wrong_answers"]["nodes"]] == [0, 1]
    assert found["relations"][0]["broken"] == found["relations"][0]["one_right"] == 1
    assert call("measure", "--responses", "r.jsonl") == 0
    assert "b like a" in capsys.readouterr().out


def test_judges(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("j.csv").write_text("id,judge,value,truth\n1,x,yes,yes\n2,x,no,yes\n1,y,yes,yes\n")
    assert call("measure", "--judgements", "j.csv") == 0
    out = capsys.readouterr().out
    assert "x and y agree in 1 of 1 items" in out
    assert "rate = " in out


def test_verifiers_of_a_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both items are asked, and a judge says what is right: it is wrong about the second."""
    judge = '[[check]]\nid = "judge"\nof = "a"\nsigma = 1.0\nby = { verifier = "scripted:j.json", prompt = "Is it {{ answer }}?" }\n'
    Path("rrf.toml").write_text(RECIPE + judge)
    Path("s.json").write_text(json.dumps({"default": "7"}))
    Path("j.json").write_text(json.dumps({"default": "7"}))
    call("acquire", "--model", "scripted:s.json", "--mode", "agnostic", "-q")
    capsys.readouterr()
    assert call("measure", "--run", "last", "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["judges"]
    assert (found["judge"], found["judged"], found["right"]) == ("judge", 2, 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "give --responses or --run with a recipe"),
        (["--responses", "r.jsonl", "--confidence", "1"], "between 0 and 1"),
    ],
)
def test_bad_calls_are_one_line(here: Path, capsys: pytest.CaptureFixture[str], given: list[str], message: str) -> None:
    assert call("measure", *given) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
