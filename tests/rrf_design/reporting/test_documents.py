from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design import InputError, Problem
from rrf_design._explain import explain
from rrf_design.reporting import write_report
from rrf_design.reporting.documents import read, selected_of


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
    with pytest.raises(InputError, match="before it is explained"):
        write_report(path, tmp_path / "out.html")
    out = write_report(explain(problem), tmp_path / "out.html")
    assert "small field" in out.read_text(encoding="utf-8")


def test_an_operator_file_is_a_problem(tmp_path: Path, problem: Problem) -> None:
    rrf.save_operator(problem.operator(), tmp_path / "b.npz")
    source = read(tmp_path / "b.npz")
    assert source.kind == "problem"
    assert source.problem is not None


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
        selected_of(read({"format": "rrf-plan/1", "selected": []}))


def test_a_document_that_carries_its_problem(problem: Problem) -> None:
    from rrf_design.files import to_document

    source = read(json.loads(json.dumps({"format": "rrf-plan/1", "problem": to_document(problem), "selected": ["a3"]})))
    assert selected_of(source) == ("a3",)


def test_every_page_is_drawn_with_the_solvers_gone(
    problem: Problem, live: dict[str, Any], repaired: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import solvers
    from rrf_design.files import from_document, to_document
    from rrf_design.reporting.designs import comparison_page
    from rrf_design.reporting.documents import render

    explained = explain(problem, ["a3"], by_budget=True).to_json()
    documents = [
        explained,
        rrf.plan(problem, budget=4.0),
        rrf.frontier(problem),
        rrf.certify(problem, ["a3"], epsilon=0.05),
        repaired,
        live,
    ]

    def gone(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("a page asked for a margin")

    monkeypatch.setattr(solvers, "margin", gone)
    monkeypatch.setattr(solvers, "margins", gone)
    anew = from_document(to_document(problem))  # without any margin that was solved before
    with pytest.raises(AssertionError, match="asked for a margin"):
        anew.margin(["a3"])
    for document in documents:
        owner = {"": anew} if document is live else anew
        assert "data-nodes=" in render(read(document, problem=owner))
    assert "A against B" in comparison_page(read(explained, problem=anew), read(explained, problem=anew))
