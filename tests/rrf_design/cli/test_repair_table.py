"""rrf-design repair of a table: outputs, the review list, exit codes, options that belong to tables only."""

from __future__ import annotations

import json
import shutil
from importlib.resources import files

import pytest


@pytest.fixture
def sums(tmp_path, monkeypatch):
    for name in ("rrf.toml", "table.csv", "answers.jsonl"):
        shutil.copy(str(files("rrf_design") / "templates" / "sums" / name), tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_table_in_a_table_out(run, sums):
    ran = run("repair", "--responses", "answers.jsonl", "-o", "d.csv", "-o", "d.json", "--review", "r.csv", "--json")
    assert ran.code == 0
    document = json.loads(ran.out)
    assert document["verdicts"] == {"certified": 6, "ambiguous": 0, "incomplete": 0, "contradicted": 0}
    assert json.loads((sums / "d.json").read_text())["items"] == document["items"]
    assert "182,There are 192 of them.,certified" in (sums / "d.csv").read_text()
    assert (sums / "r.csv").read_text().splitlines() == ["rank,id,check,question,raw,verdict,reason,cost,value"]


def test_people_can_read_it(run, sums):
    ran = run("repair", "--responses", "answers.jsonl")
    assert "6 items: 6 certified" in ran.out
    assert "chairs" in ran.out


def test_a_share_can_be_required(run, sums):
    kept = [line for line in (sums / "answers.jsonl").read_text().splitlines() if '"apples"' not in line]
    (sums / "answers.jsonl").write_text("\n".join(kept) + "\n")
    assert run("repair", "--responses", "answers.jsonl", "-q").code == 0
    assert run("repair", "--responses", "answers.jsonl", "-q", "--require-share", "0.8").code == 0
    assert run("repair", "--responses", "answers.jsonl", "-q", "--require-share", "1").code == 1


def test_one_item(run, sums):
    document = json.loads(run("repair", "--responses", "answers.jsonl", "--item", "chairs", "--json").out)
    assert [item["id"] for item in document["items"]] == ["chairs"]
    ran = run("repair", "--responses", "answers.jsonl", "--item", "chair")
    assert ran.code == 2
    assert "chairs" in ran.err


def test_options_of_tables_are_refused_for_a_problem(run, tmp_path):
    (tmp_path / "p.toml").write_text('[problem]\nname = "p"\n[[nodes]]\nid = "a"\n')
    (tmp_path / "r.json").write_text('{"a": 1}')
    ran = run("repair", tmp_path / "p.toml", "--responses", tmp_path / "r.json", "--review", tmp_path / "x.csv")
    assert ran.code == 2
    assert "--review goes with a table" in ran.err


def test_verbs_of_one_problem_take_an_item(run, sums):
    for verb in ("margin", "explain", "certify", "plan"):
        more = ["-o", "c.json"] if verb == "certify" else []
        ran = run(verb, "--item", "chairs", "--json", *more)
        assert ran.code in (0, 1), ran.err
        assert json.loads(ran.out)
        whole = run(verb, *more)
        assert whole.code in (0, 1), whole.err  # the table itself: once per structure


def test_plan_over_a_table(run, sums):
    document = json.loads(run("plan", "--budget", "0.3", "--json").out)
    assert set(document["items"]) == {"pencils", "apples", "stamps", "bottles", "chairs", "books"}
    assert document["cost"] <= 0.3
    assert run("plan", "--budget", "0.3").code == 0
