"""What is written down of a purchase is read back as it was."""

from __future__ import annotations

import pytest

from rrf_design.acquisition.purchases import BatchRecord, Buys, Purchase, Settled, Settlement, purchase_id

PLAIN = Purchase("", "a", Buys.RELATION, 1.5)
FULL = Purchase(
    "x",
    "n",
    Buys.ANSWER,
    0.1,
    0.5,
    attempt=2,
    deferred=True,
    calls=3,
    model="mini",
    tried=4,
    attempts=5,
    again_of="m",
)


@pytest.mark.parametrize("purchase", [PLAIN, FULL])
def test_an_intent_is_read_back(purchase: Purchase) -> None:
    assert Purchase.of(purchase.intent()) == purchase


def test_an_intent_says_no_more_than_it_must() -> None:
    assert set(PLAIN.intent().body) == {"item", "name", "buys", "price"}


def test_a_settlement_is_remembered_without_its_evidence() -> None:
    event = Settlement(
        FULL, "read", (7.0,), money=0.2, calls=1, evidence={"reply": {"text": "seven"}}, source="judge"
    ).event()
    found = Settled.of(event, FULL)
    assert (found.value, found.text, found.money, found.source, found.again_of) == ((7.0,), "seven", 0.2, "judge", "m")
    assert (found.name, found.buys, found.attempt, found.ok) == ("n", Buys.ANSWER, 2, True)


def test_what_is_given_up_has_no_value_and_keeps_its_price() -> None:
    found = Settled.in_doubt(FULL, money=0.5, at=9.0)
    assert (found.ok, found.value, found.price, found.money, found.outcome) == (False, None, 0.1, 0.5, "in doubt")


def test_names_of_purchases_are_unique_over_items() -> None:
    assert purchase_id("", "a") == "a"
    assert len({purchase_id(item, "a") for item in ("", "x", "y")}) == 3


def test_a_batch_is_written_down_before_and_after_it_has_a_name() -> None:
    record = BatchRecord("t", "mini", ("a", "b"), mark="f-1")
    assert record.document() == {"token": "t", "model": "mini", "purchases": ["a", "b"], "mark": "f-1"}
    assert record.named("batch-7").document() == {"token": "t", "model": "mini", "batch": "batch-7"}
