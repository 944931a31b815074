"""Rows in a file: whole chunks are kept, what a crash left is dropped, and another run's file is
refused.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rrf_design.errors import InputError
from rrf_design.tables import _engine as module
from rrf_design.tables._engine import Checkpoint
from rrf_design.tables.rows import Row, Value
from rrf_design.verdict import Verdict

ABOUT = {"recipe": "r", "table": "t"}


def rows(first: int, last: int) -> list[Row]:
    return [Row(f"i{n}", (Value(Verdict.CONSISTENT, answer=n, raw="ü \ud800\n"),)) for n in range(first, last)]


@pytest.mark.parametrize("named", [False, True])
def test_rows_come_back_in_order_to_several_readers(tmp_path: Path, named: bool) -> None:
    checkpoint = Checkpoint(tmp_path / "rows" if named else None, about=ABOUT, chunk=2)
    assert list(checkpoint) == []
    checkpoint.add(rows(0, 2))
    one = iter(checkpoint)
    assert next(one).id == "i0"
    checkpoint.add(rows(2, 4))
    assert [row.id for row in checkpoint] == ["i0", "i1", "i2", "i3"]
    assert next(one).id == "i1"
    assert checkpoint.count == 4
    assert list(checkpoint)[1].answer == 1
    assert list(checkpoint)[1].raw == rows(1, 2)[0].raw


@pytest.mark.parametrize("cut", [0, 1, 40, 10_000])
def test_what_a_crash_left_of_a_chunk_is_dropped(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "rows"
    checkpoint = Checkpoint(path, about=ABOUT, chunk=3)
    for start in (0, 3):
        checkpoint.add(rows(start, start + 3))
    whole = path.read_bytes()
    head = whole.index(b"\n") + 1
    path.write_bytes(whole[: max(head, len(whole) - cut)])
    again = Checkpoint(path, about=ABOUT, chunk=3)
    kept = {0: 6, 1: 3, 40: 3, 10_000: 0}[cut]
    assert again.count == kept
    assert [row.id for row in again] == [f"i{n}" for n in range(kept)]
    again.add(rows(kept, kept + 3))
    assert [row.id for row in again] == [f"i{n}" for n in range(kept + 3)]


def test_the_file_of_another_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    Checkpoint(path, about=ABOUT, chunk=2).add(rows(0, 2))
    before = path.read_bytes()
    with pytest.raises(InputError, match="belongs to another recipe, table, set of answers or setting"):
        Checkpoint(path, about={**ABOUT, "table": "other"}, chunk=2)
    assert path.read_bytes() == before


def test_an_empty_file_is_a_new_one_and_a_folder_is_none(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.touch()
    assert Checkpoint(path, about=ABOUT, chunk=2).count == 0
    with pytest.raises(InputError, match="can't be used to resume from"):
        Checkpoint(tmp_path, about=ABOUT, chunk=2)


def test_many_rows_leave_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IN_MEMORY", 100)
    checkpoint = Checkpoint(None, about=ABOUT, chunk=5)
    checkpoint.add(rows(0, 50))
    assert len(list(checkpoint)) == 50
