"""One delivered row: no answer without a reason to believe it, in the words of its parser."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.questions.answers import RecordedAnswer
from rrf_design.responses import parsers
from rrf_design.responses.open_text import Classes
from rrf_design.tables.items import read_answer
from rrf_design.tables.rows import Row, repaired_row, reviewed_row, shown_value, unusable_row
from rrf_design.verdict import Verdict

NONE = Classes(())
PROBLEM = rrf.Problem(
    k=1,
    nodes=[{"id": name, "parser": "decimal"} for name in "abc"],
    relations=[{"id": r, "tail": r[0], "head": r[1]} for r in ("ab", "bc", "ca")],
    anchors=[{"id": "x", "node": "a", "value": 7.0}],
)


def row(said: dict[str, Any]) -> Row:
    return repaired_row("i", rrf.repair(PROBLEM, said), node="a", parser=None, classes=NONE, raw=said.get("a"))


def test_a_repaired_answer_says_that_it_was_changed() -> None:
    found = row({"a": "9", "b": "7", "c": "7"})
    assert (found.verdict, found.answer, found.raw, found.changed) == (Verdict.CONSISTENT, 7, "9", True)
    assert found.wrong == ("a",)
    kept = row({"a": "7", "b": "7", "c": "9"})
    assert (kept.answer, kept.changed, kept.wrong) == (7, False, ("c",))
    unread = row({"a": "no idea", "b": "7", "c": "7"})
    assert unread.unread == ("a",)
    assert unread.changed in (True, None)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_an_answer_is_there_only_where_it_may_be_believed(verdict: Verdict) -> None:
    repair = replace(rrf.repair(PROBLEM, {"a": "7", "b": "7", "c": "7"}), verdict=verdict)
    found = repaired_row("i", repair, node="a", parser=None, classes=NONE, raw=None)
    believed = verdict in (Verdict.CHECKED, Verdict.CONSISTENT, Verdict.AMBIGUOUS)
    assert (found.answer is not None) is believed
    assert (found.bound is not None) is believed
    assert (found.changed is not None) is believed
    hidden = replace(repair, repaired={**repair.repaired, "a": None})
    assert repaired_row("i", hidden, node="a", parser=None, classes=NONE, raw=None).answer is None


def test_values_in_the_words_of_their_parser() -> None:
    choice = parsers.get({"name": "choice", "options": ["red", "green"]})
    yes_no = parsers.get({"name": "yes-no", "count": 2})
    assert shown_value((0.0, 1.0), choice, NONE) == "green"
    assert shown_value((0.4, 0.4), choice, NONE) == [0.4, 0.4]
    assert shown_value((0.9, 0.8), choice, NONE) == [0.9, 0.8]
    assert shown_value((1.0, 0.0), yes_no, NONE) == "yes no"
    assert shown_value((0.5, 0.0), yes_no, NONE) == [0.5, 0]
    assert shown_value((0.0, 1.0), parsers.get("label"), Classes(("cat", "dog"))) == "dog"
    assert shown_value((2.0,), None, NONE) == 2


def test_a_row_comes_back_from_its_document() -> None:
    for found in (row({"a": "9", "b": "7", "c": "7"}), unusable_row("i", "why", unread=("a",), raw="?")):
        assert Row.from_json(json.loads(json.dumps(found.to_json()))) == found


PERSON = rrf.Anchor(id="x", node="a", source={"person": "how much?"}, cost=1.0)


def test_a_trusted_person_decides() -> None:
    reading = read_answer(RecordedAnswer(text="7"), parsers.get("decimal"), 1)
    agreed = reviewed_row("i", PERSON, (7.0,), said=7, reading=reading)
    assert (agreed.verdict, agreed.answer, agreed.bound, agreed.changed) == (Verdict.CHECKED, 7, 0.0, False)
    assert agreed.assumes == "x is right"
    other = reviewed_row("i", PERSON, (8.0,), said=8, reading=reading)
    assert (other.answer, other.raw, other.changed) == (8, "7", True)
    assert reviewed_row("i", PERSON, (8.0,), said=8, reading=None).changed


def test_what_nothing_can_be_said_about() -> None:
    found = unusable_row("i", "no answer", unread=("a", "b"), raw="?")
    assert (found.verdict, found.answer, found.reason) == (Verdict.INCOMPLETE, None, "no answer")
