"""The drawing of a field: what is drawn and said of it, and where its nodes stand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rrf_design import Problem
from rrf_design.reporting._fieldview import FieldView
from rrf_design.reporting._graph import APART, _free_angles, _positions, draw_field


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
    from rrf_design.reporting import page, prose, section

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
