"""What a data set came to: counts, the order of what people look at first, and every form it is
handed over in.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.errors import InputError, MissingDependency
from rrf_design.tables import delivered
from rrf_design.tables.delivered import Delivery, frame_of
from rrf_design.tables.rows import Row, Value
from rrf_design.verdict import Verdict, table_sentence

RECIPE = {
    "data": {"id": "no"},
    "answer": {"of": "total", "tolerance": 0.5},
    "ask": [{"id": "total", "prompt": "Total of {{ no }}?"}],
}
TABLE = [{"no": f"{n}", "answer": "taken"} for n in range(6)]
ROWS = (
    Row("0", (Value(Verdict.CONSISTENT, answer=7),), worth=9.0),
    Row("1", (Value(Verdict.INCOMPLETE),), worth=1.0),
    Row("2", (Value(Verdict.CONTRADICTED),), worth=1.0, misfit=1.0),
    Row("3", (Value(Verdict.CONTRADICTED),), worth=1.0, misfit=2.0),
    Row("4", (Value(Verdict.AMBIGUOUS, answer=3),), worth=5.0),
    Row("5", (Value(Verdict.INCOMPLETE, reason="<b>"),), worth=2.0),
)


@pytest.fixture(scope="module")
def delivery() -> Delivery:
    return Delivery(rrf.dataset(RECIPE, TABLE), ROWS)


def test_counts_and_the_worst(delivery: Delivery) -> None:
    assert delivery.verdicts == {"checked": 0, "consistent": 1, "ambiguous": 1, "incomplete": 2, "contradicted": 2}
    assert delivery.verdict is Verdict.CONTRADICTED
    assert delivery.passing_share == pytest.approx(1 / 6)
    assert len(delivery) == 6
    assert list(delivery) == list("012345")
    assert delivery.sentence() == table_sentence(delivery.verdicts)
    assert repr(delivery).startswith("Delivery(")


def test_people_look_first_where_a_check_is_worth_most_and_nothing_is_delivered(delivery: Delivery) -> None:
    """Worth first, then the kind of trouble, then how far the answers are apart; what has an answer
    comes last.
    """
    assert delivery.ranks == {5: 1, 3: 2, 2: 3, 1: 4, 4: 5}
    assert [rank for _, _, rank in delivery.ranked()] == [None, 4, 3, 2, 5, 1]


def test_a_row_by_its_id(delivery: Delivery) -> None:
    assert delivery["3"].misfit == 2.0
    assert delivery.row("3") == delivery["3"]
    with pytest.raises(KeyError):
        delivery["33"]
    with pytest.raises(InputError, match="no item '33'; did you mean '3'"):
        delivery.row("33")


def test_an_empty_delivery_is_incomplete() -> None:
    nothing = Delivery(rrf.dataset(RECIPE, TABLE), (), verdicts={})
    assert nothing.verdict is Verdict.INCOMPLETE
    assert nothing.passing_share == 0.0
    assert nothing.sentence() == "0 rows: none."


def test_columns_that_are_taken_get_a_prefix(delivery: Delivery) -> None:
    frame = delivery.to_frame()
    assert list(frame["answer"]) == ["taken"] * 6
    assert list(frame["rrf_answer"])[:1] == [7]
    assert list(frame["verdict"]) == [row.verdict.value for row in ROWS]
    cells = [told for _, told in delivery.cells()]
    assert cells[5]["rank"] == 1
    assert cells[0]["rank"] is None


def test_the_document_and_the_notebook(delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
    told = delivery.to_json()
    assert told["format"] == "rrf-delivery"
    assert [item["id"] for item in told["items"]] == list("012345")
    assert told["items"][5]["rank"] == 1
    monkeypatch.setattr(delivered, "SHOWN", 2)
    html = delivery._repr_html_()
    assert "and 4 more" in html
    monkeypatch.setattr(delivered, "SHOWN", 10)
    assert "&lt;b&gt;" in delivery._repr_html_()
    assert "<b>" not in delivery._repr_html_()


def test_frames_are_of_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[dict[str, Any]] = [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    assert list(frame_of(rows, ["a", "b"])["a"]) == [1, 2]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match="needs pandas or polars"):
        frame_of(rows, ["a", "b"])


def test_rows_are_gone_through_again_and_again() -> None:
    gone = []

    class Rows:
        def __iter__(self) -> Any:
            gone.append(1)
            return iter(ROWS)

    found = Delivery(rrf.dataset(RECIPE, TABLE), Rows())
    assert found.ranks == Delivery(rrf.dataset(RECIPE, TABLE), tuple(replace(row) for row in ROWS)).ranks
    assert len(gone) == 2
