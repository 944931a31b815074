"""rrf-design acquire and estimate of a table."""

from __future__ import annotations

import json

import pytest

RECIPE = """[data]
table = "t.csv"
id = "no"
[answer]
of = "total"
tolerance = 0.005
[[ask]]
id = "total"
prompt = "Total of {{ no }}?"
[[ask]]
id = "reworded"
like = "total"
prompt = "To pay for {{ no }}?"
[[ask]]
id = "again"
like = "total"
prompt = "Sum of {{ no }}?"
[[check]]
id = "clerk"
of = "total"
by = { person = "Total of {{ no }}" }
cost = 5
"""
SAID = {"a": (10, 10, 10), "b": (11, 12, 11), "c": (1, 2, 3)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "rrf.toml").write_text(RECIPE)
    (tmp_path / "t.csv").write_text("no\n" + "".join(f"{name}\n" for name in SAID))
    rows = [
        {"id": name, "node": node, "text": f"It is {value}"}
        for name, values in SAID.items()
        for node, value in zip(("total", "reworded", "again"), values, strict=True)
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_over_a_table_and_back(run, folder):
    ran = run("acquire", "--responses", "a.jsonl", "-o", "d.csv", "-o", "r.json", "--review", "q.csv", "-q", "--json")
    assert ran.code == 1  # a person is waited for
    document = json.loads(ran.out)
    assert document["verdict"] == "contradicted"
    assert document["verdicts"] == {"certified": 2, "ambiguous": 0, "incomplete": 0, "contradicted": 1}
    assert json.loads((folder / "r.json").read_text())["run"] == document["run"]
    by_item = {item["item"]: item for item in document["items"]}
    assert {"verdict", "assumes", "asked", "unasked", "unread"} <= by_item["c"].keys()
    assert "a,10,It is 10,certified" in (folder / "d.csv").read_text()
    listed = (folder / "q.csv").read_text().splitlines()
    assert len(listed) == 2
    (folder / "q.csv").write_text("\n".join([listed[0], listed[1] + "3"]) + "\n")
    ran = run(
        "acquire", "--responses", "a.jsonl", "--resume", "last", "--reviews", "q.csv", "-o", "d.csv", "-q",
        "--require-share", "1",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "c,3,It is 1,certified,clerk is right,0.0,true,5.0" in (folder / "d.csv").read_text()


def test_a_required_share_that_is_missed(run, folder):
    assert run("acquire", "--responses", "a.jsonl", "--budget", "0", "-q").code == 0
    assert run("acquire", "--responses", "a.jsonl", "--budget", "0", "-q", "--require-share", "0.7").code == 1


def test_estimate(run, folder):
    document = json.loads(run("estimate", "--model", "openai:gpt-4.1-mini", "--json").out)
    assert document["calls"]["expected"] == 9
    assert document["items"] == 3
    assert 0 < document["money"]["expected"] < document["money"]["most"]
    assert "at most" in run("estimate", "--model", "embedded").out
    refused = run("estimate")
    assert refused.code == 2
    assert "--model" in refused.err


def test_everything_that_is_asked_for_is_written(run, folder):
    names = ["r.json", "p.html", "d.jsonl", "x.xml"]
    more = ["--junit", "j.xml", "--report", "q.html", "--certificate", "proofs"]
    ran = run(
        "acquire", "--responses", "a.jsonl", "--budget", "0", *(part for name in names for part in ("-o", name)), *more
    )
    assert all(f"written to {name}" in ran.err for name in names)
    assert all((folder / name).stat().st_size for name in [*names, "j.xml", "q.html"])
    assert len(list((folder / "proofs").iterdir())) == 3
    assert "2 of 3 items are certified" in (folder / "p.html").read_text()


TWO = """[data]
table = "t.csv"
id = "no"
[models]
mini = { use = "scripted:ten.json", temperature = 0.7 }
other = "scripted:ten.json"
[answer]
of = "total"
tolerance = 0.005
[[ask]]
id = "total"
model = ["mini", "other"]
prompt = "Total of {{ no }}?"
[[ask]]
id = "reworded"
like = "total"
model = "other"
prompt = "To pay for {{ no }}?"
"""


def test_several_models_of_a_recipe_in_one_run(run, folder):
    (folder / "rrf.toml").write_text(TWO)
    (folder / "ten.json").write_text('{"default": "10"}')
    (folder / "eleven.json").write_text('{"default": "11"}')
    ran = run("acquire", "-q", "--json")
    assert ran.code == 0, ran.err
    used = ran.json["models"]
    assert {name: entry["answers"] for name, entry in used.items()} == {"mini": 3, "other": 6}
    assert set(ran.json["header"]["models"]) == {"mini", "other"}
    # One of them is replaced on the command line, and disagrees now: two of three answers are the other's.
    ran = run("acquire", "-q", "--json", "--model", "other=scripted:eleven.json")
    item = ran.json["items"][0]
    assert item["answers"] == {"total": [10.0], "total@other": [11.0], "reworded": [11.0]}
    ran = run("acquire", "-q", "--model", "scripted:eleven.json")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "several models (mini, other); say which is meant, as in --model mini=scripted:eleven.json" in ran.err
