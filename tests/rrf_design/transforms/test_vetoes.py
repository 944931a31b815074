"""Free checks: what is struck out can't be right, and what is right is never struck out."""

from __future__ import annotations

import json
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.models.scripted import ScriptedModel
from rrf_design.questions.recipe import recipe_from_document
from rrf_design.responses import day_occurs, number_occurs, parsers, words_occur
from rrf_design.responses.parsers import AMBIGUOUS, NO_NUMBER, written_forms
from rrf_design.transforms import vetoed
from rrf_design.transforms._checksums import refuted


def test_one_key_of_a_veto_and_a_kind_that_is_known() -> None:
    for more, fault in (
        ({}, "give one of in_text, within, digits, lookup, regex, returns, not none of them"),
        ({"in_text": "x", "within": [0, 1]}, "not in_text and within"),
        ({"within": [2, 1]}, "the least comes first"),
        ({"within": ["2024-01-01", 3]}, "is not two numbers or two dates"),
        ({"digits": "ibann"}, "did you mean 'iban'"),
        ({"lookup": "suppliers"}, "names no file and column"),
        ({"regex": "("}, "is no pattern"),
    ):
        with pytest.raises(rrf.InputError, match=fault):
            recipe_from_document(RECIPE | {"veto": [{"of": "total", **more}]})
    with pytest.raises(rrf.InputError, match="is no ask; did you mean 'total'"):
        recipe_from_document(RECIPE | {"veto": [{"of": "totel", "in_text": "{{ text }}"}]})


RECIPE: dict[str, Any] = {
    "answer": {"of": "total", "tolerance": 0.005},
    "ask": [
        {"id": "total", "prompt": "{{ text }} Total?"},
        {"id": "again", "like": "total", "prompt": "What is to be paid? {{ text }}"},
        {"id": "cents", "like": "total", "prompt": "In cents? {{ text }}", "change": {"scale": 100}},
        {"id": "fourth", "like": "total", "prompt": "And? {{ text }}"},
    ],
    "veto": [{"of": "total", "in_text": "{{ text }}"}],
}
ROWS = [{"text": "Netto 1.000,00 + 190,00 = 1.190,00 EUR"}, {"text": "Summe 12,50"}]


def said(**texts: str) -> list[dict[str, str]]:
    return [{"id": "1", "node": node, "text": text} for node, text in texts.items()]


def test_a_veto_is_an_erasure_and_the_premise_is_about_the_others() -> None:
    data = rrf.dataset(RECIPE, ROWS)
    assert len(data.structures) == 1  # the texts are the row's own
    row = next(rrf.repair(data, said(total="1290", again="1190", cents="119000", fourth="1190")).rows())
    assert (row.values[0].answer, row.verdict.value, row.unread) == (1190, "consistent", ("total",))
    assert row.assumes.startswith("at most 1 of 3 answers is wrong")
    assert row.assumes.endswith("not counting what a veto struck out (total)")
    assert "1290 does not stand in the text" in row.values[0].reason
    kept = next(rrf.repair(data, said(total="1190", again="1190", cents="119000", fourth="190")).rows())
    assert (kept.unread, "veto" in kept.assumes) == ((), False)  # it stands there, and is wrong all the same


def test_a_veto_holds_for_what_can_be_taken_back_to_the_same_value() -> None:
    data = rrf.dataset(RECIPE, ROWS)
    row = next(rrf.repair(data, said(total="1190", again="1190", cents="118000", fourth="1190")).rows())
    assert row.unread == ("cents",)
    assert "1180 does not stand in the text" in row.values[0].reason


def test_a_table_one_problem_and_a_live_run_read_the_same() -> None:
    data = rrf.dataset(RECIPE, ROWS[:1])
    texts = {"total": "1290", "again": "1190", "cents": "119000", "fourth": "1190"}
    (row,) = rrf.repair(data, said(**texts)).rows()
    alone = rrf.repair(data["1"], texts)
    numbers = rrf.repair(data["1"], {name: float(text) for name, text in texts.items()})
    replies = {"Total": "total", "paid": "again", "cents": "cents", "And": "fourth"}
    model = ScriptedModel(lambda asked: texts[next(n for word, n in replies.items() if word in asked.prompt)])
    (item,) = rrf.acquire(data, model=model).items
    recorded = rrf.acquire(data, responses=said(**texts)).items[0]
    assert dict(alone.erased) == dict(numbers.erased) == dict(item.failed) == dict(recorded.failed)
    assert dict(alone.erased) == {"total": "vetoed"}
    assert {row.assumes, alone.assumes, numbers.assumes, item.assumes, recorded.assumes} == {row.assumes}


def test_plans_and_prices_are_as_without_vetoes() -> None:
    def found(recipe: dict[str, Any]) -> Any:
        data = rrf.dataset(recipe, ROWS)
        one = rrf.estimate(data, "embedded")
        return one.calls, rrf.plan(data["1"], budget=1.0).gamma

    assert found(RECIPE) == found({key: value for key, value in RECIPE.items() if key != "veto"})


def test_whatever_the_reader_takes_from_a_text_stands_in_it() -> None:
    """The attack: a right value in every written form of the house's own table, and in others."""
    forms = [form for form in written_forms() if form.reads not in (AMBIGUOUS, NO_NUMBER, "out of range")]
    assert len(forms) > 100
    denied = [form.text for form in forms if not number_occurs(form.text, Fraction(form.reads))]
    assert denied == []


ODD = [
    *(("1.190,00 €", 1190), ("1'190.–", 1190), ("1 190,00", 1190), ("EUR 1.190", 1190), ("EUR 1,190", 1190)),
    *(("1,19 Tsd. EUR", 1190), ("$1.2k", 1200), ("USD 1.5M", 1_500_000), ("₹ 12,34,567", 1234567), ("3 ½ h", 3.5)),
    *(("12€50", 12.5), ("(45.00)", -45), ("45,00-", -45), ("47 60", 60), ("4760 ct", 47.6), ("19 %", 0.19)),
    *(("٤٧٫٦٠", 47.6), ("2 119,00", 119), ("no. 7/2024", 2024), ("1.2e3", 1200), (".5 l", 0.5), ("4,-", 4)),
    *(("three boxes", 3), ("twelve hundred", 1200), ("03.05.2024", 5), ("1/3 of it", 1 / 3), ("1,234,5", 12345)),
    *(("12,13 and 14", 13), ("INV2024-0042", 42), ("1200\u200b0", 12000), ("1,19 Mio", 1_190_000)),
]


@pytest.mark.parametrize(("text", "value"), ODD)
def test_odd_forms_are_not_denied(text: str, value: float) -> None:
    assert number_occurs(f"Total: {text} due", Fraction(value), Fraction(1, 10**9))


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.190,00 EUR", 1290), ("12 x 4.50 = 54.00", 540), ("1.190,00", 1.19), ("47.60", 46.7), ("2024-05-03", 119)],
)
def test_what_nobody_could_read_there_is_denied(text: str, value: float) -> None:
    assert not number_occurs(text, Fraction(str(value)))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "2024-05-03",
            "03/05/2024",
            "5/3/24",
            "3. Mai 2024",
            "le 3 mai 2024",
            "May 3rd, 2024",
            "20240503",
            "3-May-24",
        ),
        *("3 de mayo de 2024", "2024年5月3日", "03.05.24", "the third of May 2024", "Inv. 2024/17, 3 May", "240503"),
    ],
)
def test_a_day_is_found_in_any_form(text: str) -> None:
    assert day_occurs(f"Date: {text}.", date(2024, 5, 3))


def test_another_day_is_not() -> None:
    assert not day_occurs("Invoice of 3 May 2024, due in 14 days", date(2024, 5, 4))
    assert not day_occurs("Invoice of 3 May 2024", date(2023, 5, 3))


def test_words_occur_whatever_parts_them() -> None:
    assert words_occur("MÜLLER & SÖHNE\nGmbH", "Mueller & Soehne GmbH")
    assert not words_occur("Müller & Söhne GmbH", "Meyer GmbH")


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("iban", "DE89 3704 0044 0532 0130 00", "DE89 3704 0044 0532 0130 01"),
        ("iban", "IBAN: GB29 NWBK 6016 1331 9268 19", "GB29 NWBK 6016 1331 9268 91"),
        ("isbn", "978-0-306-40615-7", "978-0-306-40615-8"),
        ("isbn", "0-306-40615-2", "0-306-40615-3"),
        ("isbn", "306406152", "306406153"),  # read as a number, it lost its zero
        ("isbn", "080442957X", "0804429571"),
        ("ean", "4006381333931", "4006381333932"),
        ("ean", "EAN-13: 4006381333931", "73513538"),
        ("ean", "73513537", "4006381333930"),
        ("luhn", "4539 1488 0343 6467", "4539 1488 0343 6468"),
        ("vat", "DE136695976", "DE136695977"),
        ("vat", "ATU13585627", "ATU13585628"),
        ("vat", "BE0428759497", "BE0428759498"),
        ("vat", "IT00743110157", "IT00743110158"),
        ("vat", "FR40303265045", "FR41303265045"),
        ("vat", "NL004495445B01", "NL004495446B01"),
        ("vat", "PL8567346215", "PL8567346216"),
        ("vat", "PT501964843", "PT501964842"),
        ("vat", "FI20774740", "FI20774741"),
        ("vat", "LU15027442", "LU15027443"),
        ("vat", "SE556188840401", "SE556188840501"),
        ("date", "2024-02-29", "2023-02-29"),
    ],
)
def test_check_digits(kind: str, right: str, wrong: str) -> None:
    assert (refuted(kind, right), refuted(kind, wrong) is None) == (None, False)


def test_what_nobody_can_check_is_kept() -> None:
    for kind, text in (("vat", "GB123456789"), ("vat", "123456789"), ("luhn", "**** 6467"), ("date", "3 May")):
        assert refuted(kind, text) is None


FIELDS: dict[str, Any] = {
    "answer": [
        *({"of": "a.vat"}, {"of": "a.no"}, {"of": "a.date", "parse": "date"}),
        *({"of": "a.total", "tolerance": 0.01}, {"of": "a.supplier"}),
    ],
    "ask": [{"id": "a", "prompt": "{{ text }}"}, {"id": "b", "like": "a", "prompt": "Again. {{ text }}"}],
    "veto": [
        {"of": "a.vat", "digits": "vat"},
        {"of": "a.no", "regex": r"[A-Z]{2}-\d{3}"},
        {"of": "a.date", "within": ["2024-01-01", "2024-12-31"]},
        {"of": "a.total", "within": [0, 1e5]},
        {"of": "a.supplier", "lookup": "suppliers.csv:name"},
    ],
}
GOOD = {"vat": "DE 136 695 976", "no": "ab-123", "date": "3 May 2024", "total": 100000.01, "supplier": "HILL garage"}
BAD = {"vat": "DE 136 695 977", "no": "a-123", "date": "3 May 2023", "total": -1, "supplier": "Hall Garage"}


def test_every_kind_on_the_fields_of_a_document(tmp_path: Path) -> None:
    (tmp_path / "suppliers.csv").write_text("name,vat\nHill Garage,1\n007,2\n")
    recipe = recipe_from_document(FIELDS, folder=tmp_path)
    data = rrf.dataset(recipe, [{"text": "x"}])
    rows = [{"id": "1", "node": "a", "text": json.dumps(GOOD)}, {"id": "1", "node": "b", "text": json.dumps(BAD)}]
    (row,) = rrf.repair(data, rows).rows()
    assert set(row.unread) == {f"b.{name}" for name in GOOD}
    (item,) = rrf.acquire(data, responses=rows).items
    assert set(item.failed) == set(row.unread)
    (tmp_path / "suppliers.csv").unlink()
    with pytest.raises(rrf.InputError, match="no such file"):
        rrf.dataset(recipe, [{"text": "x"}])


def test_no_veto_speaks_of_an_empty_text() -> None:
    read = parsers.get("decimal").parse
    assert vetoed({"a": [{"in_text": " "}]}, {"a": read("7")}) == {}
    assert vetoed({"a": [{"in_text": "8"}], "b": [{"in_text": "8"}]}, {"a": read("7")}).keys() == {"a"}
