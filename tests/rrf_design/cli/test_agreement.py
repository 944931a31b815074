"""The verbs agree with each other, as the rooms behind them do (tests/rrf_design/test_agreement.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf


def test_the_command_line_says_the_same(run: Any, tmp_path: Path) -> None:
    problem = rrf.Problem(
        k=1,
        target=0.1,
        epsilon=0.1,
        delta=0.5,
        nodes=[{"id": "a"}, {"id": "b"}, {"id": "c"}],
        relations=[{"id": "ab", "tail": "a", "head": "b"}, {"id": "bc", "tail": "b", "head": "c"}],
        anchors=[
            {"id": "x", "node": "a", "value": 1.0, "cost": 5.0},
            {"id": "y", "node": "c", "value": 1.0, "cost": 5.0},
        ],
        tiers=[{"id": "t", "blocks": ["x", "y"], "prices": [5.0, 2.0]}],
    )
    path = tmp_path / "problem.json"
    rrf.save(problem, path)
    plan = run("plan", path, "--json").json
    told = run("explain", path, "--select", ",".join(plan["selected"]), "--json").json
    written = run("certify", path, "--select", ",".join(plan["selected"]), "-o", tmp_path / "c.json", "--json").json
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps({"a": 1.0, "b": 1.0, "c": 9.0}), encoding="utf-8")
    fixed = run("repair", path, "-r", answers, "--select", ",".join(plan["selected"]), "--json").json
    for found in (plan, told, written, fixed):
        assert found["wanted"] == pytest.approx(0.4)
        assert found["epsilon"] == pytest.approx(0.1)
    assert plan["reached"] == told["reached"] == written["reached"]
    assert (fixed["verdict"] == "certified") == plan["reached"]
