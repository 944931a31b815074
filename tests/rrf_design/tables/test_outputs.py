"""Every form of one result says the same."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.reporting import write_report
from rrf_design.tables import Delivery, write_output


@pytest.fixture(scope="module")
def delivery(folder: Path, items: rrf.Dataset) -> Delivery:
    found: Delivery = rrf.repair(items, folder / "answers.jsonl")
    return found


def test_all_forms_agree(delivery: Delivery, tmp_path: Path) -> None:
    for ending in ("json", "csv", "jsonl", "parquet", "html", "xml"):
        write_output(tmp_path / f"out.{ending}", delivery)
    whole = json.loads((tmp_path / "out.json").read_text())
    assert whole == json.loads(json.dumps(delivery.to_json()))
    assert whole["verdicts"] == delivery.verdicts
    with (tmp_path / "out.csv").open(newline="") as stream:
        table = list(csv.DictReader(stream))
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    frame = delivery.to_frame()
    assert [row["no"] for row in table] == list(delivery) == [item["id"] for item in whole["items"]]
    for row, line, item, name in zip(table, lines, whole["items"], frame["no"], strict=True):
        assert name == line["no"] == row["no"]
        assert row["verdict"] == line["verdict"] == item["verdict"]
        assert line["answer"] == item["answer"]
        assert row["answer"] == ("" if item["answer"] is None else str(item["answer"]))
        assert row["rank"] == ("" if item["rank"] is None else str(item["rank"]))
    suite = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert int(suite.get("tests", 0)) == 60
    assert int(suite.get("failures", 0)) == 60 - round(60 * delivery.passing_share)
    page = (tmp_path / "out.html").read_text()
    assert "60 rows: 9 checked, 38 consistent (right if" in page
    assert page.count("Asked and answered") == 60  # behind every item stands what was asked and answered
    again = Path(write_report(tmp_path / "out.json", tmp_path / "again.html")).read_text()
    assert "60 rows: 9 checked, 38 consistent (right if" in again


def test_an_answer_is_given_only_where_it_may_be_believed(delivery: Delivery) -> None:
    for row in delivery.rows():
        assert row.answer is None or row.verdict.passes or row.verdict == "ambiguous"
        assert row.answer is not None or not row.verdict.passes


def test_it_shows_itself(delivery: Delivery) -> None:
    assert len(repr(delivery)) < 200
    assert delivery.sentence() in delivery._repr_html_()
    with pytest.raises(InputError, match="no item '1'"):
        delivery.row("1")


def test_unknown_endings_are_refused_before_anything_is_written(delivery: Delivery, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="an output ends in"):
        write_output(tmp_path / "out.pdf", delivery)
    assert not list(tmp_path.iterdir())


def test_what_is_read_is_not_written_over(items: rrf.Dataset, folder: Path, tmp_path: Path) -> None:
    from rrf_design.tables.delivered import spare_inputs

    table = folder / str(items.recipe.data.table)
    spare_inputs([tmp_path / table.name, folder / "new.csv"], items)
    link = tmp_path / "link.csv"
    link.symlink_to(table)
    for path in (table, link, folder / items.recipe.name):
        with pytest.raises(InputError, match="is read by this call, and would be written over"):
            spare_inputs([path], items)
    with pytest.raises(InputError, match="written over"):
        spare_inputs([folder / "answers.jsonl"], items, folder / "answers.jsonl")
