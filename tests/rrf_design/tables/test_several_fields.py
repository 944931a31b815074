"""Tables with several fields: each judged as if it were the only one, delivered side by side."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.tables.delivered import Delivery, write_output
from rrf_design.tables.rows import delivered_names

FIELDS: dict[str, dict[str, Any]] = {
    "total": {"tolerance": 0.005},
    "date": {"parse": "date"},
    "vendor": {},
    "currency": {"choices": ["EUR", "USD"]},
}
RIGHT: dict[str, Any] = {"total": 119.0, "date": "2024-03-05", "vendor": "Acme", "currency": "EUR"}
WRONG: dict[str, Any] = {"total": 91.0, "date": "2024-05-03", "vendor": "Acme Corp", "currency": "USD"}
ROWS = [{"no": f"{n:03}", "text": f"invoice {n}"} for n in range(40)]


def joint(**more: Any) -> dict[str, Any]:
    asks = [{"id": "a", "prompt": "{{ text }}", "price": None}, {"id": "b", "like": "a", "prompt": "! {{ text }}"}]
    asks = [
        {k: v for k, v in ask.items() if v is not None}
        for ask in (*asks, {"id": "c", "like": "a", "prompt": "? {{ text }}"})
    ]
    answers = [{"of": f"a.{name}", **said} for name, said in FIELDS.items()]
    return {"data": {"id": "no"}, "answer": answers, "ask": asks, **more}


def alone(field: str) -> dict[str, Any]:
    """The recipe that delivers this field only, as one wrote it before there were several."""
    said = FIELDS[field]
    inner: Any = said.get("parse", "label")
    if "choices" in said:
        inner = {"name": "choice", "options": said["choices"]}
    parse: dict[str, Any] = {"name": "json", "field": field} | ({} if "tolerance" in said else {"of": inner})
    asks = [
        {"id": name, "prompt": "{{ text }}", "parse": parse} | ({} if name == "a" else {"like": "a"}) for name in "abc"
    ]
    return {"data": {"id": "no"}, "answer": {"of": "a", **{k: v for k, v in said.items() if k != "parse"}}, "ask": asks}


def answers(share: float, seed: int) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    for row in ROWS:
        for node in "abc":
            said = {name: WRONG[name] if rng.random() < share else RIGHT[name] for name in FIELDS}
            text = "I can't read it." if rng.random() < 0.05 else json.dumps(said)
            yield {"id": row["no"], "node": node, "text": text}


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_every_field_is_judged_as_if_it_were_the_only_one(share: float) -> None:
    said = list(answers(share, seed=round(100 * share)))
    together = rrf.repair(rrf.dataset(joint(), ROWS), said)
    for place, field in enumerate(FIELDS):
        single = rrf.repair(rrf.dataset(alone(field), ROWS), said)
        for one, whole in zip(single.rows(), together.rows(), strict=True):
            value = whole.values[place]
            assert (value.field, value.verdict, value.answer) == (f"a.{field}", one.verdict, one.answer)
            assert (value.bound, value.changed, value.assumes) == (one.bound, one.changed, one.assumes)
    for row in together.rows():
        assert row.verdict.rank == max(value.verdict.rank for value in row.values)


def delivery(**more: Any) -> Delivery:
    return rrf.repair(rrf.dataset(joint(**more), ROWS), list(answers(0.2, seed=7)))


def test_the_delivered_table_has_the_columns_of_each_field(tmp_path: Path) -> None:
    found = delivery()
    write_output(tmp_path / "out.csv", found)
    with (tmp_path / "out.csv").open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    own = [f"date{end}" for end in ("", "_raw", "_verdict", "_reason", "_bound", "_assumes", "_changed")]
    assert set(own) <= set(lines[0])
    assert "answer" not in lines[0]
    assert list(lines[0])[-3:] == ["verdict", "cost", "rank"]
    for line, row in zip(lines, found.rows(), strict=True):
        assert line["verdict"] == row.verdict.value
        assert [line["date_verdict"], line["date"]] == [row.values[1].verdict.value, row.values[1].answer or ""]


def test_json_page_and_frame_speak_of_all_fields(tmp_path: Path) -> None:
    found = delivery()
    for name in ("out.json", "out.html", "out.xml", "out.jsonl"):
        write_output(tmp_path / name, found)
    items = json.loads((tmp_path / "out.json").read_text())["items"]
    assert [value["field"] for value in items[0]["values"]] == [f"a.{name}" for name in FIELDS]
    assert "a.vendor" in (tmp_path / "out.html").read_text()
    pytest.importorskip("pandas")
    assert {"total", "total_verdict", "verdict"} <= set(found.to_frame().columns)


def test_names_that_are_taken_or_equal_are_told_apart() -> None:
    names = delivered_names(["total", "verdict"], ["a.total", "b.date", "a.date"])
    assert [names["a.total", key] for key in ("answer", "raw")] == ["rrf_total", "total_raw"]
    assert [names["b.date", "answer"], names["a.date", "raw"]] == ["b.date", "a.date_raw"]
    assert names["verdict"] == "rrf_verdict"


def test_a_person_decides_the_field_they_were_asked_about(tmp_path: Path) -> None:
    checks = [
        {"id": f"who-{name}", "of": f"a.{name}", "by": {"person": f"{name} of {{{{ no }}}}?"}, "cost": 2.0}
        for name in FIELDS
    ]
    found = delivery(check=checks)
    from rrf_design.tables import read_reviews, write_reviews

    count = write_reviews(tmp_path / "review.csv", found)
    open_values = sum(value.open for row in found.rows() for value in row.values)
    assert count == open_values > 0
    with (tmp_path / "review.csv").open(newline="") as stream:
        asked = list(csv.DictReader(stream))
    said = [{"id": one["id"], "check": one["check"], "value": str(RIGHT[one["check"][4:]])} for one in asked]
    data = rrf.dataset(joint(check=checks), ROWS)
    again = rrf.repair(data, list(answers(0.2, seed=7)), reviews=read_reviews(said, data))
    assert not any(value.open for row in again.rows() for value in row.values)
    told = {(one["id"], one["check"]) for one in said}
    assert {row.id: row.cost for row in again.rows()} == {
        row["no"]: 2.0 * sum(name == row["no"] for name, _ in told) for row in ROWS
    }


MONEY = [{"of": f"a.{name}", "tolerance": 0.005} for name in ("net", "tax", "total")]


def invoice(said: dict[str, dict[str, float]], *equations: dict[str, Any]) -> Any:
    recipe = joint(equation=list(equations)) | {"answer": MONEY}
    rows = [{"id": "000", "node": node, "text": json.dumps(text)} for node, text in said.items()]
    return next(rrf.repair(rrf.dataset(recipe, ROWS[:1]), rows).rows())


GOOD, BAD = {"net": 100.0, "tax": 19.0, "total": 119.0}, {"net": 100.0, "tax": 19.0, "total": 191.0}


def test_an_equation_within_one_answer_makes_it_unread_and_says_why() -> None:
    within = {"sum": ["a.net", "a.tax"], "equals": "a.total"}
    row = invoice({"a": BAD, "b": GOOD, "c": GOOD}, within)
    assert set(row.unread) == {"a.net", "a.tax", "a.total"}
    assert "a.net + a.tax is 119, and a.total is 191" in row.values[0].reason
    assert "counts as unread" in row.values[0].reason
    assert all("of 2 answers" in value.assumes for value in row.values)  # the premise is about the others
    plain = invoice({"a": GOOD, "b": GOOD, "c": GOOD}, within)
    assert (plain.verdict, plain.unread) == (invoice({"a": GOOD, "b": GOOD, "c": GOOD}).verdict, ())


def test_right_answers_are_never_vetoed() -> None:
    within = {"sum": ["a.net", "a.tax"], "equals": "a.total"}
    edge = {"net": 100.005, "tax": 19.005, "total": 118.995}  # each within its tolerance of the truth
    assert not invoice({"a": edge, "b": edge, "c": edge}, within).unread


def test_an_equation_between_answers_finds_what_wordings_alone_leave_open() -> None:
    said = {"a": GOOD, "b": BAD}
    alone_ = invoice(said)
    assert alone_.values[2].answer is None  # 119 or 191
    between = ({"sum": ["a.net", "a.tax"], "equals": "b.total"}, {"sum": ["b.net", "b.tax"], "equals": "a.total"})
    row = invoice(said | {"c": GOOD}, *between)
    assert row.values[2].answer == 119
    assert "b.total" in row.wrong
