"""Which rows were delivered, by which column, and what a reviewer sees of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rrf_design.errors import InputError
from rrf_design.promises import read_delivered
from rrf_design.promises.audits import read_run_document


@pytest.fixture
def table(tmp_path: Path) -> Any:
    path = tmp_path / "delivered.csv"
    path.write_text("no,answer,booked\n1,1,1\n2,,2\n3,4,3\n")
    return read_delivered(path, id_column="no")


def test_rows_without_an_answer_were_not_delivered(table: Any) -> None:
    assert (table.ids, table.answers) == (("1", "3"), ("1", "4"))


def test_the_digest_is_of_ids_answers_and_their_columns(tmp_path: Path, table: Any) -> None:
    digests = {table.digest}
    for text in ("no,answer\n1,1\n3,5\n", "no,answer\n3,4\n1,1\n", "no,rrf_answer\n1,1\n3,4\n"):
        (tmp_path / "other.csv").write_text(text)
        digests.add(read_delivered(tmp_path / "other.csv", id_column="no").digest)
    assert len(digests) == 4
    (tmp_path / "other.csv").write_text("no,answer,more\n1,1,x\n3,4,y\n")
    assert read_delivered(tmp_path / "other.csv", id_column="no").digest == table.digest


def test_a_document_that_is_no_run(make_world: Any) -> None:
    with pytest.raises(InputError, match="audit what was delivered, a table or a run of one; this is 'rrf-policy'"):
        read_run_document({"format": "rrf-policy"}, "policy.json", make_world(items=5).dataset)


def test_people_see_the_row_and_neither_answer_nor_truth(table: Any) -> None:
    assert table.shown(0) == "no: 1; booked: 1"
    assert table.shown(0, without="booked") == "no: 1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no,value\n1,2\n", "no column 'answer'"),
        ("no,answer\n1,\n", "no row has an answer"),
        ("no,answer\n1,2\n1,3\n", "not unique"),
        ("no,answer\n1,2,3\n1,3,4\n2,2\n", "2 of 3 rows can't be used"),
    ],
)
def test_a_table_that_cannot_be_audited(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=words):
        read_delivered(tmp_path / "t.csv", id_column="no")
