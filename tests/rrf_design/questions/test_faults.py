from __future__ import annotations

import pytest

from rrf_design.errors import InputError
from rrf_design.questions.faults import SHOWN, RowFaults


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
