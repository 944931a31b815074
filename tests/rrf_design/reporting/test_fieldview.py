from __future__ import annotations

import numpy as np
import pytest

from rrf_design import Problem, Relation
from rrf_design.reporting.fieldview import FieldView, components, family_of, transport_words


def test_states_of_blocks(problem: Problem) -> None:
    view = FieldView(problem, ["a3"])
    states = {b.id: view.block_status(b) for b in problem.blocks}
    assert states["r01"] == "owned"
    assert states["a3"] == "bought"
    assert states["r12"] == "sale"


def test_an_owned_block_waits_for_a_node_that_is_not_asked() -> None:
    field = Problem(nodes=[{"id": "a"}, {"id": "b", "cost": 1.0}], relations=[{"id": "r", "tail": "a", "head": "b"}])
    assert FieldView(field).block_status(field.relations[0]) == "waiting"
    assert FieldView(field, ["b"]).block_status(field.relations[0]) == "owned"


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
    assert [(c.nodes, c.anchors, c.example) for c in components(FieldView(field))] == [
        (1, 0, "c"),
        (1, 0, "d"),
        (1, 0, "e"),
        (2, 1, "a"),
    ]
    assert [c.nodes for c in components(FieldView(field, ["de"]))] == [1, 2, 2]


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
