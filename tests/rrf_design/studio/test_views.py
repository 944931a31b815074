"""What the studio shows of a folder, row by row."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.studio._index import Delivered, ListView, TableIndex
from rrf_design.tables import write_output

from .conftest import HOSTILE, made

Open = Callable[..., Any]


@pytest.fixture
def studio(open_studio: Open, repaired: Path) -> Any:
    return open_studio(repaired)


def cells(text: str, place: int) -> list[str]:
    rows = re.findall(r"<tr>(<td.*?)</tr>", text)
    return [re.sub("<.*?>", "", re.findall("<td.*?</td>", row)[place]) for row in rows]


def test_home_names_everything_with_its_sentence(studio: Any) -> None:
    text = studio.get("/").text
    assert "60 rows: 57 consistent" in text
    for name in ("out.csv", "out.jsonl", "out.json"):
        assert name in text
    assert "answers.jsonl" not in text


def test_a_damaged_document_says_so_and_hides_nothing_else(open_studio: Open, repaired: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"format": "rrf-plan", "version": 1')
    (tmp_path / "strange.json").write_text("[1, 2]")
    (tmp_path / "out.csv").write_bytes((repaired / "out.csv").read_bytes())
    text = open_studio(tmp_path).get("/").text
    assert "be shown: " in text
    assert "59 rows: 56 consistent" in text
    assert "strange.json" not in text


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.json"])
def test_rows_are_filtered_searched_sorted_and_paged_by_the_server(studio: Any, name: str) -> None:
    rows = 59 if name == "out.csv" else 60  # no row of a CSV file may hold a NUL character
    first = studio.get("/items", of=name).text
    assert f"{rows} of {rows} rows" in first
    assert ("1 of the file can't be read" in first.replace("&#x27;", "'")) == (rows == 59)
    assert "page 1 of 2" in first
    assert f"9 of {rows} rows" in studio.get("/items", of=name, q="INV/5").text
    contradicted = studio.get("/items", of=name, verdict="contradicted").text
    assert f"2 of {rows} rows" in contradicted
    assert "inv/5" in contradicted
    assert f"1 of {rows} rows" in studio.get("/items", of=name, only="changed").text
    assert f"3 of {rows} rows" in studio.get("/items", of=name, only="waiting").text


def test_the_state_of_a_list_is_in_its_address(studio: Any) -> None:
    text = studio.get("/items", of="out.csv", q="inv", sort="answer", desc="1").text
    assert "q=inv&amp;sort=answer&amp;desc=1&amp;page=2" in text
    assert [float(cell) for cell in cells(text, 2)[:3]] == [67.0, 66.0, 65.0]
    back = studio.get("/item", of="out.csv", id="inv/57", q="inv", sort="answer", desc="1").text
    assert "1 of 58" in back
    assert "id=inv%2F56&amp;q=inv&amp;sort=answer&amp;desc=1" in back


def test_an_item_shows_who_said_what(studio: Any) -> None:
    text = studio.get("/item", of="out.csv", id="inv/3").text
    groups = re.sub("<.*?>", " ", text[text.index("said by") : text.index("The field")])
    assert re.search(r"13 +2 +again, cents", groups)
    assert re.search(r"99 +1 +sum", groups)
    assert "sum: found wrong; means 99" in text
    assert "node wrong" in text
    assert "3 + 10 of inv/3 Sum?" in text


def test_a_table_alone_shows_its_rows(open_studio: Open, repaired: Path, tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_bytes((repaired / "out.csv").read_bytes())
    text = open_studio(tmp_path).get("/item", of="out.csv", id="inv/3").text
    assert "No recipe lies beside this table" in text
    assert "3 + 10 of inv/3" in text


@pytest.mark.parametrize("name", [HOSTILE, "nul\x00id"])
def test_hostile_ids_are_shown_and_found(studio: Any, name: str) -> None:
    listed = studio.get("/items", of="out.jsonl", page="2")
    assert listed.status_code == 200
    assert "<script>window" not in listed.text
    assert "<img" not in listed.text
    assert "\u202e" not in listed.text
    links = [link.replace("&amp;", "&") for link in re.findall(r'href="(/item\?[^"]*)"', listed.text)]
    found = [studio.own.get(link) for link in links]
    assert [answer.status_code for answer in found] == [200] * len(links)
    assert not any("<script>window" in answer.text or "\u202e" in answer.text for answer in found)


def test_a_text_of_a_megabyte_is_cut_in_the_list_and_whole_behind_it(open_studio: Open, tmp_path: Path) -> None:
    long = "x" * 1_000_000
    ours = "answer,raw,verdict,assumes,bound,changed,cost,reason,rank"
    (tmp_path / "t.csv").write_text(f"id,text,{ours}\n1,{long},1,1,checked,,0,false,0,,\n", encoding="utf-8")
    studio = open_studio(tmp_path)
    assert len(studio.get("/items", of="t.csv").text) < 20_000
    assert long in studio.get("/item", of="t.csv", id="1").text


def test_large_files_of_answers_are_read_ahead_once(
    open_studio: Open, repaired: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rrf_design.studio._library.LARGE", 0)
    studio = open_studio(repaired)
    for _ in range(3):
        assert studio.get("/items", of="out.csv").status_code == 200
    assert "sum: found wrong; means 99" in studio.get("/item", of="out.csv", id="inv/3").text


def test_delivered_columns_are_known_by_their_place() -> None:
    ours = ("answer", "raw", "verdict", "assumes", "bound", "changed", "cost", "reason", "rank")
    found = Delivered.of(("answer", "verdict", *(f"rrf_{name}" for name in ours[:1]), *ours[1:]))
    assert found is not None
    assert found.own == ("answer", "verdict")
    assert found.ours["answer"] == "rrf_answer"
    field = ("raw", "verdict", "reason", "bound", "assumes", "changed")
    several = ["no", *(name for one in ("total", "date") for name in (one, *(f"{one}_{part}" for part in field)))]
    fields = Delivered.of((*several, "verdict", "cost", "rank"))
    assert fields is not None
    assert (fields.own, fields.fields) == (("no",), ("total", "date"))
    assert Delivered.of(("no", "verdict")) is None


def test_an_index_hides_rows_by_any_name_they_could_have(repaired: Path) -> None:
    index = TableIndex(repaired / "out.csv", id_column=None)
    index.hide({"inv/3", "7"})
    assert index.found(ListView())[0] == 57
    assert index.row("inv/3") is None
    index.hide(())
    assert index.found(ListView())[0] == 59


def test_two_tables_are_compared_row_by_row(open_studio: Open, tmp_path: Path) -> None:
    first = made(tmp_path / "one", ["a", "b", "c"], {"b": {"sum": "1", "again": "2", "cents": "300"}})
    second = made(tmp_path / "two", ["a", "b", "c"], {"c": {"sum": "7"}})
    for folder in (first, second):
        write_output(folder / "out.csv", rrf.repair(rrf.dataset(folder / "r.toml"), folder / "answers.jsonl"))
    studio = open_studio(tmp_path)
    text = studio.get("/compare", a="one/out.csv", b="two/out.csv").text
    assert "1 of 3 rows that both have changed: 1 values, 1 verdicts." in text
    assert "/item?of=two%2Fout.csv&amp;id=b" in text
    assert ">contradicted</td>" in text
    assert "Two delivered tables" in studio.get("/compare").text
    assert studio.get("/compare", a="one/out.csv", b="nowhere").status_code == 404


def test_rows_are_filtered_by_a_column(studio: Any) -> None:
    assert "1 of 59 rows" in studio.get("/items", of="out.csv", column="no", holds="v/33").text
    assert "59 of 59 rows" in studio.get("/items", of="out.csv", column="nowhere", holds="v/33").text
    page = studio.get("/items", of="out.json", column="wrong", holds="sum").text
    assert "of 60 rows" in page
    assert "60 of 60 rows" not in page


def test_rows_are_filtered_by_who_was_wrong(open_studio: Open, tmp_path: Path) -> None:
    wrong = {"b": {"sum": "1"}, "c": {"sum": "7"}, "d": {"again": "5"}}
    folder = made(tmp_path, list("abcd"), wrong)
    delivery = rrf.repair(rrf.dataset(folder / "r.toml"), folder / "answers.jsonl")
    for name in ("out.csv", "out.json"):
        write_output(folder / name, delivery)
    studio = open_studio(folder)
    text = studio.get("/items", of="out.json", who="sum").text
    assert re.findall(r"<option[^>]*>([^<]*\(\d+\))</option>", text) == ["sum (2)", "again (1)"]
    assert "2 of 4 rows" in text
    assert "id=b&amp;who=sum" in text
    assert "1 of 4 rows" in studio.get("/items", of="out.json", who="sum", column="answer", holds="12").text
    assert "0 of 4 rows" in studio.get("/items", of="out.json", who="cents").text
    assert "no column that says who was wrong" in studio.get("/items", of="out.csv").text
    index = TableIndex(folder / "out.json")
    index.hide({"b", "d"})
    assert index.wrong() == {"sum": 1}


def test_what_more_labels_would_say_of_an_untested_table(studio: Any) -> None:
    text = studio.get("/promise", of="out.csv").text
    assert "What 56 more labels would say" in text
    assert "Nobody has tested the 56 consistent rows" in text
    assert "out.csv" in studio.get("/promise").text


def test_a_document_without_a_proof_is_not_proven(studio: Any) -> None:
    assert studio.get("/proof", of="out.json").status_code == 404
    assert studio.get("/steps", of="out.json").status_code == 404
