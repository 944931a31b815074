from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rrf_design.reporting._charts import Bar, Series, bar_chart, line_chart, step_chart

LINE = Series("optimal", [0, 1, 2], [0.0, 0.2, 0.5], [0.0, 0.1, 0.4], [0.0, 0.3, 0.6])


def test_a_series_of_unequal_lengths_is_refused() -> None:
    with pytest.raises(ValueError, match="'x': 1 values for 2 points"):
        Series("x", [0, 1], [1.0])


def test_every_value_and_bound_is_in_the_table() -> None:
    made = line_chart([LINE, Series("greedy", [0.0], [0.7])], x_label="money", y_label="margin γ₁")
    for text in ("0.1", "0.6", "0.7", "optimal", "greedy", "lower bound", "money", "margin γ₁"):
        assert text in made.table
    assert "optimal" in made.summary
    assert made.summary in made.svg


def test_counts_have_whole_ticks() -> None:
    made = line_chart([Series("m", [1, 2], [0.5, 0.25])], x_label="k", y_label="y")
    assert ">1.2<" not in made.svg
    assert ">2<" in made.svg


def test_a_bound_that_is_not_known_is_not_drawn_and_said() -> None:
    nan = float("nan")
    made = line_chart([Series("m", [0, 1], [0.5, 0.25], [nan, 0.2], [nan, nan])], x_label="x", y_label="y")
    assert "nan" not in made.svg
    assert made.table.count("not known") == 3


def test_bounds_are_drawn_where_they_differ() -> None:
    made = line_chart([LINE], x_label="x", y_label="y")
    assert made.svg.count('class="whisker"') == 2
    assert 'class="band"' in made.svg


def test_a_step_holds_its_value_until_the_next_point() -> None:
    path = re.search(r'<path d="M([^"Z]*)" class="line"', step_chart([LINE], x_label="x", y_label="y").svg)
    assert path is not None
    points = [tuple(float(v) for v in p.split(",")) for p in path.group(1).split(" L")]
    assert len(points) == 5
    assert points[1][1] == points[0][1]
    assert points[1][0] == points[2][0]


def test_series_differ_by_marker_and_dash_too() -> None:
    made = line_chart([LINE, Series("b", [0, 1], [1.0, 2.0])], x_label="x", y_label="y", target=0.4)
    assert "stroke-dasharray" in made.svg
    assert "<rect" in made.svg
    assert "target 0.4" in made.svg


def test_infinite_values_are_left_out_of_the_drawing_and_named_in_the_table() -> None:
    made = line_chart([Series("s", [0, 1], [float("inf"), 1.0])], x_label="x", y_label="error bound")
    assert "nan" not in made.svg
    assert "inf" not in made.svg
    assert "unbounded" in made.table


def test_bars_with_bounds_and_hostile_names() -> None:
    made = bar_chart([Bar("<b>", 0.3, 0.2, 0.4, "note"), Bar("x", 1.2)], label="block", value_label="energy")
    assert "<b>" not in made.svg + made.table
    assert "whisker" in made.svg
    assert "note" in made.table


def test_nothing_to_draw_is_still_a_picture() -> None:
    assert "<svg" in line_chart([], x_label="x", y_label="y").svg
    assert "<svg" in bar_chart([], label="x", value_label="y").svg


def test_a_logarithmic_axis() -> None:
    made = line_chart([Series("s", [1, 2, 3], [1e-6, 1e-3, 10.0])], x_label="x", y_label="seconds", log_y=True)
    assert "1e−6" in made.svg


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(allow_nan=False, width=32), min_size=1, max_size=6))
def test_coordinates_are_always_numbers(values: list[float]) -> None:
    made = line_chart([Series("s", list(range(len(values))), values)], x_label="x", y_label="y")
    assert "nan" not in made.svg
    assert not re.search(r'[xy12r]="-?inf', made.svg)
