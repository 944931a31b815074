from __future__ import annotations

from scenarios.audit import printed_items


def test_the_printed_items_are_computed_again() -> None:
    rows = printed_items.printed_expressions()
    assert len(rows) == len({row["index"] for row in rows}) == printed_items.ITEMS["mathematics"][0]
    assert printed_items._judge(rows)[0]
    assert not printed_items._judge([{**rows[0], "printed": 1680}, *rows[1:]])[0]
    assert not printed_items._judge([{**rows[0], "most_digits": 5}, *rows[1:]])[0]
