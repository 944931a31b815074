"""One idea, one place: formulas and orders that once stood in several rooms stand in one, and stay there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[1]

OWNERS = {
    "twice a radius over a margin": (r"2(\.0)? \* [\w.]*(epsilon|total|tolerance)[\w.]* / ", {"noise.py", "goal.py"}),
    "checks by their price": (r"key=lambda (anchor|a|check): .*\.cost", {"decisive.py"}),
    "what a unit of money decides": (r"1\.0 / max\([\w.\[\]]*cost", {"decisive.py"}),
    "the order of disputes": (r"\(Verdict\.CONTRADICTED, Verdict\.AMBIGUOUS", {"verdict.py"}),
    "who is a person": (r'partition\(":"\)\[0\]\.strip\(\) == "person"', {"decisive.py"}),
    "differences that are rounding": (r"max\(1\.0, float\(np\.abs\(\w+\.response", {"repairing/contract.py"}),
}


@pytest.mark.parametrize("idea", OWNERS)
def test_an_idea_stands_in_one_place(idea: str) -> None:
    pattern, owners = OWNERS[idea]
    room = HOUSE / "rrf_design"
    files = [path for path in sorted(room.rglob("*.py")) if "checker" not in path.parts]  # it shares nothing: it checks
    found = {str(path.relative_to(room)) for path in files if re.search(pattern, path.read_text(encoding="utf-8"))}
    assert found == owners
