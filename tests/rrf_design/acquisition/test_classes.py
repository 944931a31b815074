"""Classes heard in a live run: a place for each in the order heard, the same after a resumption."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.acquisition.classes import HeardClasses, class_of, open_nodes, with_room
from rrf_design.responses import parsers

LABEL, DECIMAL = parsers.get("label"), parsers.get("decimal")


def problem(*names: Any, checks: int = 0) -> rrf.Problem:
    nodes = [{"id": f"n{i}", "prompt": "?", "parser": parser} for i, parser in enumerate(names)]
    relations = [{"id": f"r{i}", "tail": "n0", "head": f"n{i}"} for i in range(1, len(names))]
    anchors = [{"id": f"a{i}", "node": "n0", "cost": 1.0, "source": {"label": "x"}} for i in range(checks)]
    return rrf.Problem(k=1, nodes=nodes, relations=relations, anchors=anchors)


def test_places_are_given_in_the_order_heard() -> None:
    heard = HeardClasses(3)
    assert heard.vector("b") == (1.0, 0.0, 0.0)
    assert heard.vector("a") == (0.0, 1.0, 0.0)
    assert heard.vector("b") == (1.0, 0.0, 0.0)
    assert heard.vector("c") == (0.0, 0.0, 1.0)
    with pytest.raises(StopIteration):  # room is for as many as there can be: a fourth is a fault of the caller
        heard.vector("d")


def entry(text: str | None, value: tuple[float, ...] | None, *, ok: bool = True) -> Any:
    return SimpleNamespace(text=text, value=value, ok=ok)


def test_a_resumed_run_goes_on_with_the_same_places() -> None:
    heard = HeardClasses(3)
    settled = {
        "n0": entry("cat", (0.0, 1.0, 0.0)),
        "a0": entry("dog", (1.0, 0.0, 0.0)),
        "n1": entry("bird", None, ok=False),
        "n2": entry("fish", (1.0, 0.0)),  # another number of places: of an older run
    }
    heard.recall(SimpleNamespace(settled=settled), {"n0": LABEL, "n2": LABEL})  # type: ignore[arg-type]
    assert heard.vector("cat") == (0.0, 1.0, 0.0)
    assert heard.vector("dog") == (1.0, 0.0, 0.0)
    assert heard.vector("bird") == (0.0, 0.0, 1.0)


def test_the_class_of_a_text_is_its_parser_s_and_a_check_s_own_word() -> None:
    assert class_of("sport", LABEL) == LABEL.parse("sport").label
    assert class_of("Any Words", None) == "Any Words"
    assert class_of("7", DECIMAL) is None


@pytest.mark.parametrize(
    ("parser", "is_open"),
    [
        ("label", True),
        ("literal", True),
        ("decimal", False),
        ("json", False),  # it needs options: said where it is used
        ("nobody-knows-it", False),
        ({"name": "json", "field": "total"}, False),
        ({"name": "yes-no", "count": 2}, False),
        ({"name": "label"}, True),
    ],
)
def test_which_nodes_answer_in_classes(parser: Any, is_open: bool) -> None:
    assert open_nodes(problem(parser, "decimal")) == (frozenset({"n0"}) if is_open else frozenset())


def test_there_is_room_for_every_class_that_can_be_named() -> None:
    wide = with_room(problem("label", "label", "label", checks=2))
    assert {node.dim for node in wide.nodes} == {5}
    assert {node.dim for node in with_room(problem("label")).nodes} == {2}
    numbers = problem("decimal", "decimal")
    assert with_room(numbers) is numbers
