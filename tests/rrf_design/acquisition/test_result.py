"""The problem as it turned out, and what a run says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fields import ring, scripted

from rrf_design.acquisition import acquire, read_run
from rrf_design.acquisition._loop import Settings
from rrf_design.acquisition.settings import header_of, revision, versions
from rrf_design.models import Roster
from rrf_design.problem import Problem
from rrf_design.verdict import Verdict


def go(tmp_path: Path, script: Any, **options: Any) -> Any:
    return acquire(ring(), scripted(script), store=tmp_path / "r.sqlite", method="witness", **options)


def test_erased_answers_are_told_to_the_repair(tmp_path: Path) -> None:
    run = go(tmp_path, lambda request: "silence" if "question 4" in request.prompt else "7")
    repair = run.items[0].repair
    assert repair["erased"] == {"n4": "parse failure"}
    assert repair["repaired"]["n4"] == pytest.approx([7.0])  # its neighbours determine it
    assert "n4" not in run.items[0].problem.node_by_id


def test_a_certified_item_has_the_margin_that_its_verdict_rests_on(tmp_path: Path) -> None:
    """A check of an unread answer protects the others: then the item's own margin must not say that
    nothing is proven.
    """
    wordings = {"plain": "one", "again": "two", "other": "three"}
    problem = Problem(
        k=1,
        target=0.3,
        nodes=[{"id": name, "prompt": words, "parser": "integer-last"} for name, words in wordings.items()],
        relations=[
            {"id": a + b, "tail": a, "head": b} for a, b in (("plain", "again"), ("plain", "other"), ("again", "other"))
        ],
        anchors=[{"id": "calculator", "node": "plain", "value": 42.0, "cost": 1.0}],
    )
    script = scripted(lambda request: "42" if request.prompt == "three" else "no idea")
    run = acquire(problem, script, store=tmp_path / "r.sqlite", budget=1.0)
    (item,) = run.items
    assert item.verdict is Verdict.CONSISTENT
    assert item.reached
    assert item.gamma_lower == item.repair["gamma_lower"] > 0.3


def test_what_a_limit_left_unasked_is_missing_from_the_margin(tmp_path: Path) -> None:
    run = go(tmp_path, lambda request: "7", calls=2)
    (item,) = run.items
    assert len(item.unasked) == 3
    assert (item.gamma_lower, item.reached, item.verdict) == (item.repair["gamma_lower"], False, Verdict.AMBIGUOUS)


def test_a_run_is_certified_only_with_its_goal(tmp_path: Path) -> None:
    assert go(tmp_path, lambda request: "7").passes
    assert not go(tmp_path, lambda request: "7", budget=0.0).passes


def test_an_unfinished_run_reads_back_as_unfinished(tmp_path: Path) -> None:
    def interrupted(request: Any) -> str:
        if "question 3" in request.prompt:
            raise KeyboardInterrupt
        return "7"

    paused = go(tmp_path, interrupted)
    assert (paused.stopped_because, paused.detail) == ("paused", "interrupted")
    found = read_run("last", store=tmp_path / "r.sqlite")
    assert found.stopped_because == "paused"
    assert found.repaired is None
    assert not found.passes


def test_headers_name_versions_and_hide_nothing_that_matters() -> None:
    found = header_of(
        {"": ring()},
        Roster({"mini": scripted()}),
        Settings(budget=2.0),
        5,
        entries={"mini": {"use": "scripted:x", "slots": 2, "f": len, "api_key": "hush"}},
    )
    assert found["seed"] == 5
    assert found["settings"]["budget"] == 2.0
    kept = found["models"]["mini"]
    assert {key: kept[key] for key in ("use", "slots", "name")} == {
        "use": "scripted:x",
        "slots": 2,
        "name": "scripted",
    }
    assert kept["identity"]["adapter"] == "scripted"
    assert "hush" not in str(found)
    assert "numpy" in versions()
    assert revision() == "" or len(revision()) == 40
