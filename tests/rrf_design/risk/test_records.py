"""Records are proven again from what they count; every forgery is refused with a reason, and nothing else is ever raised."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rrf_design.errors import InputError, Refused
from rrf_design.risk import (
    Among,
    AuditSequence,
    Limit,
    Scope,
    Statement,
    assess,
    audit_record,
    bound,
    choice_record,
    draw_order,
    lead_family,
    prove_audit,
    prove_choice,
    replay,
    staggered,
)
from rrf_design.risk.records import written

DIGEST = "sha256:0123"


def audit(draws: int = 60) -> dict[str, Any]:
    sequence = AuditSequence(400, 0.95)
    labels = [place in (7, 31) for place in range(draws)]
    for wrong in labels:
        sequence.observe(wrong)
    return json.loads(json.dumps(audit_record(sequence, labels, digest=DIGEST, seed=5)))  # type: ignore[no-any-return]


def family() -> list[Any]:
    rng = np.random.default_rng(2)
    gold = np.zeros(150, dtype=int)
    answers = np.where(rng.random((150, 4)) < 0.9, 0, rng.integers(1, 4, size=(150, 4)))
    return replay(lead_family(4, [range(4)]), answers, prices=[1, 1, 2, 8], check=30.0, gold=gold)


def choices() -> dict[str, Any]:
    policies = family()
    names = [policy.name for policy in policies]
    limit = Limit.of(0.05, among=Among.ALL)
    streams = staggered([names, names[::-1]], limit, Scope(Statement.FILE, 150, 900), confidence=0.95)
    return {
        "Holm": assess(policies, 0.05, 0.95),
        "sequence": assess(policies, 0.1, 0.95, order=names[::-1]),
        "finite": assess(policies, limit, 0.95, population=900, statement="rest"),
        "unknown denominator": assess(policies, 0.05, 0.95, population=900),
        "staggered": assess(policies, limit, 0.95, population=900, statement="file", order=streams),
        "depth": assess(policies, limit, 0.95, statement=Scope(Statement.FILE, 150, 900, 2), order=names[::-1]),
        "sequential": assess(policies, 0.1, 0.95, sequential=True),
        "two limits": assess(policies, [limit, Limit.of(0.9, column="checked")], 0.95),
    }


def test_an_audit_is_proven_again() -> None:
    record = audit()
    proven = prove_audit(record)
    assert (proven.population, proven.drawn, proven.wrong, proven.bound) == (400, 60, 2, record["bound"])
    assert proven.confidence == Fraction(19, 20)


def test_a_fixed_number_of_draws_is_proven_only_as_planned() -> None:
    record = {**audit(), "at_any_stop": False, "planned": 60, "bound": bound(400, 60, 2, 0.95)}
    assert prove_audit(record).bound == record["bound"] < audit()["bound"]
    with pytest.raises(Refused, match="fixed beforehand, but 60 were made"):
        prove_audit({**record, "planned": 80})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bound": 3}, "its draws prove at most"),
        ({"seed": 6}, "draw other items"),
        ({"digest": "sha256:other"}, "draw other items"),
        ({"digest": ""}, "digest is missing"),
        ({"labels": [False] * 59}, "60 draws and 59 labels"),
        ({"labels": [0] * 60}, "a label should be true or false"),
        ({"draws": list(range(60))}, "draw other items"),
        ({"population": 50}, "without replacement"),
        ({"population": 10**12}, "population is"),
        ({"population": "400"}, "population should be a whole number"),
        ({"confidence": "1e-999999999"}, "confidence should be a plain number"),
        ({"confidence": "1"}, "confidence is 1"),
        ({"confidence": None}, "confidence should be a plain number"),
        ({"confidence": "0.999"}, "its draws prove at most"),
        ({"prior": [1.0, -1.0]}, "prior should be"),
        ({"prior": None}, "prior should be"),
        ({"at_any_stop": "yes"}, "at_any_stop should be true or false"),
        ({"seed": None}, "seed should be a whole number"),
    ],
)
def test_a_forged_audit_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words):
        prove_audit({**audit(), **change})


def test_labels_turned_right_no_longer_fit_their_claim_or_weaken_it() -> None:
    """Hiding a wrong label changes what is proven; a claim that is weaker than the proof stands."""
    record = audit()
    record["labels"] = [True] * 60
    with pytest.raises(Refused, match="its draws prove at most"):
        prove_audit(record)
    assert prove_audit({**audit(), "bound": 399}).bound == audit()["bound"]


@pytest.mark.parametrize("kind", list(choices()))
def test_a_choice_is_proven_again(kind: str) -> None:
    found = choices()[kind]
    record = json.loads(json.dumps(choice_record(found)))
    assert prove_choice(record) == found


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from _places(value[key], (*path, key))
    elif isinstance(value, list):
        for index in range(min(len(value), 2)):
            yield from _places(value[index], (*path, index))


def _changed(record: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    made = copy.deepcopy(record)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return made


RECORDS = {"audit": audit(20), **{kind: choice_record(found) for kind, found in choices().items()}}


@pytest.mark.parametrize("kind", list(RECORDS))
def test_whatever_is_put_anywhere_is_proven_or_refused(kind: str) -> None:
    record = json.loads(json.dumps(RECORDS[kind]))
    prove = prove_audit if kind == "audit" else prove_choice
    reasons = []
    for path in _places(record):
        for new in (None, -1, 10**30, 0.5, "x", "1/0", [], {}, [[]], True, float("nan")):
            try:
                prove(_changed(record, path, new))
            except Refused as error:
                reasons.append(str(error))
    assert len(reasons) > 100
    assert not any("\n" in reason for reason in reasons)


@settings(max_examples=25, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)
    )
)
def test_any_json_is_refused(value: Any) -> None:
    for prove in (prove_audit, prove_choice):
        with pytest.raises(Refused):
            prove(value)


@pytest.mark.parametrize(
    ("path", "new", "words"),
    [
        (("policies", 0, "p"), 1e-9, "its counts give"),
        (("policies", 0, "proven"), True, "the procedure gives False"),
        (("policies", 0, "counts", 0, "marked"), 0, "its counts give"),
        (("policies", 0, "level"), "1/20", "the procedure gives"),
        (("chosen",), "nobody", "the cheapest proven policy is"),
        (("confidence",), "0.5", "the procedure gives"),
        (("limits", 0, "share"), "0.4", "its counts give"),
        (("streams", 0, "share"), "2", "sum to more than 1"),
        (("piloted",), 10, "counted of 10 piloted"),
    ],
)
def test_a_forged_choice_is_refused(path: tuple[Any, ...], new: Any, words: str) -> None:
    record = json.loads(json.dumps(choice_record(choices()["Holm"])))
    assert not record["policies"][0]["proven"]
    with pytest.raises(Refused, match=words):
        prove_choice(_changed(record, path, new))


def test_draws_are_a_permutation_that_depends_on_seed_and_digest() -> None:
    whole = draw_order(100, 1, digest=DIGEST)
    assert sorted(whole) == list(range(100))
    assert draw_order(100, 1, digest=DIGEST, count=7) == whole[:7]
    assert draw_order(100, 2, digest=DIGEST) != whole
    assert draw_order(100, 1, digest="other") != whole


def test_draws_are_fair() -> None:
    """Each of ten items is drawn first about equally often over seeds (chi-square below its 99.99 % point, 33.7)."""
    firsts = np.bincount([draw_order(10, seed, digest=DIGEST, count=1)[0] for seed in range(4000)], minlength=10)
    assert ((firsts - 400) ** 2 / 400).sum() < 33.7


def test_a_record_needs_the_labels_that_were_observed() -> None:
    with pytest.raises(InputError, match="2 labels, but the sequence observed 0"):
        audit_record(AuditSequence(5, 0.9), [True, False], digest=DIGEST, seed=0)


@pytest.mark.parametrize("value", ["0.95", "1/3", "0", "1", "0.0001220703125"])
def test_fractions_are_written_so_that_they_can_be_read(value: str) -> None:
    assert Fraction(written(Fraction(value))) == Fraction(value)
