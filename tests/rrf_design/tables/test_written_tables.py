from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from rrf_design.errors import InputError
from rrf_design.promises import read_delivered
from rrf_design.tables.delivered import deliver
from rrf_design.tables.rows import COLUMNS as DELIVERED
from rrf_design.tables.rows import delivered_names

ROWS: list[tuple[dict[str, Any], dict[str, Any]]] = [
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
    assert deliver(path, ROWS, COLUMNS) == 2
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
    deliver(path, ROWS, COLUMNS)
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
        yield ROWS[0]
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
