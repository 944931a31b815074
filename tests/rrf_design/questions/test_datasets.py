"""Tables, data sets, and rows filled in."""

from __future__ import annotations

import csv
import io
import pickle
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.files import canonical_digest
from rrf_design.questions.datasets import Dataset, dataset
from rrf_design.questions.tables import SHOWN, DataTable, RowFaults, open_table
from rrf_design.structure import structure_key


def read(source: Any, **options: Any) -> list[dict[str, Any]]:
    """All rows, every one of them found again at its place; faults are raised."""
    table = open_table(source, **options)
    faults = RowFaults(table.name)
    rows = list(table.rows(faults))
    faults.refuse(len(rows) + faults.count)
    for row in rows:
        assert dict(table.at(row.number, row.place)) == dict(row.cells)
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    return [dict(row.cells) for row in rows]


def file(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "the file is empty"),
        ("t.csv", b"\n\n", "the file is empty"),
        ("t.csv", b"a,a,b\n1,2,3\n", "column 'a' stands twice"),
        ("t.csv", b"a,,b\n1,2,3\n", "column 2 has no name"),
        ("t.csv", b"a;b\n1;2\n", 'say separator = ";"'),
        ("t.csv", "a,b\n1,2\n".encode("utf-16"), "UTF-16"),
        ("t.csv", b"PK\x03\x04rest", "zip file"),
        ("t.csv", b"a,b\r1,2\r", "lone carriage returns"),
        (
            "t.csv",
            b"a,b\n1\n1,2\n1,2,3\n",
            r"2 of 3 rows can't be used: row 1: 1 cells where the header has 2 \(line 2\); row 3: 3",
        ),
        (
            "t.csv",
            b"a,b\n1,\xe9\n2,x\n",
            (
                r"1 of 2 rows .* row 1: not UTF-8 text \(byte 0xe9 at 3 of line 2; if it is Latin-1, say encoding ="
                r" 'latin-1' in .data.\)"
            ),
        ),
        (
            "t.csv",
            b"a,b\n" + b"1,2\n" * 9000 + b"1,\0\n3\0,4\n",
            r"2 of 9002 rows .* row 9001: a NUL character at 3 of line 9002: damaged, or no text .*; row 9002: a NUL",
        ),
        ("t.csv", b'a,b\n1,"x\n2,y\n', "row 1: a quote that is never closed"),
        ("t.csv", b'a,b\n1,"x"y\n2,y\n', "row 1: text after a closing quote"),
        (
            "t.jsonl",
            b'{"a": 1}\n[1]\n{"a"\n{"a": 1, "a": 2}\n{"a": NaN}\n',
            (
                "4 of 5 rows .*row 2: must be a JSON object.*row 3: not valid JSON.*row 4: .*the key 'a' stands"
                " twice.*row 5: .*NaN"
            ),
        ),
        ("t.jsonl", b'{"a": "\xe9"}\n{"a": 2}\n', "1 of 2 rows .*row 1: not UTF-8"),
        ("t.jsonl", b'{"a": ' + b"[" * 100000, "nested too deep"),
        ("t.jsonl", b'{"a": ' + b"9" * 10000 + b"}", "row 1: not valid JSON"),
        ("t.jsonl", rb'{"a": 1}' + b"\n" + rb'{"a": ["\ud800"]}', r"1 of 2 rows .*row 2: half a character"),
        ("t.json", b'{"a": 1}', "must be a list of objects"),
        ("t.json", b"[1, {}]", "row 1: must map columns to cells, not int"),
        ("t.json", b"[", "not valid JSON"),
        ("t.parquet", b"no such thing", "not a Parquet file"),
        ("t.xlsx", b"PK", "tables end in .csv"),
    ],
)
def test_faults_are_one_line(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(file(tmp_path, name, content))
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


def test_what_is_no_table() -> None:
    for source in ({"a": [1]}, 3, b"bytes"):
        with pytest.raises(InputError, match="a table is"):
            open_table(source)
    with pytest.raises(InputError, match="no such file"):
        open_table("nowhere.csv")


def test_faults_beyond_those_told_are_counted(tmp_path: Path) -> None:
    RowFaults("t.csv").refuse(3)
    path = file(tmp_path, "t.csv", "a,b\n" + "1\n" * 25)
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(caught.value).count("row ") == SHOWN
    assert str(caught.value).endswith(f"; and {25 - SHOWN} more")
    faults = RowFaults("t.csv")
    for row in range(1, SHOWN + 4):
        faults.add(row, "bad")
    with pytest.raises(InputError, match=r"; and 3 more$"):
        faults.refuse(99)


def test_cells_stay_what_they_are(tmp_path: Path) -> None:
    rows = [{"no": "007", "x": "1e5"}, {"no": " a ", "x": "TRUE"}, {"no": "", "x": "=1+1"}]
    text = "\ufeffno,x\r\n007,1e5\r\n\r\n a ,TRUE\r\n,=1+1\r\n"
    assert read(file(tmp_path, "t.csv", text)) == rows
    assert read(file(tmp_path, "t.tsv", text.replace(",", "\t"))) == rows
    assert read(file(tmp_path, "u.csv", text.replace(",", ";")), separator=";") == rows
    lines = '{"no": "007", "n": 7, "x": 1.10, "big": 123456789012345678901234567890}\n\n{"no": null}\n'
    exact = [{"no": "007", "n": 7, "x": Decimal("1.10"), "big": 123456789012345678901234567890}, {"no": None}]
    found = read(file(tmp_path, "t.jsonl", lines))
    assert found == exact
    assert str(found[0]["x"]) == "1.10"
    assert read(file(tmp_path, "t.json", '[{"no": "007"}]')) == [{"no": "007"}]
    assert read(file(tmp_path, "l.csv", "no\n\xe9\n".encode("latin-1")), encoding="latin-1") == [{"no": "é"}]


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=6), min_size=2, max_size=2),
        max_size=6,
    )
)
def test_what_the_csv_module_writes_is_read_back(
    rows: list[list[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["a", "b"])
    writer.writerows(rows)
    path = file(tmp_path_factory.mktemp("csv"), "t.csv", text.getvalue())
    assert [list(row.values()) for row in read(path)] == rows


def test_data_frames_and_parquet(tmp_path: Path) -> None:
    rows = [{"no": "007", "n": 1}, {"no": None, "n": 2}]
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=1)
    assert read(path) == rows
    assert read(polars.DataFrame(rows)) == rows
    assert read(polars.DataFrame(rows).lazy()) == rows
    assert read(pyarrow.Table.from_pylist(rows)) == rows
    assert read(pandas.DataFrame(rows)) == rows  # pandas may say nan for None: no value either way


def test_numbers_of_a_frame_are_plain_numbers() -> None:
    (row,) = read(pandas.DataFrame({"no": [7], "x": [1.5], "gone": [float("nan")]}))
    assert row == {"no": 7, "x": 1.5, "gone": None}
    assert [type(cell) for cell in row.values()] == [int, float, type(None)]


def test_iterables_of_mappings() -> None:
    rows = [{"a": 1}, {"a": 2}]
    assert read(rows) == rows
    assert read(row for row in rows) == rows
    with pytest.raises(InputError, match="row 1: columns must have text"):
        read([{1: 2}])


def test_a_million_rows_would_be_read_one_by_one(tmp_path: Path) -> None:
    """The reader gives the first row before it has looked at the last, which is broken here."""
    for name, content in (("t.csv", "a\n" + "x\n" * 9999 + "x,y\n"), ("t.jsonl", '{"a": 1}\n' * 9999 + "{\n")):
        faults = RowFaults("t")
        rows: Iterator[Any] = open_table(file(tmp_path, name, content)).rows(faults)
        assert next(rows).number == 1
        assert faults.count == 0
        assert sum(1 for _ in rows) == 9998
        assert faults.count == 1


def test_a_file_that_changed_is_noticed(tmp_path: Path) -> None:
    path = file(tmp_path, "t.csv", "a,b\n1,2\n3,4\n")
    table: DataTable = open_table(path)
    place = list(table.rows(RowFaults("t")))[1].place
    path.write_text("a,b\n")
    with pytest.raises(InputError, match="row 2 is no longer where it was"):
        table.at(2, place)


def test_faults_are_told_in_the_order_of_the_rows() -> None:
    faults = RowFaults("t.csv")
    faults.add(9, "late")
    faults.skip(2, "early")
    faults.add(9, "again")
    assert (faults.count, faults.unread) == (2, 1)
    with pytest.raises(
        InputError, match=r"^t.csv: 2 of 10 rows can't be used: row 2: early; row 9: again; row 9: late$"
    ):
        faults.refuse(10)


RECIPE: dict[str, Any] = {
    "data": {"id": "no"},
    "answer": {"of": "a"},
    "ask": [{"id": "a", "prompt": "{{ x }}"}, {"id": "b", "prompt": "Again: {{ x }}", "like": "a"}],
    "check": [{"id": "c", "of": "a", "by": {"value": "{{ v }}"}, "cost": 1.0, "when": "{{ v }}"}],
}
ROWS = [{"no": f"{i:03}", "x": f"q{i}", "v": str(i) if i % 2 else ""} for i in range(10)]


def test_a_mapping_from_id_to_problem(invoices: Path) -> None:
    found = rrf.dataset(invoices / "rrf.toml")
    assert list(found) == ["007", "008", "009"]
    assert len(found) == 3
    assert (
        found["008"].node_by_id["total"].prompt
        == 'Pay {{ no }} {now}\n[[ask]] Return JSON only: {"total": gross amount}'
    )
    assert found["007"].name == "007"
    assert "007" in found
    assert "7" not in found
    with pytest.raises(KeyError):
        found["7"]
    with pytest.raises(InputError, match="no item '07'; did you mean '007'"):
        found.item("07")
    assert dict(found) == {item.id: item.problem for item in found.items_in_order()}


def test_structures_are_few(invoices: Path) -> None:
    found = dataset(invoices / "rrf.toml")
    assert sorted(entry.count for entry in found.structures.values()) == [
        1,
        1,
        1,
    ]  # two have a ledger, at different prices
    plain = dataset(RECIPE, ROWS)
    assert sorted(entry.count for entry in plain.structures.values()) == [5, 5]
    for item in plain.items_in_order():
        assert item.structure == structure_key(item.problem) == structure_key(plain.structures[item.structure].example)


def test_the_truth_is_seen_by_nobody(invoices: Path) -> None:
    found = dataset(invoices / "rrf.toml")
    assert found.item("007").gold == "119"
    path = invoices / "rrf.toml"
    path.write_text(path.read_text().replace("How many cents? {{ text }}", "How many cents? {{ booked }}"))
    with pytest.raises(InputError, match=r"ask 'cents' prompt, line \d+ of rrf.toml: 'booked' is the gold column"):
        dataset(path)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "holds no rows"),
        (
            [{"no": "1", "x": "q", "v": ""}, {"no": "1", "x": "q", "v": ""}],
            "1 of 2 rows .*row 2: the id '1' stands in row 1 already",
        ),
        ([{"no": 1, "x": "q", "v": ""}, {"no": "1", "x": "q", "v": ""}], "row 2: the id '1' stands in row 1"),
        (
            [{"no": " ", "x": "q", "v": ""}, {"no": None, "x": "q", "v": ""}],
            "2 of 2 rows .*row 1: the id in column 'no' is empty; row 2",
        ),
        ([{"no": 1.5, "x": "q", "v": ""}], "ids are text or whole numbers"),
        ([{"no": True, "x": "q", "v": ""}], "ids are text or whole numbers"),
        (
            [{"no": "1", "x": "", "v": "a"}, {"no": "2", "x": "q", "v": "1"}, {"no": "3", "x": "q", "v": "1,5"}, 3],
            (
                "3 of 4 rows can't be used: row 1: .*'v' is 'a'.*; row 1: column 'x' is empty.*; row 3: .*'1,5'.*; row"
                " 4: must map"
            ),
        ),
        ([{"no": "1", "x": "q", "v": ""}, {"no": "2", "v": ""}], "1 of 2 rows .*row 2: .*no variable 'x'"),
        ([{"no": "1", "y": "q", "v": ""}], "no column 'x'"),
    ],
)
def test_bad_rows_are_named_together(rows: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        dataset(RECIPE, rows)
    assert "\n" not in str(caught.value)


def test_columns_are_checked_once(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("no,y,v\n1,q,\n")
    with pytest.raises(InputError, match=r"t.csv: no column 'x' \(ask 'a' prompt"):
        dataset(RECIPE, path)
    path.write_text("number,x,v\n1,q,\n")
    with pytest.raises(InputError, match="no column 'no' for the id"):
        dataset(RECIPE, path)
    slip = {**RECIPE, "ask": [{"id": "a", "prompt": "{x}"}]}
    with pytest.raises(InputError, match=r"\{x\} is not filled in; write \{\{ x \}\}.*\(ask 'a' prompt"):
        dataset(slip, ROWS)


def test_rows_are_counted_and_need_not_have_every_key() -> None:
    recipe = {key: value for key, value in RECIPE.items() if key != "data"}
    assert list(dataset(recipe, ROWS[:3])) == ["1", "2", "3"]
    recipe = {"answer": {"of": "a"}, "ask": [{"id": "a", "prompt": "{{ x | default('nothing') }}?"}]}
    found = dataset(recipe, [{"y": 1}, {"x": "q"}])
    assert [item.prompts["a"] for item in found.items_in_order()] == ["nothing?", "q?"]


def test_any_kind_of_table(tmp_path: Path) -> None:
    text = tmp_path / "t.csv"
    text.write_text("no,x,v\n" + "".join(f"{row['no']},{row['x']},{row['v']}\n" for row in ROWS))
    lines = tmp_path / "t.jsonl"
    polars.DataFrame(ROWS).write_ndjson(lines)
    frame = polars.DataFrame(ROWS)
    expected = dict(dataset(RECIPE, ROWS))
    for table in (text, lines, frame, iter(ROWS)):
        found = dataset(RECIPE, table)
        assert dict(found) == expected
        assert found["003"] == expected["003"]
        assert found.columns == ("no", "x", "v")


def test_limit_sample_and_only() -> None:
    whole = dataset(RECIPE, ROWS)
    assert list(whole.limit(3)) == ["000", "001", "002"]
    assert len(whole.limit(99)) == 10
    drawn = whole.sample(4, seed=5)
    assert list(drawn) == sorted(drawn)
    assert list(drawn) == list(whole.sample(4, seed=5))
    assert len(set(drawn)) == len(drawn) == 4
    assert {tuple(whole.sample(4, seed=seed)) for seed in range(9)} != {tuple(drawn)}
    assert list(drawn.limit(2)) == list(drawn)[:2]
    assert sum(entry.count for entry in drawn.structures.values()) == 4
    part = whole.only(["007", "003"])
    assert list(part) == ["003", "007"]
    assert "001" not in part
    for wrong in (lambda: whole.limit(0), lambda: whole.sample(0), lambda: whole.only("x")):
        with pytest.raises(InputError):
            wrong()


def test_a_plain_problem_with_a_table_is_a_recipe() -> None:
    problem = rrf.Problem(nodes=[{"id": "n", "prompt": "{{ x }}?"}])
    found = dataset(problem, [{"x": "a"}, {"x": "b"}])
    assert isinstance(found, Dataset)
    assert found["2"].nodes[0].prompt == "b?"


def test_without_a_table_there_is_nothing_to_ask() -> None:
    with pytest.raises(InputError, match="names no table"):
        dataset(RECIPE)


def test_items_are_streamed_and_equal_what_is_looked_up(invoices: Path) -> None:
    found = dataset(invoices / "rrf.toml")
    assert list(found.items()) == [(name, found[name]) for name in found]


def test_a_data_set_goes_to_another_process(invoices: Path) -> None:
    found = dataset(invoices / "rrf.toml")
    assert found["007"] is not None  # with its index made
    again = pickle.loads(pickle.dumps(found.limit(2)))
    assert dict(again.items()) == dict(found.limit(2).items())


def test_a_fault_names_row_column_and_line(invoices: Path) -> None:
    table = invoices / "invoices.csv"
    table.write_text(table.read_text().replace("25,2,4.20", "25,two,4.20"))
    line = (invoices / "rrf.toml").read_text().splitlines().index('cost = "{{ minutes }}"') + 1
    with pytest.raises(InputError) as caught:
        dataset(invoices / "rrf.toml")
    assert str(caught.value).startswith(
        f"{table}: 1 of 3 rows can't be used: row 2: column 'minutes' is 'two', not a number"
    )
    assert str(caught.value).endswith(f"(check 'clerk' cost, line {line} of rrf.toml)")


@settings(max_examples=100, deadline=None)
@given(cell=st.text(st.characters(codec="utf-8"), min_size=1), other=st.text(st.characters(codec="utf-8")))
def test_whatever_stands_in_a_cell_arrives_as_it_is(cell: str, other: str) -> None:
    """Templates, braces, JSON, control characters: a cell is data, in the prompt, on the way
    through a file, and as an id.
    """
    recipe = {"data": {"id": "no"}, "answer": {"of": "a"}, "ask": [{"id": "a", "prompt": "{{ x }} {{ y }}?"}]}
    name = f"id {cell}"
    problem = dataset(recipe, [{"no": name, "x": cell, "y": other}])[name]
    assert problem.nodes[0].prompt == f"{cell} {other}?"
    assert rrf.loads(rrf.dumps(problem)) == problem


def test_a_digest_by_exchanged_texts_is_that_of_the_document() -> None:
    """Also where prices and conditions differ by row, and texts hold what JSON escapes."""
    ask = {"prompt": "{{ x }}: {{ v }}?\n{{ x }}", "parse": "decimal"}
    recipe = {
        "data": {"id": "no"},
        "answer": {"of": "a"},
        "ask": [{"id": "a", **ask}, {"id": "b", "like": "a", "cost": "{{ price }}", **ask}],
        "check": [{"id": "p", "of": "a", "by": {"person": "Is {{ x }} right?"}, "cost": 2, "when": "{{ v }}"}],
    }
    cells = ["plain", 'q"\\', "\ue0000\ue001", "{{ x }}", 3, 1.5, None, True, [1, "é"]]
    rows = [{"no": str(n), "x": x, "v": "" if n % 3 else x, "price": n % 2} for n, x in enumerate(cells)]
    for item in dataset(recipe, rows).items_in_order():
        assert item.digest == canonical_digest(item._dataset._filler.document(item.seen))


def test_a_digest_changes_with_what_is_asked_and_with_nothing_else() -> None:
    def digests(recipe: Any, rows: list[dict[str, Any]]) -> list[str]:
        return [item.digest for item in dataset(recipe, rows).items_in_order()]

    before = digests(RECIPE, ROWS)
    assert len(set(before)) == len(ROWS)
    assert digests(RECIPE, [{**row, "unused": "x"} for row in ROWS] + [{"no": "new", "x": "q", "v": ""}])[:-1] == before
    changed = digests(RECIPE, [{**row, "x": "other"} if row["no"] == "003" else row for row in ROWS])
    assert [place for place, pair in enumerate(zip(before, changed, strict=True)) if pair[0] != pair[1]] == [3]
    reworded = {**RECIPE, "ask": [{"id": "a", "prompt": "{{ x }}!"}, RECIPE["ask"][1]]}
    assert not set(before) & set(digests(reworded, ROWS))
    assert dataset(RECIPE, ROWS).recipe.digest != dataset(reworded, ROWS).recipe.digest


def test_parsers_of_an_item(invoices: Path) -> None:
    found = dataset(invoices / "rrf.toml")
    first, second = found.item("007"), found.item("008")
    assert first.parsers["parts"].parse('{"net": 1, "tax": 2}').value == (1.0, 2.0)
    assert set(first.parsers) == {node.id for node in first.problem.nodes}
    assert first.parsers["total"] is second.parsers["total"]
