"""Names in their order, none twice, idle ones gone until they join again."""

from __future__ import annotations

from rrf_design.acquisition.lineup import Lineup


def test_the_first_busy_one_comes_first_and_stays() -> None:
    line = Lineup("abcd")
    for name in "dbcbd":
        line.join(name)
    assert line.first(lambda name: name != "b") == "c"
    assert line.first(lambda name: True) == "c"  # b has left
    line.join("b")
    assert line.first(lambda name: True) == "b"


def test_nobody_is_busy() -> None:
    line = Lineup("ab")
    line.join("a")
    assert line.first(lambda name: False) is None
    assert line.first(lambda name: True) is None
    assert line.sorted("ba") == ["a", "b"]
