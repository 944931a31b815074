"""What a drawing shows: the view, its tables and words, and the data of a large field."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import numpy as np
import pytest

from rrf_design import Problem, Relation
from rrf_design.reporting import _fieldview as fieldview
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


def test_a_block_that_sees_nothing_is_called_blind() -> None:
    assert _energy_words(0.0) == "blind"
    assert _energy_words(0.25) == "0.25"


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
