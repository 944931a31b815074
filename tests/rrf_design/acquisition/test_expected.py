"""Mode "expected": what is bought first goes by measured shared errors, and nothing else does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.models.scripted import ScriptedModel

SAID = {"first": "42", "again": "42", "cents": "4200", "more": "61"}


def problem() -> rrf.Problem:
    on_sale = [{"id": name, "prompt": name, "parser": "decimal", "cost": 1.0} for name in ("again", "cents", "more")]
    return rrf.Problem(
        k=1,
        target=0.3,
        nodes=[{"id": "first", "prompt": "first", "parser": "decimal"}, *on_sale],
        relations=[
            {"id": "r1", "tail": "first", "head": "again"},
            {"id": "r2", "tail": "first", "head": "cents", "transport": {"scale": 100.0}},
            {"id": "r3", "tail": "first", "head": "more", "offset": 19.0},
        ],
    )


def measured(**same: int) -> dict[str, Any]:
    """Of 100 items 30 were wrong; so many of them in the same way as the first answer."""
    pairs = [{"nodes": ["first", node], "items": 100, "same_wrong": count} for node, count in same.items()]
    marks = dict.fromkeys(SAID, "1" * 30 + "0" * 70)
    content = {"shared_errors": {"pairs": pairs}, "wrong_answers": {"by_node": marks}}
    return rrf.Measurement(content).to_json()


def scripted() -> ScriptedModel:
    return ScriptedModel({"rules": [{"prompt": node, "text": text} for node, text in SAID.items()]})


def bought(tmp_path: Path, **more: Any) -> tuple[list[str], Any]:
    run = rrf.acquire(problem(), scripted(), budget=2.0, store=tmp_path / "runs.sqlite", **more)
    return [purchase.name for purchase in run.purchases if purchase.name != "first"], run


def test_what_breaks_most_shared_errors_comes_first(tmp_path: Path) -> None:
    names, run = bought(tmp_path, mode="expected", measured=measured(again=29, cents=20, more=1))
    assert names[0] == "more"
    names, other = bought(tmp_path, mode="expected", measured=measured(again=29, cents=2, more=20))
    assert names[0] == "cents"
    assert run.header["settings"]["mode"] == "expected"
    assert ["first", "more", 0.01] in run.header["settings"]["shared"]
    # What is said of values follows from what is held, however it was chosen.
    for one in (run, other):
        fixed = rrf.repair(problem(), {node: SAID[node] for node in ("first", *(p.name for p in one.purchases))},
                           select=[p.name for p in one.purchases if p.name != "first"])  # fmt: skip
        assert one.verdict == fixed.verdict
        assert {k: tuple(v) for k, v in one.repaired.items()} == {k: tuple(v) for k, v in fixed.repaired.items()}


def test_a_resumed_run_goes_on_by_what_it_began_with(tmp_path: Path) -> None:
    path = tmp_path / "measured.json"
    path.write_text(json.dumps(measured(again=29, cents=20, more=1)), encoding="utf-8")
    _, run = bought(tmp_path, mode="expected", measured=path, calls=1)
    again = rrf.acquire(model=scripted(), resume=run.run, store=tmp_path / "runs.sqlite", calls=9)
    assert [p.name for p in again.purchases][:2] == ["first", "more"]


def test_the_mode_and_what_it_needs_go_together(tmp_path: Path) -> None:
    with pytest.raises(rrf.InputError, match="mode expected goes with what was measured"):
        bought(tmp_path, mode="expected")
    with pytest.raises(rrf.InputError, match="mode expected goes with what was measured"):
        bought(tmp_path, measured=measured(again=1))
    with pytest.raises(rrf.InputError, match="says nothing of shared errors"):
        bought(tmp_path, mode="expected", measured=rrf.Measurement({"judges": []}).to_json())


@pytest.mark.parametrize(
    "pairs",
    [
        "x",
        [{"items": 3}],
        [{"nodes": ["first"], "items": 9, "same_wrong": 1}],
        [{"nodes": ["first", "again"], "items": 9, "same_wrong": 10}],
        [{"nodes": ["first", "again"], "items": -9, "same_wrong": 1}],
        [{"nodes": ["first", "again"], "items": 9, "same_wrong": float("nan")}],
    ],
)
def test_a_damaged_measurement_is_one_line(tmp_path: Path, pairs: Any) -> None:
    damaged = rrf.Measurement({"shared_errors": {"pairs": pairs}, "wrong_answers": {"by_node": {}}}).to_json()
    with pytest.raises(rrf.InputError, match="its shared errors are no counts of items"):
        bought(tmp_path, mode="expected", measured=damaged)
