from __future__ import annotations

import pytest

from rrf_design.amounts import digits, rounded_down, rounded_up


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (11879.56, "11879.56"),
        (0.1 + 0.2, "0.3"),
        (42.0, "42"),
        (-0.005, "-0.005"),
        (123456789.125, "123456789.125"),
        (9876543210.99, "9876543210.99"),
    ],
)
def test_amounts_keep_their_digits_and_no_others(value: float, shown: str) -> None:
    assert digits(value) == shown


@pytest.mark.parametrize("value", [0.7653668646536427, 1 / 3, -2.5e-7, 123456.789, 0.1, 5e-324, 0.0])
@pytest.mark.parametrize("many", [1, 4, 7])
def test_bounds_are_cut_to_the_side_on_which_they_hold(value: float, many: int) -> None:
    below, above = rounded_down(value, many), rounded_up(value, many)
    assert below <= value <= above
    for shown in (below, above):
        assert float(f"{shown:.{many}g}") == shown
    assert above - below <= abs(value) * 10.0 ** (1 - many) * 1.01
