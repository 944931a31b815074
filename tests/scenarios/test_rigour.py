"""The whole scenario, small: every attack is tried and every condition met."""

from __future__ import annotations

from pathlib import Path

from scenarios.hostile_fields import FAMILIES
from scenarios.rigour import SCENARIO
from scenarios.runner import run_scenario


def test_a_small_run_meets_its_conditions(tmp_path: Path) -> None:
    published = run_scenario(
        SCENARIO,
        tmp_path,
        quick=True,
        changes={
            "fields": 2 * len(FAMILIES),
            "forgeries": 20,
            "bytes": 10,
            "promises": 12,
            "leaves": 20,
            "journals": 4,
            "stores": 0,
            "programs": 2,
            "budgets": 2,
            "repairs": 4,
            "bundles": 1,
            "rivals": 4,
        },
    )
    assert not published.violated
