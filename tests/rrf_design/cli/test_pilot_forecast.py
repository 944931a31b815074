"""What a forecast prints: nothing is promised that it can't know."""

from __future__ import annotations

from typing import Any

import pytest

from rrf_design.cli.pilot_forecast import describe_forecast


def told(**changes: Any) -> dict[str, Any]:
    size = {"labels": 300, "allowed_wrong": -1, "pilot_cost": 10.0, "least_cost": 20.0, "expected_cost": None}
    found = {
        "population": 1319,
        "risk": 0.01,
        "confidence": 0.95,
        "least_labels": 299,
        "labels": 254,
        "best_risk": 0.0117,
        "last": "person",
        "check_everything": 39570.0,
        "sizes": [{**size, "chance": None}],
        "with_random_checks": None,
        "expected_from": "nothing: bounds only",
        "advice": "a pilot could pay",
        "agreed_wrong": None,
        "pays_up_to": None,
    }
    return {**found, **changes}


def test_without_answers_nothing_is_expected(capsys: pytest.CaptureFixture[str]) -> None:
    describe_forecast(told())
    out = capsys.readouterr().out
    assert out.startswith("Advice: a pilot could pay.")
    assert "?" in out
    assert "too few" in out
    assert "guessed" not in out
    assert "Checking everything costs 39,570.00" in " ".join(out.split())
    describe_forecast(told(last="withheld"))
    assert "Withholding everything counts as 39,570.00" in " ".join(capsys.readouterr().out.split())


def test_a_guess_is_called_one(capsys: pytest.CaptureFixture[str]) -> None:
    entry = {"labels": 300, "allowed_wrong": 0, "pilot_cost": 1.0, "least_cost": 2.0, "expected_cost": 3.0}
    sizes = [{**entry, "chance": 0.25}]
    describe_forecast(told(sizes=sizes, with_random_checks=sizes, agreed_wrong=0.01, pays_up_to=0.002))
    out = " ".join(capsys.readouterr().out.split())
    assert "25 %" in out
    assert "with --random-checks" in out
    assert (
        "1.0 % of what all answers agree on is wrong (--agreed-wrong); as expected, a pilot pays up to a guess of 0.2 %"
        in out
    )
    describe_forecast(told(sizes=sizes, agreed_wrong=0.0))
    assert "would not pay even if none were" in " ".join(capsys.readouterr().out.split())
