"""What a pilot prints: figures that add up, one and many, and nothing about a person where there is none."""

from __future__ import annotations

from typing import Any

import pytest

from rrf_design.cli.pilot_result import describe_pilot, expected, in_figures
from rrf_design.promises import PilotSettings


@pytest.fixture
def document(make_world: Any) -> dict[str, Any]:
    found: dict[str, Any] = make_world(items=300, wrong=0.03).document(PilotSettings(100, 0.1))
    return found


def test_the_first_screen_is_for_whoever_decides(document: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    describe_pilot(document, quiet=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == document["sentence"]
    cost = 200 * document["cost_per_item"]
    assert f"The other 200 items are expected to cost about {cost:,.2f}, against 6,000.00 for checking all." in lines
    describe_pilot(document, budget=1.0)
    out = capsys.readouterr().out
    assert "more than the budget of 1.00" in out
    assert "with confidence 95 %):" in out


def test_what_is_checked_at_random_is_not_delivered_without_a_person(document: dict[str, Any]) -> None:
    ladder = {**document["ladder"], "random_checks": 0.5}
    said = in_figures({**document, "ladder": ladder, "delivered_share": 0.8, "cost_per_item": 17.5})
    assert said.startswith("On the pilot it delivers 40.0 % without a person, for 17.5 an item; a check by a person")


def test_nobody_is_asked_where_the_rest_is_withheld(document: dict[str, Any]) -> None:
    withheld = {**document, "ladder": {**document["ladder"], "last": "withheld"}}
    assert "person" not in in_figures(withheld)
    assert expected(withheld, None) == []
    everything = {**document, "ladder": None, "cost_per_item": 30.0}
    assert in_figures(everything) == "A person checks every item, for 30 each."
    assert expected(everything, None) == []


def test_one_is_not_many(document: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    measured = {**document["measured"], "disputed_gold": ["i7"]}
    leak = {"column": "c", "how": "as it is", "items": ["i1"]}
    describe_pilot({**document, "measured": measured, "twins": ["i9"], "leaks": [leak]})
    told = capsys.readouterr()
    assert "1 truth is disputed by strong agreement of the answers; look again at i7" in told.out
    assert "1 item outside the pilot asks what" in told.err
    assert "the truth of 1 item of the pilot" in told.err
