from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rrf_design.cli.init import template

Run = Callable[..., Any]


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "problem.toml"
    path.write_text(template("code"), encoding="utf-8")
    return path


def test_a_design(run: Run, problem: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    made = run("report", problem, "--select", "all-tests", "-o", out)
    assert made.code == 0
    assert "Wrote" in made.out
    text = out.read_text(encoding="utf-8")
    assert "code with tests" in text
    assert "1 bought" in text


def test_json(run: Run, problem: Path, tmp_path: Path) -> None:
    made = run("report", problem, "-o", tmp_path / "x.html", "--json")
    assert made.json["kind"] == "problem"
    assert made.json["bytes"] == (tmp_path / "x.html").stat().st_size


def test_what_explain_printed_has_the_page_of_the_problem(run: Run, problem: Path, tmp_path: Path) -> None:
    saved, out = tmp_path / "why.json", tmp_path / "x.html"
    saved.write_text(run("explain", problem, "--json").out, encoding="utf-8")
    made = run("report", saved, "--problem", problem, "-o", out, "--json")
    assert made.json["kind"] == "rrf-explanation"
    sentence = "This design is not"
    assert sentence in out.read_text(encoding="utf-8")
    assert run("report", problem, "-o", out).code == 0
    assert sentence in out.read_text(encoding="utf-8")


def test_an_operator_file(run: Run, problem: Path, tmp_path: Path) -> None:
    import rrf_design as rrf

    rrf.save_operator(rrf.load(problem).operator("all"), tmp_path / "b.npz")
    assert run("report", tmp_path / "b.npz", "-o", tmp_path / "x.html", "--json").json["kind"] == "problem"


def test_many_repairs(run: Run, problem: Path, tmp_path: Path) -> None:
    fields = [{"field": name, "responses": {"original": 1}} for name in ("first", "second")]
    path, batch = tmp_path / "p.toml", tmp_path / "batch.json"
    path.write_text('[[nodes]]\nid = "original"\n[[anchors]]\nid = "a"\nnode = "original"\nvalue = 1.0\n')
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, fields)))
    run("repair", path, "--responses", tmp_path / "r.jsonl", "-o", batch)
    made = run("report", batch, "-o", tmp_path / "x.html", "--json")
    assert made.json["kind"] == "rrf-repair-batch"
    text = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "2 fields: 2 checked" in text
    assert ">second<" in text


def test_two_designs_of_one_file(run: Run, problem: Path, tmp_path: Path) -> None:
    made = run("report", problem, "--compare-select", "all-tests", "-o", tmp_path / "x.html", "--json")
    assert made.json["kind"] == "comparison"
    assert "owned only against all-tests" in (tmp_path / "x.html").read_text(encoding="utf-8")


def test_two_files(run: Run, problem: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(template("paraphrase"), encoding="utf-8")
    made = run("report", problem, "--compare", other, "-o", tmp_path / "x.html", "--json")
    assert made.code == 0
    assert "problem against other" in (tmp_path / "x.html").read_text(encoding="utf-8")


def test_a_plan_and_a_certificate_set_side_by_side(run: Run, problem: Path, tmp_path: Path) -> None:
    plan, certificate, out = tmp_path / "plan.json", tmp_path / "certificate.json", tmp_path / "x.html"
    assert run("plan", problem, "--target", 0.5, "-o", plan).code == 0
    assert run("certify", problem, "--select", "first-test", "-o", certificate).code == 1  # its target is missed
    assert "--problem" in run("report", plan, "-o", out).err
    assert run("report", plan, "--problem", problem, "-o", out, "--json").json["kind"] == "rrf-plan"
    made = run("report", plan, "--compare", certificate, "--problem", problem, "-o", out, "--json")
    assert made.json["kind"] == "comparison"
    assert "plan against certificate" in out.read_text(encoding="utf-8")
    assert run("report", plan, "--select", "all-tests", "-o", out).code == 2


def test_a_run_by_its_name(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "no journal of runs" in run("report", "last", "-o", "x.html").err
    Path("p.toml").write_text(template("paraphrase"), encoding="utf-8")
    Path("script.json").write_text('{"rules": [{"pattern": ".*", "text": "42"}]}')
    assert run("acquire", "p.toml", "--model", "scripted:script.json", "--quiet").code == 0
    made = run("report", "last", "-o", "x.html", "--json")
    assert made.json["kind"] == "rrf-run"
    assert "data-nodes=" in Path("x.html").read_text(encoding="utf-8")
    assert run("report", "nonsense", "-o", "x.html").code == 2


def test_wrong_calls_are_one_line(run: Run, problem: Path, tmp_path: Path) -> None:
    for arguments in (
        ("report", tmp_path / "none.json", "-o", tmp_path / "x.html"),
        ("report", problem, "--select", "nonsense", "-o", tmp_path / "x.html"),
        ("report", problem, "-o", tmp_path / "missing" / "x.html"),
        ("report", problem),
    ):
        made = run(*arguments)
        assert made.code == 2
        assert made.err.count("\n") == 1
        assert "Traceback" not in made.err
