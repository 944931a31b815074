from __future__ import annotations

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
