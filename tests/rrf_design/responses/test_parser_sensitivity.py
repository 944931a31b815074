from __future__ import annotations

import json

import pytest

from rrf_design.errors import InputError
from rrf_design.responses import sensitivity


def test_where_parsers_part() -> None:
    texts = ["19", "12 + 7 = 19", "none"]
    result = sensitivity(texts, ["integer-strict", "integer-last", "integer-first"])
    assert result.disagreements == (1,)
    assert result.validity == {"integer-strict": 1 / 3, "integer-last": 2 / 3, "integer-first": 2 / 3}
    assert result.violations == {"integer-strict": 0, "integer-last": 1, "integer-first": 1}
    assert result.pairs[("integer-last", "integer-first")] == 1
    document = json.loads(json.dumps(result.document()))
    assert document["disagreements"][0]["text"] == "12 + 7 = 19"
    assert document["disagreements"][0]["readings"]["integer-last"]["value"] == [19.0]
    assert document["disagreements"][0]["readings"]["integer-strict"]["value"] is None


def test_same_parser_twice_keeps_apart() -> None:
    one, two = {"name": "json", "field": "a"}, {"name": "json", "field": "b"}
    result = sensitivity(['{"a": 1, "b": 2}'], [one, two])
    assert result.parsers == ("json#1", "json#2")
    assert result.disagreements == (0,)


def test_nothing_to_compare() -> None:
    with pytest.raises(InputError, match="at least two parsers"):
        sensitivity(["1"], ["decimal"])
    assert sensitivity([], ["decimal", "rational"]).validity == {"decimal": 0.0, "rational": 0.0}
