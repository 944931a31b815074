"""Truth from people: a file that is written once, filled in by hand, and never loses what somebody
wrote.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from rrf_design.errors import InputError
from rrf_design.promises.reviews import COLUMNS, joined_reviews, read_reviews, write_reviews

ROWS = [("007", "What is right?", "text, with comma"), ("008", "=HYPERLINK()", "two\nlines")]


def fill(path: Path, name: str, value: str) -> None:
    """As a person would, in a spreadsheet or an editor."""
    if path.suffix == ".jsonl":
        entries = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        entries = list(csv.DictReader(path.read_text().splitlines(keepends=True)))
    for entry in entries:
        if entry["id"] == name:
            entry["value"] = value
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    else:
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, COLUMNS)
            writer.writeheader()
            writer.writerows(entries)


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_what_was_filled_in_comes_back_and_stays(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"review{ending}"
    assert write_reviews(path, ROWS) == 2
    assert read_reviews(path) == {}
    fill(path, "008", "12,50")
    assert read_reviews(path) == {"008": "12,50"}
    write_reviews(path, [*ROWS, ("009", "?", "new")])
    assert read_reviews(path) == {"008": "12,50"}
    assert "009" in path.read_text()


def test_a_spreadsheet_runs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "review.csv"
    write_reviews(path, ROWS)
    rows = list(csv.DictReader(path.read_text().splitlines(keepends=True)))
    assert not rows[1]["question"].startswith("=")
    assert rows[0]["text"] == "text, with comma"
    fill(path, rows[1]["id"], "5")
    for _ in range(2):
        write_reviews(path, [])  # what is filled in stays, with one apostrophe
    (kept,) = csv.DictReader(path.read_text().splitlines(keepends=True))
    assert kept["question"] == rows[1]["question"]
    assert list(rows[0]) == list(COLUMNS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,value\n,5\n", "entry 1: the column id is missing or empty"),
        ("value\n5\n", "entry 1: the column id is missing or empty"),
        ("id,value\n1,5\n1,6\n", "entry 2: item '1' has two different values"),
        ("id,value\n9,5\n", "entry 1: item '9' was not asked about"),
    ],
)
def test_what_can_not_be_read_back(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "review.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_reviews(path, only=["1", "2"])


@pytest.mark.parametrize("value", [{"x": 1}, [{"x": 1}], {}])
def test_a_table_is_no_answer(tmp_path: Path, value: object) -> None:
    path = tmp_path / "review.jsonl"
    path.write_text(json.dumps({"id": "1", "value": value}))
    with pytest.raises(InputError, match="item '1': value is the table"):
        read_reviews(path)


def test_the_same_value_twice_and_empty_ones_are_no_contradiction(tmp_path: Path) -> None:
    path = tmp_path / "review.csv"
    path.write_text("id,value\n1,5\n1,5\n1,\n9,  \n")
    assert read_reviews(path, only=["1"]) == {"1": "5"}


def test_only_two_kinds_of_files(tmp_path: Path) -> None:
    for call in (lambda path: write_reviews(path, ROWS), read_reviews):
        with pytest.raises(InputError, match=r"review files end in .csv or .jsonl"):
            call(tmp_path / "review.xlsx")


def test_several_files_are_one_voice(tmp_path: Path) -> None:
    """The pilot's reviews and the run's; where they contradict each other nobody guesses."""
    (tmp_path / "a.csv").write_text("id,value\nx,1\ny,\n")
    (tmp_path / "b.csv").write_text("id,value\ny,2\nx,1\n")
    (tmp_path / "c.csv").write_text("id,value\ny,3\n")
    assert joined_reviews([]) == {}
    assert joined_reviews([tmp_path / "a.csv", tmp_path / "b.csv"]) == {"x": "1", "y": "2"}
    with pytest.raises(InputError, match=r"c\.csv: item 'y' has another value"):
        joined_reviews([tmp_path / name for name in ("a.csv", "b.csv", "c.csv")])


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_items_that_are_not_asked_about_any_more_stay(tmp_path: Path, ending: str) -> None:
    """A smaller draw, or what waits after a run: what people wrote about the others is not thrown
    away; what they left empty is.
    """
    path = tmp_path / f"review{ending}"
    write_reviews(path, [*ROWS, ("009", "?", "empty")])
    fill(path, "008", "12,50")
    before = read_reviews(path)
    assert write_reviews(path, ROWS[:1]) == 1
    assert read_reviews(path) == before == {"008": "12,50"}
    assert "009" not in path.read_text()
    write_reviews(path, ROWS)
    assert path.read_text().count("008") == 1
