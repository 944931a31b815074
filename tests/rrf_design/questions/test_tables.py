"""Tables as people have them, and what is wrong with their rows."""

from __future__ import annotations

import csv
import io
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

from rrf_design.errors import InputError
from rrf_design.questions.tables import SHOWN, DataTable, RowFaults, open_table


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


def test_faults_are_capped_and_counted(tmp_path: Path) -> None:
    path = file(tmp_path, "t.csv", "a,b\n" + "1\n" * 25)
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(caught.value).count("row ") == SHOWN
    assert str(caught.value).endswith(f"; and {25 - SHOWN} more")


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


def test_no_fault_is_no_error() -> None:
    RowFaults("t.csv").refuse(3)


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


def test_rows_beyond_those_told_are_counted() -> None:
    faults = RowFaults("t.csv")
    for row in range(1, SHOWN + 4):
        faults.add(row, "bad")
    with pytest.raises(InputError, match=r"; and 3 more$"):
        faults.refuse(99)
