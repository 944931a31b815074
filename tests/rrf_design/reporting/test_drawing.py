"""Charts, the field drawn, and the field in tables."""

from __future__ import annotations

import html
import json
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rrf_design import Problem, Relation
from rrf_design.reporting import _fieldview as fieldview
from rrf_design.reporting._charts import Bar, Series, bar_chart, line_chart, step_chart
from rrf_design.reporting._fieldview import (
    WORDS,
    FieldView,
    _components,
    _energy_words,
    _field_data,
    block_words,
    carried,
    family_of,
    field_tables,
    node_words,
    transport_words,
)
from rrf_design.reporting._graph import APART, _free_angles, _positions, draw_field

LINE = Series("optimal", [0, 1, 2], [0.0, 0.2, 0.5], [0.0, 0.1, 0.4], [0.0, 0.3, 0.6])


def test_a_series_of_unequal_lengths_is_refused() -> None:
    with pytest.raises(ValueError, match="'x': 1 values for 2 points"):
        Series("x", [0, 1], [1.0])


def test_every_value_is_in_the_table_infinite_ones_only_there() -> None:
    made = line_chart([LINE, Series("greedy", [0.0], [0.7])], x_label="money", y_label="margin γ₁")
    for text in ("0.1", "0.6", "0.7", "optimal", "greedy", "lower bound", "money", "margin γ₁"):
        assert text in made.table
    assert "optimal" in made.summary
    assert made.summary in made.svg
    made = line_chart([Series("s", [0, 1], [float("inf"), 1.0])], x_label="x", y_label="error bound")
    assert "nan" not in made.svg
    assert "inf" not in made.svg
    assert "unbounded" in made.table


def test_counts_have_whole_ticks() -> None:
    made = line_chart([Series("m", [1, 2], [0.5, 0.25])], x_label="k", y_label="y")
    assert ">1.2<" not in made.svg
    assert ">2<" in made.svg


def test_bounds_are_drawn_where_they_are_known_and_differ() -> None:
    nan = float("nan")
    made = line_chart([Series("m", [0, 1], [0.5, 0.25], [nan, 0.2], [nan, nan])], x_label="x", y_label="y")
    assert "nan" not in made.svg
    assert made.table.count("not known") == 3
    made = line_chart([LINE], x_label="x", y_label="y")
    assert made.svg.count('class="whisker"') == 2
    assert 'class="band"' in made.svg


def test_a_step_holds_its_value_until_the_next_point() -> None:
    path = re.search(r'<path d="M([^"Z]*)" class="line"', step_chart(LINE, "y", x_label="x").svg)
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


def test_bars_with_bounds_and_hostile_names() -> None:
    made = bar_chart([Bar("<b>", 0.3, 0.2, 0.4, "note"), Bar("x", 1.2)], label="block", value_label="energy")
    assert "<b>" not in made.svg + made.table
    assert "whisker" in made.svg
    assert "note" in made.table


def test_nothing_to_draw_is_still_a_picture() -> None:
    assert "<svg" in line_chart([], x_label="x", y_label="y").svg
    assert "<svg" in bar_chart([], label="x", value_label="y").svg


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(allow_nan=False, width=32), min_size=1, max_size=6))
def test_coordinates_are_always_numbers(values: list[float]) -> None:
    made = line_chart([Series("s", list(range(len(values))), values)], x_label="x", y_label="y")
    assert "nan" not in made.svg
    assert not re.search(r'[xy12r]="-?inf', made.svg)


def drawn(problem: Problem, select: list[str], **more: object) -> str:
    margin = problem.margin(select)
    return draw_field(FieldView(problem, margin.selected, margin.witness, **more))  # type: ignore[arg-type]


def test_everything_of_a_small_field_is_drawn_and_in_a_table(problem: Problem) -> None:
    made = drawn(problem, [])
    for node in problem.nodes:
        assert f"<title>node {node.id};" in made
        assert made.count(f">{node.id}<") >= 2
    for block in problem.blocks:
        assert f"{block.id}" in made
    assert made.count('data-key="b') == 2 * len(problem.blocks)


def test_the_script_of_drawings_comes_with_drawings_only(problem: Problem) -> None:
    from rrf_design.reporting.pages import page, prose, section

    marker = "stress majorisation"
    assert marker in page("t", [section("s", draw_field(FieldView(problem)))]).lower()
    assert marker not in page("t", [section("s", prose("no drawing"))]).lower()


def test_states_have_their_own_line_and_square(problem: Problem) -> None:
    made = drawn(problem, ["a3"])
    assert 'class="anchor bought"' in made
    assert 'class="anchor sale"' in made
    assert "edge sale" in made
    assert 'class="node unasked"' in made
    assert "node witness" in made


def test_wrong_responses_are_crossed_out(problem: Problem) -> None:
    made = drawn(problem, [], wrong={"tripled"}, remarks={"tripled": "said 7, should be 15"})
    assert 'class="node wrong"' in made
    assert "said 7, should be 15" in made


def test_ten_thousand_nodes_are_summed_up() -> None:
    count = 10_000
    nodes = [{"id": f"n{i}"} for i in range(count)]
    relations = [
        {"id": f"r{i}", "tail": f"n{i - 1}", "head": f"n{i}", "family": f"f{i % 9}"} for i in range(1, count) if i % 50
    ]
    anchors = [{"id": f"a{i}", "node": f"n{i}"} for i in range(0, count, 100)]
    problem = Problem(nodes=nodes, relations=relations, anchors=anchors)
    made = draw_field(FieldView(problem, witness={"n5051": [1.0], "n5052": [-1.0]}))
    assert len(made) < 1_000_000  # most of it is the data from which any node's neighbourhood is drawn
    assert made.count("<") < 3_000
    assert "60 of 10\u202f000 nodes" not in made  # its connected part has 50 nodes
    assert "50 of 10\u202f000 nodes" in made
    assert "200 connected parts; 100 of them hold no anchor" in made
    assert ">parts</th>" in made
    assert "2 other families" in made


def test_a_loop_and_parallel_relations_are_drawn() -> None:
    relations = [{"id": "loop", "tail": "a", "head": "a", "transport": {"scale": -1.0}}]
    relations += [{"id": f"r{i}", "tail": "a", "head": "b"} for i in range(3)]
    made = drawn(Problem(nodes=[{"id": "a"}, {"id": "b"}], relations=relations), [])
    assert made.count('class="arrow"') == 4
    assert (
        len(
            {
                line
                for line in made.split("<")
                if line.startswith("path") and "edge" in line and "transparent" not in line
            }
        )
        >= 4
    )


def test_relations_among_several_nodes_are_drawn_and_told_as_equations() -> None:
    problem = Problem(
        nodes=[{"id": "net"}, {"id": "tax"}, {"id": "total"}],
        relations=[
            {"id": "up", "sum": ["net", "tax"], "head": "total", "offset": 2.0},
            {"id": "down", "difference": ["total", "tax"], "head": "net", "cost": 1.0},
            {"id": "rate", "rows": {"net": [[0.19]], "tax": [[-1.0]]}},
            {"id": "pair", "rows": {"net": [[1.0], [0.0]], "tax": [[1.0], [1.0]]}, "family": "rules"},
        ],
    )
    made = drawn(problem, [])
    for words in (
        "relation up; total = net + tax + 2;",
        "relation down; net = total \u2212 tax; on sale for 1",
        "relation rate; 0.19 net \u2212 tax = 0;",
        "relation pair; rows over net, tax; family rules",
        "net, tax \u2192 total",
        "difference",
    ):
        assert words in made
    assert made.count('data-key="b') == 2 * len(problem.blocks)


@pytest.mark.parametrize("nodes", [1, 2, 3, 30, 100])
def test_nodes_stand_apart_and_inside(nodes: int) -> None:
    rng = np.random.default_rng(nodes)
    edges = [(i, int(rng.integers(0, i))) for i in range(1, nodes) if i % 7]
    placed, (width, height) = _positions(range(nodes), edges)
    xy = np.array([placed[i] for i in range(nodes)])
    assert (xy >= 0).all()
    assert (xy <= [width, height]).all()
    if nodes > 1:
        distances = np.linalg.norm(xy[:, None] - xy[None], axis=2) + 1e9 * np.eye(nodes)
        assert distances.min() > 0.5 * APART


def test_the_same_field_always_looks_the_same() -> None:
    edges = [(i, (i * 3 + 1) % 20) for i in range(20)]
    assert _positions(range(20), edges) == _positions(range(20), edges)


def test_anchors_avoid_relations_and_the_name() -> None:
    placed = {0: (0.0, 0.0), 1: (100.0, 0.0)}
    angles = _free_angles(0, placed, [1], 3)
    assert len({round(a, 3) for a in angles}) == 3
    for angle in angles:
        assert abs(math.remainder(angle, 2 * math.pi)) > 0.3
        assert abs(math.remainder(angle - math.pi / 2, 2 * math.pi)) > 0.3


def test_states_of_blocks(problem: Problem) -> None:
    view = FieldView(problem, ["a3"])
    states = {b.id: view.block_status(b) for b in problem.blocks}
    assert states["r01"] == "owned"
    assert states["a3"] == "bought"
    assert states["r12"] == "sale"


def test_states_of_blocks_and_blind_ones() -> None:
    field = Problem(nodes=[{"id": "a"}, {"id": "b", "cost": 1.0}], relations=[{"id": "r", "tail": "a", "head": "b"}])
    assert FieldView(field).block_status(field.relations[0]) == "waiting"
    assert FieldView(field, ["b"]).block_status(field.relations[0]) == "owned"
    assert _energy_words(0.0) == "blind"
    assert _energy_words(0.25) == "0.25"


def test_energies_are_those_of_the_operator(problem: Problem) -> None:
    margin = problem.margin(["a3"])
    view = FieldView(problem, margin.selected, margin.witness)
    for name, energy in margin.seen_by().items():
        assert view.energies[name] == pytest.approx(energy, abs=1e-12)
    assert set(view.energies) == {b.id for b in problem.blocks}
    assert sum(view.shares.values()) == pytest.approx(1.0)


def test_shares_are_measured_in_the_fiber_metrics() -> None:
    field = Problem(
        nodes=[{"id": "a", "dim": 2, "metric": [[4.0, 1.0], [1.0, 9.0]]}, {"id": "b", "dim": 2, "metric": 25.0}],
        relations=[{"id": "r", "tail": "a", "head": "b"}],
        anchors=[{"id": "x", "node": "a", "rows": [[1.0, 0.5]]}],
    )
    margin = field.margin()
    shares = FieldView(field, margin.selected, margin.witness).shares
    assert shares == pytest.approx(margin.shares, abs=1e-12)
    plain = {name: float(np.square(part).sum()) for name, part in margin.witness.items()}
    assert shares["b"] != pytest.approx(plain["b"] / sum(plain.values()), abs=0.05)


def test_a_large_field_is_cut_to_the_neighbourhood_of_the_witness() -> None:
    nodes = [{"id": f"n{i}"} for i in range(500)]
    relations = [{"id": f"r{i}", "tail": f"n{i}", "head": f"n{i + 1}"} for i in range(499)]
    view = FieldView(Problem(nodes=nodes, relations=relations), witness={"n250": [1.0]})
    assert len(view.drawn_nodes) == 60
    assert {"n249", "n250", "n251", "n230"} <= set(view.drawn_nodes)
    assert not view.whole


def test_components_without_an_anchor_come_first() -> None:
    field = Problem(
        nodes=[{"id": x} for x in "abcde"],
        relations=[{"id": "ab", "tail": "a", "head": "b"}, {"id": "de", "tail": "d", "head": "e", "cost": 1.0}],
        anchors=[{"id": "A", "node": "a"}],
    )
    assert [(c.nodes, c.anchors, c.example) for c in _components(FieldView(field))] == [
        (1, 0, "c"),
        (1, 0, "d"),
        (1, 0, "e"),
        (2, 1, "a"),
    ]
    assert [c.nodes for c in _components(FieldView(field, ["de"]))] == [1, 2, 2]


@pytest.mark.parametrize(
    ("transport", "text"),
    [
        ("identity", "identity"),
        ({"scale": 3.0}, "×3"),
        ({"matrix": [[1.0, 0.0]]}, "1×2 matrix"),
        ({"permute": [1, 0]}, "permute 1 0"),
        ({"select": [0]}, "select 0"),
    ],
)
def test_transports_in_words(transport: object, text: str) -> None:
    relation = Relation.model_validate({"id": "r", "tail": "a", "head": "b", "transport": transport})
    assert transport_words(relation) == text
    assert family_of(relation) == text


def test_no_witness_no_energies(problem: Problem) -> None:
    assert FieldView(problem).energies == {}
    assert FieldView(problem, witness={"original": np.zeros(1).tolist()}).shares == {}


def test_everything_about_a_node_and_a_block(problem: Problem) -> None:
    view = FieldView(problem, ["a3"], {"original": [0.6], "tripled": [0.8]}, {"tripled"}, {"tripled": "off by 2"})
    words = node_words(view, "tripled")
    for part in ("dimension 1", "asked", "64.0% of the witness, along (0.8)", "its response was wrong", "off by 2"):
        assert part in words
    assert "not asked yet, costs 1" in node_words(view, "unasked")
    assert "What is 2 + 3?" in node_words(view, "original")
    assert block_words(view, problem.block_by_id["r02"]).startswith(
        "relation r02; tripled = ×3 of original; owned; energy"
    )
    assert "bought for 2" in block_words(view, problem.block_by_id["a3"])


def test_rows_are_tied_to_the_drawing(problem: Problem) -> None:
    index = {node.id: i for i, node in enumerate(problem.nodes)}
    made = field_tables(FieldView(problem), index)
    assert made.count('data-key="n') == len(problem.nodes)
    assert made.count('data-key="b') == len(problem.blocks)


HOSTILE = "</pre><script>window.hacked = 1</script>\u202e"


def chain(count: int, *, name: str = "n") -> FieldView:
    nodes = [{"id": f"{name}{i}", **({"cost": 2.0} if i == 3 else {})} for i in range(count)]
    relations = [
        {"id": f"r{i}", "tail": f"{name}{i - 1}", "head": f"{name}{i}", "family": "same"} for i in range(1, count)
    ]
    anchors = [{"id": "a", "node": f"{name}5", "cost": 1.5}]
    problem = Problem(nodes=nodes, relations=relations, anchors=anchors)
    return FieldView(problem, ["a"], {f"{name}5": [0.6], f"{name}6": [-0.8]}, {f"{name}6"}, {f"{name}6": "off by 2"})


def test_the_data_says_what_the_tables_say() -> None:
    view = chain(9)
    data = _field_data(view)
    assert data["nodes"] == [[i, f"n{i}"] for i in range(9)]
    assert data["costs"] == {3: 2.0}
    assert data["shares"] == pytest.approx({5: 0.36, 6: 0.64})
    assert data["wrong"] == [6]
    assert data["remarks"] == {"n6": "off by 2"}
    anchor = next(block for block in data["blocks"] if block[3] == -1)
    assert data["words"][anchor[1]] == "a"
    assert anchor[2] == [5]
    assert list(WORDS)[anchor[5]] == "bought"
    assert data["energies"][anchor[0]] == pytest.approx(view.energies["a"])
    waiting = next(block for block in data["blocks"] if 3 in block[2])
    assert list(WORDS)[waiting[5]] == "waiting"


def test_what_is_written_is_what_is_read_and_holds_no_markup() -> None:
    made = carried(chain(9, name=HOSTILE))
    assert made.count("<") == 2
    text = re.sub(r"^<pre[^>]*>|</pre>$", "", made)
    read: dict[str, Any] = json.loads(html.unescape(text))
    assert read["nodes"][0][1] == HOSTILE.replace("\u202e", "\\u202e") + "0"


def test_beyond_a_size_only_the_nearest_are_carried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fieldview, "CARRIED", 20)
    data = _field_data(chain(200))
    assert len(data["nodes"]) == 20
    assert {5, 6} <= {i for i, _ in data["nodes"]}
    assert data["all"] == 200
    inside = {i for i, _ in data["nodes"]}
    assert all(inside.issuperset(block[2]) for block in data["blocks"])
