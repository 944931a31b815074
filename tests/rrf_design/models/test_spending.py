from __future__ import annotations

from rrf_design.models import Price, Request, Usage
from rrf_design.models.prices import CallTally, Spending


def test_expected_and_most() -> None:
    tally = CallTally()
    tally.add(Request("x" * 40, max_tokens=10), always=True, attempts=3)
    tally.add(Request("é" * 40, max_tokens=20), always=False, attempts=3)
    assert tally.expected == Usage(10, 5, 1)
    assert (tally.most.calls, tally.most.output_tokens, tally.most.input_tokens) == (6, 90, 3 * (40 + 256 + 80 + 256))
    assert (tally.largest.input_tokens, tally.largest.output_tokens) == (336, 20)
    found = Spending.of({"m": tally}, {"m": Price(1.0, 2.0)})
    assert (found.money.expected, found.calls.most, found.unknown) == (20.0, 6.0, ())


def test_an_unknown_price_makes_no_sum() -> None:
    found = Spending.of({"m": CallTally(), "own": CallTally()}, {"m": Price(1.0), "own": None}, hosted=("m",))
    assert (found.money.most, found.unknown, found.hosted) == (None, ("own",), ())
    assert "money unknown" in found.sentence()
    assert Spending.of({}, {}).money.most == 0.0
