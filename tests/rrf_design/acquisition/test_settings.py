"""Settings stand in a run's header: checked when they are made, and written down with the rule that ends the run."""

from __future__ import annotations

import math

import pytest

from rrf_design.acquisition.purchases import Doubt
from rrf_design.acquisition.settings import Mode, Settings
from rrf_design.acquisition.stopping import Calls, default, record, restore
from rrf_design.errors import InputError


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"batch": 0}, "batch must be at least 1, not 0"),
        ({"budget": -1.0}, "budget must be zero or more, not -1.0"),
        ({"money": math.nan}, "money must be zero or more, not nan"),
    ],
)
def test_messages(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Settings(**wrong)  # type: ignore[arg-type]


def test_without_a_rule_the_default_ends_the_run() -> None:
    assert record(Settings().rule) == record(default())
    assert record(Settings(stop=Calls(5)).rule) == record(Calls(5))


def test_the_document_says_everything_that_is_fixed() -> None:
    told = Settings(budget=3.0, mode=Mode.TRIAGE, stop=Calls(5), doubt=Doubt.SKIP).document()
    assert told["budget"] == 3.0
    assert (told["mode"], told["doubt"], told["batch"], told["method"]) == ("triage", "skip", 1, "auto")
    assert record(restore(told["rule"])) == record(Calls(5))
    assert Settings().document()["doubt"] == "again"
