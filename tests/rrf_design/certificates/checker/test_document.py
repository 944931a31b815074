"""Strict reading: what is not exactly a certificate is refused before anything is computed.

The pilot section re-proven: the draw, the count, the bound and the sentence, and every forgery
of one of them.
"""

from __future__ import annotations

import copy
import hashlib
from fractions import Fraction
from math import comb
from typing import Any

import pytest

from rrf_design.certificates.issue import certify
from rrf_design.checker.document import SECTIONS, check_form, content_digest, parse
from rrf_design.checker.premises import check_pilot, failures, rate_above, sentence
from rrf_design.checker.promise_words import percent_above
from rrf_design.checker.tails import is_drawn, refutes
from rrf_design.errors import Refused

from ..conftest import triangle


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return certify(triangle(), ["fix"]).document


def sealed(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "digest": content_digest(document)}


def test_a_fresh_document_passes(document: dict[str, Any]) -> None:
    check_form(document)


@pytest.mark.parametrize("key", sorted(set(SECTIONS) - {"digest"}))
def test_a_missing_section_is_refused(document: dict[str, Any], key: str) -> None:
    with pytest.raises(Refused):
        check_form(sealed({name: value for name, value in document.items() if name != key}))


def test_a_document_without_digest_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="digest"):
        check_form({name: value for name, value in document.items() if name != "digest"})


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "other", "not a certificate"),
        (("version",), 1, "version 1 is unknown"),
        (("version",), 1.0, "version 1.0 is unknown"),
        (("extra",), 1, "extra: unknown"),
        (("k",), "1", "wrong type"),
        (("k",), True, "wrong type"),
        (("margin", "lower"), "0.9", "wrong type"),
        (("margin", "rung"), "dominance", "does not go with"),
        (("margin", "proof"), {"kind": "guess"}, "does not go with"),
        (("margin", "proof"), {"kind": "enumeration", "more": 1}, "more: unknown"),
        (("witness", "direction"), [[0.5], "x"], "must be a list"),
        (("audit",), [], "must be an object"),
        (("assumptions",), ["a", "b", 1], r"assumptions\[2\]: 1 has the wrong type"),
        (("witness", "direction"), [[0.5, True]], r"direction\[0\]\[1\]: True has the wrong type"),
        (("witness", "direction"), [[0.5, 2e300]], r"direction\[0\]\[1\]: must be a number of at most"),
        (("witness", "direction"), [[0.5, 2**60]], r"direction\[0\]\[1\]: must be a number of at most"),
    ],
)
def test_faults_are_named(document: dict[str, Any], path: tuple[str, ...], value: Any, message: str) -> None:
    changed = copy.deepcopy(document)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(Refused, match=message):
        check_form(sealed(changed))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a JSON document"),
        ("[1]", "top level"),
        ('{"a": NaN}', "NaN"),
        ('{"a": 1, "a": 2}', "twice"),
        ("[" * 100_000, "not a JSON document"),
    ],
)
def test_texts_that_are_no_documents(text: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        parse(text)


NODES = ("a", "b", "c")
SIZE, COUNT = 50, 8


def redrawn(size: int, seed: int, population: str, count: int) -> list[int]:
    """The slow and obvious way: all places in their random order."""
    return sorted(range(size), key=lambda place: hashlib.sha256(f"{population}:{seed}:{place}".encode()).digest())[
        :count
    ]


def section(**changes: Any) -> dict[str, Any]:
    wrong = {"a": "10010000", "b": "10000000", "c": "00010001"}
    found: dict[str, Any] = {
        "table": "t.csv",
        "size": SIZE,
        "population": "digest",
        "recipe": "r",
        "seed": 3,
        "places": redrawn(SIZE, 3, "digest", COUNT),
        "wrong": wrong,
        "more_than_k": failures(wrong, [[name] for name in NODES], 1, COUNT),
        "confidence": 0.9,
        **changes,
    }
    found.setdefault("bound", rate_above(COUNT, found["more_than_k"], 0.9))
    found.setdefault("sentence", sentence(found, 1, [[name] for name in NODES]))
    return found


def test_an_honest_section_is_recounted() -> None:
    assert section()["more_than_k"] == 2
    assert "2 of 8 drawn items recounted" in check_pilot(section(), NODES, None, 1)


def test_a_weaker_bound_may_be_claimed() -> None:
    told = section(bound=0.9)
    assert check_pilot(told, NODES, None, 1)


@pytest.mark.parametrize(("items", "failed"), [(10, 0), (20, 3), (8, 7), (40, 20)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_a_rate_is_refuted_exactly_where_rationals_say_so(items: int, failed: int, confidence: float) -> None:
    def tail(rate: float) -> Fraction:
        p = Fraction(rate)
        return sum((comb(items, j) * p**j * (1 - p) ** (items - j) for j in range(failed + 1)), Fraction(0))

    level = 1 - Fraction(str(confidence))
    bound = rate_above(items, failed, confidence)
    for rate in (bound, bound * (1 - 1e-9), bound * (1 + 1e-9), 0.5, 1e-12):
        assert refutes(items, failed, Fraction(rate), level) is (tail(rate) <= level)
    assert refutes(items, failed, Fraction(bound), level)
    assert not refutes(items, failed, Fraction(bound * (1 - 1e-9)), level)


def test_the_ends_of_the_range() -> None:
    assert rate_above(5, 5, 0.95) == 1.0
    assert refutes(5, 5, Fraction(1), Fraction(1, 20))
    assert not refutes(5, 5, Fraction(0.999), Fraction(1, 20))
    assert not refutes(5, 0, Fraction(0), Fraction(1, 20))


def test_a_percentage_is_rounded_upwards() -> None:
    assert [percent_above(Fraction(bound)) for bound in (0.0, 0.1, 0.12345, 1.0, 1e-9)] == [
        "0.00 %",
        "10.01 %",
        "12.35 %",
        "100.00 %",
        "0.01 %",
    ]


def test_a_unit_is_wrong_when_one_of_its_nodes_is() -> None:
    wrong = {"a": "101", "b": "100", "c": "001"}
    assert failures(wrong, [["a"], ["b"], ["c"]], 1, 3) == 2
    assert failures(wrong, [["a", "b"], ["c"]], 1, 3) == 1
    assert failures(wrong, [["a", "b", "c"]], 0, 3) == 2


def test_the_draw_depends_on_everything_and_on_its_order() -> None:
    whole = redrawn(30, 1, "d", 30)
    for count in (1, 7, 30):
        assert is_drawn(whole[:count], 30, 1, "d")
    first = whole[:7]
    assert not is_drawn(first, 30, 2, "d")
    assert not is_drawn(first, 30, 1, "e")
    assert not is_drawn(first[::-1], 30, 1, "d")
    assert not is_drawn([*first[:6], first[5]], 30, 1, "d")
    assert not is_drawn(whole[1:8], 30, 1, "d")
    assert not is_drawn([*first[:6], 30], 30, 1, "d")
    assert not is_drawn([*first[:6], -1], 30, 1, "d")


HONEST = section()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 4}, "draw other items"),
        ({"seed": -1}, "items drawn from"),
        ({"population": "other"}, "draw other items"),
        ({"size": 7}, "items drawn from 7"),
        ({"size": 10**9}, "items drawn from"),
        ({"places": []}, "0 items drawn"),
        ({"places": HONEST["places"][::-1]}, "draw other items"),
        ({"more_than_k": 1}, "the marks say 2"),
        ({"bound": 0.2}, "do not prove it"),
        ({"bound": float("nan")}, "must be shares"),
        ({"bound": 1.5}, "must be shares"),
        ({"confidence": 0.0}, "must be shares"),
        ({"confidence": 1.0}, "must be shares"),
        ({"confidence": 0.99}, "do not prove it"),
        ({"sentence": "All is well."}, "is not what the figures say"),
        ({"table": "other.csv"}, "is not what the figures say"),
        ({"wrong": {"a": "0" * 8, "b": "0" * 8}}, "every node of the operator"),
        ({"wrong": {"a": "0" * 8, "b": "0" * 8, "c": "0" * 8, "d": "0" * 8}}, "every node of the operator"),
        ({"wrong": {"a": "0" * 8, "b": "0" * 8, "c": "0" * 7}}, "a 0, 1 or - for each item"),
        ({"wrong": {"a": "0" * 8, "b": "0" * 8, "c": "0000000x"}}, "a 0, 1 or - for each item"),
        ({"wrong": {"a": "0" * 8, "b": "0" * 8, "c": [0] * 8}}, "a 0, 1 or - for each item"),
        ({"wrong": {"a": "0" * 8, "b": "0" * 8, "c": "0" * 8}}, "the marks say 0"),
        ({"wrong": {**HONEST["wrong"], "a": "-" + HONEST["wrong"]["a"][1:]}}, "so at every node"),
        ({"wrong": dict.fromkeys(HONEST["wrong"], "-" * 8)}, "the marks say 0"),
    ],
)
def test_forgeries_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message):
        check_pilot({**HONEST, **changes}, NODES, None, 1)


def test_another_k_or_other_units_are_another_claim() -> None:
    with pytest.raises(Refused):
        check_pilot(HONEST, NODES, None, 0)
    with pytest.raises(Refused):
        check_pilot(HONEST, NODES, [["a", "b"], ["c"]], 1)
