from __future__ import annotations

import json

import pytest

from rrf_design.responses import Parsed, ParseStatus
from rrf_design.responses.parsed import numbers


def test_a_failure_can_carry_no_value() -> None:
    with pytest.raises(ValueError, match="a value comes with status"):
        Parsed(ParseStatus.PARSE_FAILURE, (0.0,))
    with pytest.raises(ValueError, match="a value comes with status"):
        Parsed(ParseStatus.PARSED)


def test_document_is_json() -> None:
    parsed = numbers([1, 2], strict=True, canonical="1 2")
    assert json.loads(json.dumps(parsed.document())) == {
        "status": "parsed",
        "value": [1.0, 2.0],
        "strict_ok": True,
        "canonical": "1 2",
        "detail": "",
    }
