from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.responses import prompts
from rrf_design.responses.prompts import Affine, Item, Variant


def arithmetic() -> Item:
    return Item(
        "sum",
        {"x": 12, "y": 7},
        (
            Variant("plain", "What is {{ x }} + {{ y }}?", prompts.original()),
            Variant("reworded", "Add {{ y }} to {{ x }}."),
            Variant("tripled", "What is {{ s }} times ({{ x }} + {{ y }})?", prompts.scale(3)),
            Variant("shifted", "What is {{ x }} + {{ y }} plus {{ t }}?", prompts.shift(19)),
        ),
        system="Return one integer.",
        settings={"max_tokens": 24},
    )


def test_text_and_relation_agree() -> None:
    item = arithmetic()
    texts = [item.prompt(variant) for variant in item.variants]
    assert texts[2:] == ["What is 3 times (12 + 7)?", "What is 12 + 7 plus 19?"]
    relations = item.relations()
    assert relations[0] == {
        "id": "plain-reworded",
        "tail": "plain",
        "head": "reworded",
        "transport": "identity",
        "offset": 0.0,
    }
    assert (relations[1]["transport"], relations[1]["offset"]) == ({"scale": 3.0}, 0.0)
    assert (relations[2]["transport"], relations[2]["offset"]) == ("identity", 19.0)
    assert item.request(item.variants[0]).max_tokens == 24


def test_item_makes_a_problem() -> None:
    item = arithmetic()
    edges = [(tail, head) for tail in range(4) for head in range(tail + 1, 4)]
    problem = rrf.Problem(name="p", k=1, nodes=item.nodes(), relations=item.relations(edges))
    truth = {"plain": 19.0, "reworded": 19.0, "tripled": 57.0, "shifted": 38.0}
    for relation in problem.relations:
        offset = np.atleast_1d(np.array(relation.offset, dtype=float))
        matrix = relation.transport.as_matrix(tail_dim=1, head_dim=1)
        assert matrix @ [truth[relation.tail]] + offset == pytest.approx([truth[relation.head]])
    assert problem.nodes[0].system == "Return one integer."


@pytest.mark.parametrize(
    ("change", "transport", "value"),
    [
        (prompts.permute(2, 0, 1), {"permute": [2, 0, 1]}, [30.0, 10.0, 20.0]),
        (prompts.decompose(0, 2), {"select": [0, 2]}, [10.0, 30.0]),
        (prompts.decompose(), "identity", [10.0, 20.0, 30.0]),
        (prompts.linear([[1, 1, 1]], 5), {"matrix": [[1.0, 1.0, 1.0]]}, [65.0]),
        (prompts.scale(-1), {"scale": -1.0}, [-10.0, -20.0, -30.0]),
        (prompts.rename({"a": "b"}), "identity", [10.0, 20.0, 30.0]),
    ],
)
def test_vector_transformations(change: prompts.Transformation, transport: Any, value: list[float]) -> None:
    affine = change.affine(3)
    assert affine.transport() == transport
    assert affine.apply([10, 20, 30]).tolist() == value
    # The problem file reads the transport as the same map.
    read = rrf.Transport.model_validate(transport).as_matrix(tail_dim=3, head_dim=len(value))
    assert np.array_equal(read, affine.matrix)
    assert change.document()["kind"] == change.kind.value


def test_rename_swaps_whole_words() -> None:
    change = prompts.rename({"a": "b", "b": "a"})
    assert change.reword("f(a, b) adds a to b; abba stays") == "f(b, a) adds b to a; abba stays"


@settings(deadline=None)
@given(
    st.floats(0.125, 8).map(lambda s: round(s * 8) / 8),
    st.integers(-50, 50),
    st.integers(-1000, 1000),
)
def test_the_way_back(s: float, t: int, answer: int) -> None:
    """Canonical coordinates: what the variant's answer says about the item's."""
    for change in (prompts.scale(s), prompts.shift(t)):
        affine = change.affine(1)
        assert affine.inverse().apply(affine.apply([answer])) == pytest.approx([answer])
    both = prompts.shift(t).affine(1).after(prompts.scale(s).affine(1))
    assert both.apply([answer]).tolist() == [s * answer + t]


def test_projections_have_no_way_back() -> None:
    with pytest.raises(InputError, match="no way back"):
        prompts.decompose(0).affine(2).inverse()


def test_affine_is_frozen() -> None:
    source = np.eye(2)
    affine = Affine(source, np.zeros(2))
    with pytest.raises(ValueError, match="read-only"):
        affine.matrix[0, 0] = 5.0
    source[0, 0] = 9.0
    assert affine.matrix[0, 0] == 1.0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: prompts.scale(0), "says nothing"),
        (lambda: prompts.shift(float("inf")), "finite"),
        (lambda: prompts.permute(0, 2), "not an order"),
        (lambda: prompts.decompose(3).affine(2), "leaves the coordinates"),
        (lambda: prompts.linear([[1, 2]]).affine(3), "3 columns"),
        (lambda: Item("i", {}, ()), "variants need names"),
        (lambda: Item("i", {}, (Variant("a", "x"), Variant("a", "y"))), "each one once"),
        (lambda: Item("i", {}, (Variant("a", "x"),), dim=2), "gives 1 numbers where 2"),
    ],
)
def test_bad_declarations(build: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build()
