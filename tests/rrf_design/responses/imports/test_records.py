"""What the readers of all tools share: paths into a record, bounded JSON, names, texts and
costs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rrf_design.errors import InputError
from rrf_design.responses.imports import records
from rrf_design.responses.imports.records import at, first_record, lines, money, name_at, parse, text_of, whole


@pytest.mark.parametrize(
    ("path", "found"),
    [("a", [{"b": 1}, 2]), ("a.0.b", 1), ("a.1", 2), ("a.2", None), ("a.-1", None), ("a.0.b.c", None), ("x.y", None)],
)
def test_a_dotted_path(path: str, found: Any) -> None:
    assert at({"a": [{"b": 1}, 2]}, path) == found


def test_names_are_texts_or_whole_numbers() -> None:
    record = {"text": " 007 ", "number": 7, "truth": True, "float": 1.5, "blank": "  ", "long": "x" * 1001}
    assert name_at(record, "text", "item") == " 007 "
    assert name_at(record, "number", "item") == "7"
    assert name_at(record, "=total", "node") == "total"
    for path in ("truth", "float", "blank", "gone", "="):
        with pytest.raises(InputError, match=f"no item at '{path}': .*text or a whole number is needed"):
            name_at(record, path, "item")
    with pytest.raises(InputError, match="more than 1000 characters"):
        name_at(record, "long", "item")


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (None, None),
        ("", ""),
        ([{"text": "a"}, {"type": "image"}, {"text": "b"}], "ab"),
        ([{"type": "image"}], '[{"type": "image"}]'),
        ([], "[]"),
        ({"é": 1}, '{"é": 1}'),
        (3, "3"),
        (False, "false"),
    ],
)
def test_an_answer_as_text(found: Any, text: str | None) -> None:
    assert text_of(found) == text


@pytest.mark.parametrize(
    ("found", "cost"),
    [(0, 0.0), (2, 2.0), (0.5, 0.5), (-0.1, None), (True, None), ("1", None), (None, None), (10**400, None), (-(10**400), None), (float("inf"), None), (float("nan"), None)],
)  # fmt: skip
def test_a_cost_is_a_finite_number_from_zero_on(found: Any, cost: float | None) -> None:
    assert money(found) == cost


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"\xff", "here: not UTF-8 text"),
        ("[" * 100_000, "here: nested too deeply"),
        ("{", "here: not valid JSON"),
        ("9" * 5000, "here: not valid JSON"),
    ],
)
def test_bad_json_is_one_line(text: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse(text, "here")
    assert "\n" not in str(caught.value)


def test_scores_that_are_no_number_are_nothing() -> None:
    assert parse("[NaN, Infinity, 1]", "here") == [None, None, 1]


def test_lines_and_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\n\n  \n{"a": 2}')
    assert list(lines(path)) == [(1, {"a": 1}), (4, {"a": 2})]
    assert first_record(path) == {"a": 1}
    path.write_text("{}\n[1]")
    with pytest.raises(InputError, match="line 2: must be an object, not list"):
        list(lines(path))
    path.write_text("")
    assert first_record(path) == {}
    with pytest.raises(InputError, match="can't be read"):
        list(lines(tmp_path / "gone.jsonl"))


def test_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"a": "x" * 100}))
    monkeypatch.setattr(records, "LONGEST_LINE", 50)
    with pytest.raises(InputError, match="line 1: longer than"):
        list(lines(path))
    monkeypatch.setattr(records, "LARGEST_FILE", 50)
    with pytest.raises(InputError, match="larger than"):
        whole(path)
    with pytest.raises(InputError, match="can't be read"):
        whole(tmp_path / "gone.json")


def test_the_first_record_of_one_object(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("\ufeff" + json.dumps({"a": 1}))
    assert first_record(path) == {"a": 1}
    path.write_text("[1]")
    assert first_record(path) == {}
