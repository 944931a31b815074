"""What a person said: numbers as people write them, or a class, or one line that says it is neither."""

from __future__ import annotations

from typing import Any

import pytest

from rrf_design.errors import InputError
from rrf_design.responses import parsers
from rrf_design.responses.reviewed import reviewed_value

JSON = parsers.get({"name": "json", "field": "total"})
PAIR = parsers.get({"name": "json", "field": ["net", "tax"]})
LABEL = parsers.get("label")
YES_NO = parsers.get("yes-no")


@pytest.mark.parametrize(
    ("said", "parser", "rows", "value"),
    [
        ("7", None, None, (7.0,)),
        (" 7.50 ", JSON, None, (7.5,)),
        ("67,41 EUR", JSON, None, (67.41,)),
        ('{"total": 8}', JSON, None, (8.0,)),
        ("1 2", PAIR, None, (1.0, 2.0)),
        ("1; 2", PAIR, None, (1.0, 2.0)),
        ("1, 2", PAIR, None, (1.0, 2.0)),
        ("1,2", PAIR, None, (1.0, 2.0)),
        ('{"net": 3, "tax": 4}', PAIR, None, (3.0, 4.0)),
        ("1 2 3", None, 3, (1.0, 2.0, 3.0)),
        ("yes", YES_NO, None, (1.0,)),
        ("0", YES_NO, None, (0.0,)),
        ("sport", LABEL, None, "sport"),
        ("Sport.", LABEL, 5, "sport"),
    ],
)
def test_what_people_write(said: str, parser: Any, rows: int | None, value: Any) -> None:
    found = reviewed_value("clerk", said, parser, rows=rows)
    assert found == value or (isinstance(value, str) and isinstance(found, str) and found.casefold() == value)


@pytest.mark.parametrize(
    ("said", "parser", "rows", "message"),
    [
        ("", None, None, "review 'clerk': '' is neither a number nor an answer"),
        ("about seven or eight", None, None, "neither a number"),
        ("nan", None, None, "neither a number"),
        ("inf", None, None, "neither a number"),
        ("1 2", None, None, "neither a number"),
        ("1", PAIR, None, "neither 2 numbers"),
        ("1 2 3", PAIR, None, "neither 2 numbers"),
        ("7", JSON, 2, "neither 2 numbers"),
        ("", LABEL, None, "is no answer to the parser 'label'"),
    ],
)
def test_what_is_no_value(said: str, parser: Any, rows: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        reviewed_value("clerk", said, parser, rows=rows)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200
