"""The ladder's table on two tiny fields."""

from __future__ import annotations

from pathlib import Path

import rrf_design as rrf
from scenarios.certificate_ladder import SCENARIO, problem
from scenarios.runner import run_scenario


def test_fields() -> None:
    graph = problem("graph", 8, 2, 0)
    assert rrf.dumps(graph) == rrf.dumps(problem("graph", 8, 2, 0))
    assert len(graph.anchors) == 8
    assert problem("dense", 4, 1, 0).operator().shape == (8, 4)


def test_a_small_run_meets_its_conditions(tmp_path: Path) -> None:
    published = run_scenario(SCENARIO, tmp_path, quick=True, changes={"fields": [["graph", 5, 1, 1]], "seconds": 1.0})
    assert not published.violated
