from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design import InputError, Problem
from rrf_design.reporting import write_report
from rrf_design.reporting.documents import design_of, read


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1]", "not a document"),
        ("{", "can't be read as JSON"),
        ("{}", "has no format"),
        ('{"format": "rrf-plam/1"}', "no page for the format 'rrf-plam/1'; did you mean 'rrf-plan'"),
    ],
)
def test_what_has_no_page_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"x\.json") as caught:
        read(path)
    assert message in str(caught.value)


def test_missing_files_and_empty_directories(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "nothing.json")
    with pytest.raises(InputError, match="without a result document"):
        read(tmp_path)
    with pytest.raises(InputError, match="int has no page"):
        read(3)


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_a_problem_file_is_a_design(tmp_path: Path, problem: Problem, ending: str) -> None:
    path = tmp_path / f"p.{ending}"
    rrf.save(problem, path)
    source = read(path)
    assert source.kind == "problem"
    assert source.problem == problem
    out = write_report(path, tmp_path / "out.html")
    assert "small field" in out.read_text(encoding="utf-8")


def test_a_problem_object_and_an_operator_file(tmp_path: Path, problem: Problem) -> None:
    write_report(problem, tmp_path / "a.html")
    rrf.save_operator(problem.operator(), tmp_path / "b.npz")
    write_report(tmp_path / "b.npz", tmp_path / "b.html")
    assert "isolate" in (tmp_path / "b.html").read_text(encoding="utf-8")


def test_a_document_of_another_problem_is_refused(tmp_path: Path, problem: Problem) -> None:
    document: dict[str, Any] = {"format": "rrf-plan/1", "problem": "0" * 64, "selected": []}
    with pytest.raises(InputError, match="belongs to another problem"):
        read(document, problem=problem)


def test_a_damaged_document_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"format": "rrf-plan", "version": 1, "selected": []}))
    with pytest.raises(InputError, match=r"plan\.json: the rrf-plan document is damaged"):
        write_report(path, tmp_path / "out.html")


def test_a_design_needs_its_problem() -> None:
    with pytest.raises(InputError, match="--problem"):
        design_of(read({"format": "rrf-plan/1", "selected": []}))


def test_a_document_that_carries_its_problem(problem: Problem) -> None:
    from rrf_design.files import to_document

    source = read(json.loads(json.dumps({"format": "rrf-plan/1", "problem": to_document(problem), "selected": ["a3"]})))
    assert design_of(source).selected == ("a3",)
