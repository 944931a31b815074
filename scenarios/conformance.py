"""The conformance suite of scenarios: what the runner and the pages rely on, tried at the quick
size.

from scenarios.conformance import check_scenario

def test_my_scenario(tmp_path):
    check_scenario(MY_SCENARIO, tmp_path)
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from scenarios.kit.report import ConditionStatus
from scenarios.kit.runner import run_scenario
from scenarios.kit.scenario import Scenario

__all__ = ["check_scenario"]


def check_scenario(scenario: Scenario, folder: str | Path) -> None:
    """Run it at its quick size in `folder`, twice; AssertionError names the first promise that is
    broken.
    """
    _require(bool(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", scenario.name)), f"name: {scenario.name!r} is no plain name")
    _require(scenario.question.strip().endswith("?"), "question: should be one, with its question mark")
    keys = [item.key for item in scenario.expected]
    _require(bool(keys), "expected: at least one condition, stated before the run")
    first = run_scenario(scenario, folder, quick=True)
    document = json.loads((Path(folder) / scenario.name / "result.json").read_text(encoding="utf-8"))
    judged = [item["status"] for item in document["expectations"]]
    _require(len(judged) == len(keys), "report: every condition needs a verdict, and nothing else has one")
    _require(
        set(judged) <= {str(status) for status in ConditionStatus},
        f"report: unknown verdicts among {sorted(set(judged))}",
    )
    _require(bool(document["tables"]), "report: figures without a table can't be checked by anybody")
    again = run_scenario(scenario, folder, quick=True, resume=True)
    same = [item["status"] for item in again.document["expectations"]] == judged
    _require(same, "a resumed run, which computes nothing anew, judges differently")
    _require(first.violated == again.violated, "a resumed run violates other conditions")


def _require(holds: bool, words: str) -> None:
    if not holds:
        raise AssertionError(words)
