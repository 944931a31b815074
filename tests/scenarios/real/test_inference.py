from __future__ import annotations

from scenarios.real.inference import margins


def test_margins_that_differ_by_rounding_are_tied() -> None:
    rows = [{"gamma_1": value} for value in (1.414213562373095, 1.4142135623730951, 0.0, 1.4142)]
    found = margins(rows)
    assert found[0] == found[1]
    assert len(set(found)) == 3
