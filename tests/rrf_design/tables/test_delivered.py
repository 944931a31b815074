"""Delivered rows: how they are read, ranked, reviewed and written."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow.parquet
import pytest

import rrf_design as rrf
from rrf_design import _shown
from rrf_design._shown import frame_of
from rrf_design.errors import InputError, MissingDependency
from rrf_design.promises import read_delivered
from rrf_design.questions.answers import RecordedAnswer
from rrf_design.reporting import write_report
from rrf_design.responses import parsers
from rrf_design.responses.open_text import Classes
from rrf_design.tables import write_output
from rrf_design.tables.delivered import Delivery, deliver
from rrf_design.tables.items import Reading, classes_of, field_of, plain, read_answer
from rrf_design.tables.rows import COLUMNS as DELIVERED
from rrf_design.tables.rows import Row, Value, delivered_names, repaired_row, reviewed_row, shown_value, unusable_row
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
    monkeypatch.setattr(_shown, "FIRST", 2)
    html = delivery._repr_html_()
    assert "and more" in html
    monkeypatch.setattr(_shown, "FIRST", 10)
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


NONE = Classes(())
PROBLEM = rrf.Problem(
    k=1,
    nodes=[{"id": name, "parser": "decimal"} for name in "abc"],
    relations=[{"id": r, "tail": r[0], "head": r[1]} for r in ("ab", "bc", "ca")],
    anchors=[{"id": "x", "node": "a", "value": 7.0}],
)


def row(said: dict[str, Any]) -> Row:
    return repaired_row("i", rrf.repair(PROBLEM, said), node="a", parser=None, classes=NONE, raw=said.get("a"))


def test_a_repaired_answer_says_that_it_was_changed() -> None:
    found = row({"a": "9", "b": "7", "c": "7"})
    assert (found.verdict, found.answer, found.raw, found.changed) == (Verdict.CONSISTENT, 7, "9", True)
    assert found.wrong == ("a",)
    kept = row({"a": "7", "b": "7", "c": "9"})
    assert (kept.answer, kept.changed, kept.wrong) == (7, False, ("c",))
    unread = row({"a": "no idea", "b": "7", "c": "7"})
    assert unread.unread == ("a",)
    assert unread.changed in (True, None)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_an_answer_is_there_only_where_it_may_be_believed(verdict: Verdict) -> None:
    repair = replace(rrf.repair(PROBLEM, {"a": "7", "b": "7", "c": "7"}), verdict=verdict)
    found = repaired_row("i", repair, node="a", parser=None, classes=NONE, raw=None)
    believed = verdict in (Verdict.CHECKED, Verdict.CONSISTENT, Verdict.AMBIGUOUS)
    assert (found.answer is not None) is believed
    assert (found.bound is not None) is believed
    assert (found.changed is not None) is believed
    hidden = replace(repair, repaired={**repair.repaired, "a": None})
    assert repaired_row("i", hidden, node="a", parser=None, classes=NONE, raw=None).answer is None


def test_values_in_the_words_of_their_parser() -> None:
    choice = parsers.get({"name": "choice", "options": ["red", "green"]})
    yes_no = parsers.get({"name": "yes-no", "count": 2})
    assert shown_value((0.0, 1.0), choice, NONE) == "green"
    assert shown_value((0.4, 0.4), choice, NONE) == [0.4, 0.4]
    assert shown_value((0.9, 0.8), choice, NONE) == [0.9, 0.8]
    assert shown_value((1.0, 0.0), yes_no, NONE) == "yes no"
    assert shown_value((0.5, 0.0), yes_no, NONE) == [0.5, 0]
    assert shown_value((0.0, 1.0), parsers.get("label"), Classes(("cat", "dog"))) == "dog"
    assert shown_value((2.0,), None, NONE) == 2


def test_a_row_comes_back_from_its_document() -> None:
    for found in (row({"a": "9", "b": "7", "c": "7"}), unusable_row("i", "why", unread=("a",), raw="?")):
        assert Row.from_json(json.loads(json.dumps(found.to_json()))) == found


PERSON = rrf.Anchor(id="x", node="a", source={"person": "how much?"}, cost=1.0)


def test_a_trusted_person_decides() -> None:
    reading = read_answer(RecordedAnswer(text="7"), parsers.get("decimal"), 1)
    agreed = reviewed_row("i", PERSON, (7.0,), said=7, reading=reading)
    assert (agreed.verdict, agreed.answer, agreed.bound, agreed.changed) == (Verdict.CHECKED, 7, 0.0, False)
    assert agreed.assumes == "x is right"
    other = reviewed_row("i", PERSON, (8.0,), said=8, reading=reading)
    assert (other.answer, other.raw, other.changed) == (8, "7", True)
    assert reviewed_row("i", PERSON, (8.0,), said=8, reading=None).changed


def test_what_nothing_can_be_said_about() -> None:
    found = unusable_row("i", "no answer", unread=("a", "b"), raw="?")
    assert (found.verdict, found.answer, found.reason) == (Verdict.INCOMPLETE, None, "no answer")


DECIMAL, LABEL = parsers.get("decimal"), parsers.get("label")


def read(parser: Any = DECIMAL, *, dim: int = 1, **answer: Any) -> Reading:
    return read_answer(RecordedAnswer(**answer), parser, dim)


def test_numbers_and_texts_and_failures() -> None:
    number = read(value=(3.0,), cost=0.5)
    assert number.parsed is not None
    assert (number.parsed.value, number.raw, number.cost) == ((3.0,), 3, 0.5)
    text = read(text="It is 4.50.")
    assert text.parsed is not None
    assert (text.parsed.value, text.raw, text.status) == ((4.5,), "It is 4.50.", None)
    failed = read(status="timeout", text="cut o")
    assert (failed.parsed, failed.status, failed.raw) == (None, "timeout", "cut o")
    assert read(text="no idea").status == "parse failure"
    assert read(text="I'm sorry, but I can't help with that.").status == "refusal"


def test_a_refusal_is_no_class_though_any_words_may_be_one() -> None:
    assert read(LABEL, text="sport").parsed is not None
    refused = read(LABEL, text="I'm sorry, but I can't help with that.")
    assert (refused.parsed, refused.status) == (None, "refusal")


@pytest.mark.parametrize(
    ("parser", "answer", "dim", "message"),
    [
        (None, {"text": "4"}, 1, "names no parser; give numbers, or a parser"),
        (LABEL, {"value": (1.0,)}, 1, "its node reads classes; give its text"),
        (DECIMAL, {"value": (1.0, 2.0)}, 1, "has 2 numbers, but its node has dimension 1"),
        (DECIMAL, {"value": (float("nan"),)}, 1, "not finite; where there is none, give a status"),
        (None, {"value": (float("inf"), 1.0)}, 2, "not finite"),
    ],
)
def test_what_can_not_belong_to_its_node(parser: Any, answer: dict[str, Any], dim: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(parser, dim=dim, **answer)


def test_classes_are_those_of_the_answers_then_those_of_the_checks() -> None:
    readings = [read(LABEL, text=word) for word in ("b", "a", "b")] + [read(LABEL, status="missing")]
    classes = classes_of(readings, ["c", "a"])
    assert classes.labels == ("b", "a", "c")
    field = field_of({"x": readings[0], "y": readings[1], "z": readings[3]}, ["x", "y", "z", "gone"], classes)
    assert field.values == {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0)}
    assert field.invalid == {"z": "missing", "gone": "missing"}


def test_only_the_nodes_of_the_design_are_there() -> None:
    readings = {"x": read(value=(1.0,)), "y": read(value=(2.0,)), "z": read(text="no idea")}
    field = field_of(readings, ["y", "z"], Classes(()))
    assert (field.values, field.invalid) == ({"y": (2.0,)}, {"z": "parse failure"})


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ((2.0,), 2),
        ((0.1 + 0.2,), 0.3),
        ((1.0, 2.5), [1, 2.5]),
        ((1e16,), 1e16),
        ((-0.0,), 0),
        ((123456789.123456789,), 123456789.123),
        ((4006381333931.0,), 4006381333931),  # no digit of a code is lost
        ((4006381333931.0 + 2**-10,), 4006381333931),
        ((1234567890123.45,), 1234567890123.45),
        ((2.9999999999999996,), 3),
        ((1000.0000005,), 1000.0000005),
    ],
)
def test_numbers_as_people_write_them(value: tuple[float, ...], shown: Any) -> None:
    assert plain(value) == shown
    assert type(plain(value)) is type(shown)


@pytest.fixture(scope="module")
def outputs_delivery(folder: Path, items: rrf.Dataset) -> Delivery:
    found: Delivery = rrf.repair(items, folder / "answers.jsonl")
    return found


def test_all_forms_agree(outputs_delivery: Delivery, tmp_path: Path) -> None:
    for ending in ("json", "csv", "jsonl", "parquet", "html", "xml"):
        write_output(tmp_path / f"out.{ending}", outputs_delivery)
    whole = json.loads((tmp_path / "out.json").read_text())
    assert whole == json.loads(json.dumps(outputs_delivery.to_json()))
    assert whole["verdicts"] == outputs_delivery.verdicts
    with (tmp_path / "out.csv").open(newline="") as stream:
        table = list(csv.DictReader(stream))
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    frame = outputs_delivery.to_frame()
    assert [row["no"] for row in table] == list(outputs_delivery) == [item["id"] for item in whole["items"]]
    for row, line, item, name in zip(table, lines, whole["items"], frame["no"], strict=True):
        assert name == line["no"] == row["no"]
        assert row["verdict"] == line["verdict"] == item["verdict"]
        assert line["answer"] == item["answer"]
        assert row["answer"] == ("" if item["answer"] is None else str(item["answer"]))
        assert row["rank"] == ("" if item["rank"] is None else str(item["rank"]))
    suite = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert int(suite.get("tests", 0)) == 60
    assert int(suite.get("failures", 0)) == 60 - round(60 * outputs_delivery.passing_share)
    page = (tmp_path / "out.html").read_text()
    assert "60 rows: 9 checked, 38 consistent (right if" in page
    assert page.count("Asked and answered") == 60  # behind every item stands what was asked and answered
    again = Path(write_report(tmp_path / "out.json", tmp_path / "again.html")).read_text()
    assert "60 rows: 9 checked, 38 consistent (right if" in again


def test_an_answer_is_given_only_where_it_may_be_believed(outputs_delivery: Delivery) -> None:
    for row in outputs_delivery.rows():
        assert row.answer is None or row.verdict.passes or row.verdict == "ambiguous"
        assert row.answer is not None or not row.verdict.passes


def test_it_shows_itself(outputs_delivery: Delivery) -> None:
    assert len(repr(outputs_delivery)) < 200
    assert outputs_delivery.sentence() in outputs_delivery._repr_html_()
    with pytest.raises(InputError, match="no item '1'"):
        outputs_delivery.row("1")


def test_unknown_endings_are_refused_before_anything_is_written(outputs_delivery: Delivery, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="an output ends in"):
        write_output(tmp_path / "out.pdf", outputs_delivery)
    assert not list(tmp_path.iterdir())


def test_what_is_read_is_not_written_over(items: rrf.Dataset, folder: Path, tmp_path: Path) -> None:
    from rrf_design.tables.delivered import spare_inputs

    table = folder / str(items.recipe.data.table)
    spare_inputs([tmp_path / table.name, folder / "new.csv"], items)
    link = tmp_path / "link.csv"
    link.symlink_to(table)
    for path in (table, link, folder / items.recipe.name):
        with pytest.raises(InputError, match="is read by this call, and would be written over"):
            spare_inputs([path], items)
    with pytest.raises(InputError, match="written over"):
        spare_inputs([folder / "answers.jsonl"], items, folder / "answers.jsonl")


ROWS_WRITTEN_TABLES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"no": "007", "answer": "=1+1", "x": Decimal("1.10")}, {"answer": 3.5, "verdict": "consistent", "bound": 0.25}),
    (
        {"no": 'a,\n"b"', "answer": "é", "x": None},
        {"raw": "-2", "verdict": "ambiguous", "bound": float("inf"), "rank": 1},
    ),
]
COLUMNS = ("no", "answer", "x")


def test_names_give_way_to_the_input_s() -> None:
    assert delivered_names(["no"]) == {name: name for name in DELIVERED}
    names = delivered_names(["answer", "cost", "rrf_cost"])
    assert names["answer"] == "rrf_answer"
    assert names["cost"] == "rrf_rrf_cost"
    assert len(set(names.values())) == len(DELIVERED)


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    assert deliver(path, ROWS_WRITTEN_TABLES, COLUMNS) == 2
    assert path.read_text(encoding="utf-8") == (
        "no,answer,x,rrf_answer,raw,verdict,assumes,bound,changed,cost,reason,rank\n"
        "007,=1+1,1.10,3.5,,consistent,,0.25,,,,\n"
        '"a,\n""b""",é,,,-2,ambiguous,,inf,,,,1\n'
    )


FORMULAS = ("=1+1", "+1 or 2", "-x", "@SUM(A1)", "\tx", "\rx", "'=1")


@pytest.mark.parametrize(("ending", "separator"), [(".csv", ","), (".tsv", "\t")])
def test_no_text_of_a_model_or_person_is_a_formula(tmp_path: Path, ending: str, separator: str) -> None:
    path = tmp_path / f"out{ending}"
    said = [dict.fromkeys(("answer", "raw", "reason", "assumes"), text) for text in FORMULAS]
    deliver(path, [({"no": text, "answer": text}, row) for text, row in zip(FORMULAS, said, strict=True)], COLUMNS)
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter=separator))
    assert [row["no"] for row in rows] == [row["answer"] for row in rows] == list(FORMULAS)  # the user's own
    for name in ("rrf_answer", "raw", "reason", "assumes"):
        assert [row[name] for row in rows] == [f"'{text}" for text in FORMULAS]
    assert read_delivered(path).answers == FORMULAS


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_what_no_spreadsheet_opens_is_as_it_was_answered(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out{ending}"
    deliver(path, [({"no": "1"}, {"answer": text, "verdict": "consistent"}) for text in FORMULAS], ["no"])
    assert read_delivered(path).answers == FORMULAS


def test_numbers_are_no_formulas(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    deliver(path, [({"no": "1"}, {"answer": -1.5, "raw": "-1.5e-07", "reason": "-5"})], ["no"])
    assert path.read_text().splitlines()[1] == "1,-1.5,-1.5e-07,,,,,,-5,"


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    deliver(path, ROWS_WRITTEN_TABLES, COLUMNS)
    first, second = path.read_text(encoding="utf-8").splitlines()
    assert '"x": 1.10' in first
    assert list(json.loads(first)) == [*COLUMNS, "rrf_answer", *list(DELIVERED)[1:]]
    assert json.loads(second)["bound"] is None


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    deliver(path, [({"no": "1", "mixed": 1}, {}), ({"no": "2", "mixed": "x"}, {"cost": 0.5})], ["no", "mixed"])
    found = pyarrow.parquet.read_table(path).to_pylist()
    assert [row["mixed"] for row in found] == ["1", "x"]
    assert [row["cost"] for row in found] == [None, 0.5]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_whole_or_not_at_all(tmp_path: Path, form: str) -> None:
    def broken() -> Any:
        yield ROWS_WRITTEN_TABLES[0]
        raise InputError("in the middle")

    path = tmp_path / f"out.{form}"
    path.write_text("before")
    with pytest.raises(InputError, match=r"^in the middle$"):
        deliver(path, broken(), COLUMNS)
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="delivered tables end in"):
        deliver(tmp_path / "out.xlsx", [], ["no"])
