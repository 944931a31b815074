"""Every result of a public function shows itself: in a line, in a notebook, as rows."""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design._shown import LONGEST, Shown, ShownRows
from rrf_design.testing import assert_share

HOSTILE = '<script>alert("x")</script>' * 20
WITHOUT = {"Problem", "Dataset", "Repairer", "Operator"}
"""What goes in or is called, not what comes out; its line is tried by itself."""


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
        "margin of a matrix": rrf.margin([[1.0, -1.0, 0.0], [0.0, 1.0, 1.0]], [1, 1, 1], k=1),
        "component criterion": rrf.component_criterion(problem),
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
        "audit": rrf.audit(_delivered(tmp_path_factory), gold="gold", id_column="no", labels=9),
        "audit that waits": rrf.audit(_delivered(tmp_path_factory), data, truths={}, labels=9),
        "pilot that waits": rrf.pilot(data, _file(tmp_path_factory, answers), labels=5, risk=0.5, truths={}),
    }


def _file(folders: pytest.TempPathFactory, answers: list[dict[str, Any]]) -> Path:
    path = folders.mktemp("answers") / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in answers))
    return path


def _delivered(folders: pytest.TempPathFactory) -> Path:
    path = folders.mktemp("delivered") / "delivered.csv"
    path.write_text("no,gold,answer\n" + "".join(f"{i},{i},{i if i else 7}\n" for i in range(12)))
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


ROWS_OF = {
    "margin": lambda found: [{"node": name, "direction": part} for name, part in found["witness"].items()],
    "component criterion": lambda found: found["components"],
    "plan": lambda found: found["trajectory"],
    "frontier": lambda found: found["points"],
    "portfolio": lambda found: found["items"],
    "repair": lambda found: [{"node": name, "repaired": value} for name, value in found["repaired"].items()],
    "explain": lambda found: [{"node": name, "share": share} for name, share in found["shares"].items()],
    "acquire": lambda found: found["items"],
    "plan of a table": lambda found: [{"id": name, **share} for name, share in found["items"].items()],
    "certify of a table": lambda found: [{"item": one["item"], "items": one["items"]} for one in found["structures"]],
    "repair of a table": lambda found: found["items"],
}
"""Where its rows stand in the JSON of a result; what was handed over tells its sentence there."""


def test_frames_hold_the_rows_of_the_json(results: Mapping[str, Any]) -> None:
    """What both name is the same, row by row."""
    assert {name for name, found in results.items() if isinstance(found, ShownRows)} - {"deliver"} == ROWS_OF.keys()
    for name, rows_of in ROWS_OF.items():
        rows = rows_of(json.loads(json.dumps(results[name].to_json())))
        frame = json.loads(json.dumps(results[name].to_frame().to_dict("records")))
        assert len(frame) == len(rows) > 0, name
        for shown, row in zip(frame, rows, strict=True):
            both = shown.keys() & row.keys()
            assert both, name
            assert {key: shown[key] for key in both} == {key: row[key] for key in both}, name


def test_what_is_no_list_of_rows_comes_back_from_its_json(results: Mapping[str, Any]) -> None:
    tried = set()
    for name, found in results.items():
        if isinstance(found, ShownRows) or name == "margin of a matrix":
            continue
        told = json.loads(json.dumps(found.to_json()))
        again = type(found).from_json(told)
        assert json.loads(json.dumps(again.to_json())) == told, name
        assert (repr(again), again._repr_html_()) == (repr(found), found._repr_html_()), name
        tried.add(type(found).__name__)
    assert tried == {"Audit", "Certificate", "Estimate", "Measurement", "Pilot", "Verification"}


def test_a_certificate_that_was_read_is_one(results: Mapping[str, Any], tmp_path: Path) -> None:
    found = results["certify"]
    assert rrf.verify(rrf.Certificate.from_json(found.to_json())).valid
    saved = found.save(tmp_path / "c.json")
    assert rrf.Certificate.from_json(saved.to_json()).document == found.document
    assert rrf.Certificate.from_json(json.loads((tmp_path / "c.json").read_text())).gamma_lower == found.gamma_lower
    with pytest.raises(rrf.InputError, match="not a certificate"):
        rrf.Certificate.from_json({"format": "rrf-plan"})


PICTURES = [
    "margin",
    "plan",
    "frontier",
    "portfolio",
    "explain",
    "certify",
    "acquire",
    "repair of a table",
    "deliver",
    "pilot",
    "audit",
]


@pytest.mark.parametrize("name", PICTURES)
def test_what_has_a_picture_draws_it_on_axes(results: Mapping[str, Any], name: str) -> None:
    pytest.importorskip("matplotlib")
    axes = results[name].plot()
    assert axes.lines or axes.patches
    assert results[name].plot(axes) is axes


def test_no_public_result_is_forgotten(results: Mapping[str, Any]) -> None:
    """Whatever a public function returns is shown and was tried above."""
    tried = {type(found).__name__ for found in results.values()} | WITHOUT
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


def test_what_goes_in_has_a_line_as_well() -> None:
    import networkx as nx

    problem = rrf.from_graph(nx.path_graph(2000), anchors=[0])
    data = rrf.dataset({"answer": {"of": "a"}, "ask": [{"id": "a", "prompt": "{{ text }}?"}]}, [{"text": HOSTILE}] * 99)
    for shown in (problem, problem.operator(), data):
        assert "\n" not in repr(shown)
        assert len(repr(shown)) <= LONGEST
        assert len(shown._repr_html_()) < 1000
    assert str(problem) == repr(problem) == "Problem('unnamed', k = 1: 2000 nodes, 1999 relations, 1 anchors)"


def test_a_large_result_is_shown_in_a_small_page() -> None:
    """A line and a cell that would name 10⁵ items are cut."""
    names = tuple(f'"{i}"' * 20 for i in range(100_000))

    class Large(ShownRows):
        __slots__ = ()

        def _line(self) -> str:
            return ", ".join(names)

        def _records(self) -> typing.Iterator[dict[str, Any]]:
            return ({f"column {c}": names if c == 1 else name for c in range(7)} for name in names)

    assert len(Large()._repr_html_()) <= 100_000
    assert len(repr(Large())) <= LONGEST


def test_a_table_of_many_items_is_shown_in_a_small_page(results: Mapping[str, Any]) -> None:
    few = results["repair of a table"]
    table = rrf.Delivery(few.dataset, [*few.rows()] * 10_000, verdicts={"ambiguous": 120_000})
    assert len(table) == 120_000
    assert len(table._repr_html_()) <= 100_000
    assert len(repr(table)) <= LONGEST


def test_a_share_of_rows_that_may_be_believed_can_be_asserted(results: Mapping[str, Any]) -> None:
    for name in ("repair of a table", "acquire", "deliver", "repair"):
        assert_share(results[name], believed="100%")
    ask = [{"id": name, "prompt": "{{ text }}?", "parse": "decimal"} for name in "abc"]
    asks = [ask[0], *({**one, "like": "a"} for one in ask[1:])]
    data = rrf.dataset({"answer": {"of": "a", "tolerance": 0.5}, "ask": asks}, [{"text": "?"}] * 20)
    said = [{"id": i + 1, "node": name, "value": 3} for i in range(11) for name in "abc"]
    half = rrf.repair(data, said)
    assert_share(half, believed=0.55)
    with pytest.raises(AssertionError, match=r"^11 of 20 rows \(55 %\) are .*, wanted 56 %: '12' is .*, and 4 more$"):
        assert_share(half, believed="56%")
    with pytest.raises(rrf.InputError, match="between 0 and 1"):
        assert_share(half, believed=55)


def test_the_example_of_assert_share_runs() -> None:
    import doctest

    (found,) = doctest.DocTestFinder(recurse=False).find(assert_share, "assert_share", globs={})
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(found).failed == 0
