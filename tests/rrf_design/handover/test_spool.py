"""Rows in a file: whole chunks are kept, what a crash left is dropped, and another run's file is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from rrf_design.errors import InputError
from rrf_design.handover import spool as module
from rrf_design.handover.rows import DeliveredRow
from rrf_design.handover.spool import Spool
from rrf_design.verdict import Verdict

ABOUT = {"recipe": "r", "table": "t"}


def rows(first: int, last: int) -> list[DeliveredRow]:
    return [DeliveredRow(f"i{n}", Verdict.CERTIFIED, answer=n, raw="ü \ud800\n") for n in range(first, last)]


@pytest.mark.parametrize("named", [False, True])
def test_rows_come_back_in_order_to_several_readers(tmp_path: Path, named: bool) -> None:
    spool = Spool(tmp_path / "rows" if named else None, about=ABOUT, chunk=2)
    assert list(spool) == []
    spool.add(rows(0, 2))
    one = iter(spool)
    assert next(one).id == "i0"
    spool.add(rows(2, 4))
    assert [row.id for row in spool] == ["i0", "i1", "i2", "i3"]
    assert next(one).id == "i1"
    assert spool.count == 4
    assert list(spool)[1].answer == 1
    assert list(spool)[1].raw == rows(1, 2)[0].raw


@pytest.mark.parametrize("cut", [0, 1, 40, 10_000])
def test_what_a_crash_left_of_a_chunk_is_dropped(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "rows"
    spool = Spool(path, about=ABOUT, chunk=3)
    for start in (0, 3):
        spool.add(rows(start, start + 3))
    whole = path.read_bytes()
    head = whole.index(b"\n") + 1
    path.write_bytes(whole[: max(head, len(whole) - cut)])
    again = Spool(path, about=ABOUT, chunk=3)
    kept = {0: 6, 1: 3, 40: 3, 10_000: 0}[cut]
    assert again.count == kept
    assert [row.id for row in again] == [f"i{n}" for n in range(kept)]
    again.add(rows(kept, kept + 3))
    assert [row.id for row in again] == [f"i{n}" for n in range(kept + 3)]


def test_the_file_of_another_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    Spool(path, about=ABOUT, chunk=2).add(rows(0, 2))
    before = path.read_bytes()
    with pytest.raises(InputError, match="belongs to another recipe, table, set of answers or setting"):
        Spool(path, about={**ABOUT, "table": "other"}, chunk=2)
    assert path.read_bytes() == before


def test_an_empty_file_is_a_new_one_and_a_folder_is_none(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.touch()
    assert Spool(path, about=ABOUT, chunk=2).count == 0
    with pytest.raises(InputError, match="can't be used to resume from"):
        Spool(tmp_path, about=ABOUT, chunk=2)


def test_many_rows_leave_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IN_MEMORY", 100)
    spool = Spool(None, about=ABOUT, chunk=5)
    spool.add(rows(0, 50))
    assert len(list(spool)) == 50
