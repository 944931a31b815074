"""Nothing false is said of fields that keep to their premise, and the judge sees it where something is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.verdict import Verdict
from scenarios.played_repairs import METHODS, repair_case


@pytest.mark.parametrize("seed", range(40))
def test_nothing_false_is_said_of_a_field_that_keeps_to_its_premise(seed: int) -> None:
    assert repair_case(seed)["faults"] == []


def test_the_judge_sees_a_false_certificate_and_a_false_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, seen = rrf.repair, set()

    def lying(verdict: Verdict) -> Any:
        def repair(problem: Any, responses: Any, **options: Any) -> Any:
            found = honest(problem, responses, **options)
            moved = {name: value and tuple(x + 100.0 for x in value) for name, value in found.repaired.items()}
            bounds = dict.fromkeys(problem.node_by_id, 0.0)
            return replace(found, verdict=verdict, repaired=moved, error_bound=0.0, bounds=bounds)

        return repair

    for verdict in (Verdict.CERTIFIED, Verdict.CONTRADICTED):
        monkeypatch.setattr(rrf, "repair", lying(verdict))
        for seed in range(0, 8, len(METHODS)):
            seen.add(verdict)
            assert repair_case(seed)["faults"]
    assert len(seen) == 2
