from __future__ import annotations

import re
from pathlib import Path

import pytest

from rrf_design.documents import FORMATS, checked, kind_of, sealed
from rrf_design.errors import InputError

PACKAGE = Path(__file__).parents[3] / "rrf_design"


def test_a_document_carries_its_format_and_is_known_by_it() -> None:
    made = sealed("rrf-plan", {"cost": 1.0})
    assert made == {"format": "rrf-plan", "version": FORMATS["rrf-plan"].version, "cost": 1.0}
    assert checked(made, "rrf-plan") == made
    assert kind_of(made) == "rrf-plan"
    assert kind_of([1]) is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "not a plan: the format should be 'rrf-plan'"),
        ({"format": "rrf-run", "version": 1}, "not a plan"),
        ({"format": "rrf-plan", "version": 99}, "plan version 99 is not known here"),
        ({"format": 3}, "not a plan"),
    ],
)
def test_what_is_something_else_is_refused(data: object, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        checked(data, "rrf-plan", what="plan")


def test_nobody_writes_a_format_of_his_own() -> None:
    """Outside of this room (and of the checker, which could be shipped alone) no module spells a document's format."""
    alone = {"certificates/checker", "documents"}
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE).as_posix()
        if not any(place.startswith(room) for room in alone):
            assert not re.search(r'"format": "rrf-', path.read_text(encoding="utf-8")), place
