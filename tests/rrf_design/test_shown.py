"""Every result of a public function shows itself: in a line, in a notebook, as rows."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design._shown import LONGEST, Shown, ShownRows

HOSTILE = '<script>alert("x")</script>' * 20
WITHOUT = {"Problem", "Dataset", "Repairer", "Operator"}
"""What goes in or is called, not what comes out."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """One result of every public class, with names that would like to be markup."""
    ask = [{"id": "a", "prompt": "{{ text }}?", "parse": "decimal"}]
    ask += [{**ask[0], "id": name, "like": "a"} for name in ("b", "c")]
    check = {"id": "clerk", "of": "a", "by": {"person": "How much?"}, "cost": 1.0}
    recipe = {"data": {"id": "no", "gold": "gold"}, "answer": {"of": "a", "tolerance": 0.5}, "ask": ask}
    recipe["check"] = [check]
    rows = [{"no": f"{HOSTILE}{i}", "text": f"{i}", "gold": i} for i in range(12)]
    data = rrf.dataset(recipe, rows)
    answers = [{"id": row["no"], "node": one["id"], "text": row["text"]} for row in rows for one in ask]
    problem = rrf.Problem(
        name=HOSTILE,
        epsilon=0.1,
        nodes=[{"id": HOSTILE}, {"id": "b"}],
        relations=[{"id": "same", "tail": HOSTILE, "head": "b"}],
        anchors=[{"id": "x", "node": HOSTILE, "value": 7.0, "cost": 1.0}],
    )
    certificate = rrf.certify(problem, "all")
    run = rrf.acquire(data, responses=answers, store=tmp_path_factory.mktemp("runs") / "runs.sqlite")
    table = rrf.repair(data, answers)
    pilot = rrf.pilot(data, _file(tmp_path_factory, answers), labels=5, risk=0.5)
    return {
        "margin": problem.margin("all"),
        "plan": rrf.plan(problem, budget=1.0),
        "frontier": rrf.frontier(problem),
        "portfolio": rrf.portfolio([problem, problem], budget=1.0),
        "certify": certificate,
        "verify": rrf.verify(certificate),
        "repair": rrf.repair(problem, {HOSTILE: 7, "b": 7}, select="all"),
        "explain": rrf.explain(problem),
        "acquire": run,
        "pilot": pilot,
        "measure": rrf.measure(data, answers),
        "estimate": rrf.estimate(data, "embedded"),
        "plan of a table": rrf.plan(data, budget=3.0),
        "certify of a table": rrf.certify(data),
        "repair of a table": table,
        "deliver": rrf.deliver(data, _file(tmp_path_factory, answers), risk=0.5),
    }


def _file(folders: pytest.TempPathFactory, answers: list[dict[str, Any]]) -> Path:
    import json

    path = folders.mktemp("answers") / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in answers))
    return path


def test_all_show_themselves_in_a_line_and_in_a_notebook(results: Mapping[str, Any]) -> None:
    for name, found in results.items():
        line, shown = repr(found), found._repr_html_()
        assert "\n" not in line, name
        assert len(line) <= LONGEST, name
        assert line.startswith(f"{type(found).__name__}("), name
        assert line.endswith(")"), name
        assert len(shown) <= 100_000, name
        assert "<script" not in shown, name


def test_rows_come_as_a_data_frame(results: Mapping[str, Any]) -> None:
    for name, found in results.items():
        if isinstance(found, ShownRows):
            assert len(found.to_frame()) > 0, name
    assert list(results["frontier"].to_frame()["cost"]) == [point.cost for point in results["frontier"].points]
    assert list(results["repair"].to_frame()["node"]) == list(results["repair"].repaired)


@pytest.mark.parametrize("name", ["plan", "frontier", "repair of a table"])
def test_what_has_a_picture_draws_it_on_axes(results: Mapping[str, Any], name: str) -> None:
    pytest.importorskip("matplotlib")
    axes = results[name].plot()
    assert axes.lines or axes.patches
    assert results[name].plot(axes) is axes


def test_no_public_result_is_forgotten(results: Mapping[str, Any]) -> None:
    """Whatever a public function returns is shown and was tried above, audits in their tests."""
    tried = {type(found).__name__ for found in results.values()} | WITHOUT | {"Audit"}
    for name in rrf.__all__:
        function = getattr(rrf, name)
        if not inspect.isfunction(function):
            continue
        for overload in (*typing.get_overloads(function), function):
            told = str(overload.__annotations__.get("return", "")).split("[")[0]
            for one in told.replace(" ", "").split("|"):
                found = getattr(rrf, one, None)
                if inspect.isclass(found):
                    assert one in tried, (name, one)
                    assert one in WITHOUT or hasattr(found, "_repr_html_"), (name, one)


def test_a_table_has_all_its_rows_in_the_frame_and_the_first_in_the_notebook(results: Mapping[str, Any]) -> None:
    table = results["repair of a table"]
    assert len(table.to_frame()) == 12
    assert table._repr_html_().count("<tr>") == 11
    assert "to_frame() has all rows" in table._repr_html_()
    assert table.sentence() in table._repr_html_()


def test_a_class_says_what_it_came_to() -> None:
    class Empty(Shown):
        __slots__ = ()

        def _line(self) -> str:
            return HOSTILE

    assert len(repr(Empty())) == LONGEST
    assert "&lt;script" in Empty()._repr_html_()
