"""One vocabulary: every word that a parser, a program or a log can say of a failed answer is
in it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rrf_design as rrf
from rrf_design.responses import Parsed, ParseStatus
from rrf_design.responses.parsed import INVALID, VALID, numbers
from rrf_design.responses.sandbox import ProgramStatus


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


def test_no_word_means_both() -> None:
    assert not set(INVALID) & set(VALID)
    assert len(set(INVALID)) == len(INVALID)


def test_every_failure_of_a_parser_has_its_word() -> None:
    assert {status.value for status in ParseStatus} <= {*INVALID, *VALID}
    assert ParseStatus.PARSED.value in VALID


def test_every_failure_of_a_program_has_its_word() -> None:
    fine = {ProgramStatus.RIGHT, ProgramStatus.WRONG, ProgramStatus.RAN}
    assert {status.value for status in ProgramStatus if status not in fine} <= set(INVALID)


def test_every_word_is_taken_by_repair(tmp_path: Path) -> None:
    """The reader of response files knows exactly these words."""
    problem = rrf.Problem(k=1, nodes=[{"id": n} for n in "abc"], relations=[{"id": r, "tail": r[0], "head": r[1]} for r in ("ab", "bc", "ca")])  # fmt: skip
    for word in INVALID:
        found = rrf.repair(problem, {"a": {"status": word}, "b": 1.0, "c": 1.0})
        assert tuple(found.erased) == ("a",)
