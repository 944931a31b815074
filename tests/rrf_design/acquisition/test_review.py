"""The review queue: order, no duplicates, both forms, and every way to fill it in wrongly."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from fields import scripted

import rrf_design as rrf
from rrf_design.acquisition import Acquirer, Settings, Settlement
from rrf_design.acquisition._fetch import Fetcher
from rrf_design.acquisition.review import queue, read_queue, write_queue
from rrf_design.errors import InputError


def problem() -> rrf.Problem:
    """Three nodes in a chain and a lone pair; reviews at different prices, one of them worth
    little.
    """
    names = ["a", "b", "c"]
    return rrf.Problem(
        k=1,
        nodes=[{"id": name, "prompt": f"={name}?", "dim": 1} for name in names],
        relations=[{"id": "ab", "tail": "a", "head": "b"}, {"id": "bc", "tail": "b", "head": "c"}],
        anchors=[
            {"id": f"see {name}", "node": name, "cost": cost, "source": f"person: Check {name}."}
            for name, cost in zip(names, (4.0, 1.0, 1.0), strict=True)
        ],
    )


@pytest.fixture
def run() -> tuple[Acquirer, Fetcher]:
    given = problem()
    fetcher = Fetcher({"": given}, scripted(lambda r: "7"), known={})
    acquirer = Acquirer(given, settings=Settings(method="witness"), terms=fetcher.terms)
    while purchases := [p for p in acquirer.ask(9) if not p.deferred]:
        acquirer.tell(*(Settlement(p, "told", (7.0,), evidence={"reply": {"text": "=7"}}) for p in purchases))
    return acquirer, fetcher


def test_ordered_by_certified_gain_per_cost_without_duplicates(run: tuple[Acquirer, Fetcher]) -> None:
    reviews = queue(*run)
    names = [review["anchor"] for review in reviews]
    assert len(set(names)) == len(names) == 3
    assert [r["gain_per_cost"] for r in reviews] == sorted((r["gain_per_cost"] for r in reviews), reverse=True)
    assert reviews[0]["gain_per_cost"] > 0

    acquirer = run[0]
    now = acquirer.margin()
    design, held = acquirer.designs[""], acquirer.state.items[""].held
    with_it = design.margin({*held, names[0]})
    assert reviews[0]["gain_per_cost"] == pytest.approx(with_it.lower - now.upper)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_round_trip(run: tuple[Acquirer, Fetcher], tmp_path: Path, form: str) -> None:
    path = tmp_path / f"q.{form}"
    write_queue(path, queue(*run))
    rows: list[dict[str, Any]]
    if form == "csv":
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert rows[0]["model_answer"] == "'=7"  # a spreadsheet must not take it for a formula
        rows[0]["value"] = " 9 "
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        rows[0]["value"] = [9]
        path.write_text("\n".join(json.dumps(row) for row in rows))
    settlements = read_queue(path, *run)
    assert [(s.purchase.name, s.value) for s in settlements] == [(rows[0]["anchor"], (9.0,))]
    run[0].tell(*settlements)
    assert read_queue(path, *run) == []  # reading it again changes nothing
    assert len(queue(*run)) == 2


@pytest.mark.parametrize("ending", ["\u2028", "\u0085"])
def test_what_ends_a_line_elsewhere_ends_no_row(run: tuple[Acquirer, Fetcher], tmp_path: Path, ending: str) -> None:
    path = tmp_path / "q.jsonl"
    rows = [row | {"model_answer": f"67{ending}41"} for row in queue(*run)]
    write_queue(path, rows)
    path.write_text(path.read_text().replace('"value": ""', '"value": "9"'))
    write_queue(path, rows)  # which keeps what is filled in
    assert {settlement.value for settlement in read_queue(path, *run)} == {(9.0,)}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["id,value", "see x,7"], "'see x' is not an open review"),
        (["id,value", "see a,seven"], "is neither a number nor an answer"),
        (["id,value", "see a,nan"], "is neither a number"),
        (["id,value", "see a,7 8"], "is neither a number"),
        (["id,value", "see a,7", "see a,8"], "two different values"),
        (["name,value", "see a,7"], "the column id is missing"),
    ],
)
def test_wrong_entries_are_named(run: tuple[Acquirer, Fetcher], tmp_path: Path, lines: list[str], message: str) -> None:
    path = tmp_path / "q.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError) as caught:
        read_queue(path, *run)
    assert message in str(caught.value)


def test_wrong_files(run: tuple[Acquirer, Fetcher], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"end in \.csv or \.jsonl"):
        write_queue(tmp_path / "q.txt", [])
    with pytest.raises(InputError, match="can't be read"):
        read_queue(tmp_path / "missing.csv", *run)
    (tmp_path / "q.jsonl").write_text("{")
    with pytest.raises(InputError, match="line 1: not JSON"):
        read_queue(tmp_path / "q.jsonl", *run)
    (tmp_path / "q.jsonl").write_text("[1]")
    with pytest.raises(InputError, match="not an object"):
        read_queue(tmp_path / "q.jsonl", *run)
    (tmp_path / "q.jsonl").write_text("[" * 100_000)
    with pytest.raises(InputError, match="line 1: not JSON"):
        read_queue(tmp_path / "q.jsonl", *run)


@pytest.mark.parametrize("value", [{"x": 1}, [{"x": 1}]])
def test_a_table_is_no_answer(run: tuple[Acquirer, Fetcher], tmp_path: Path, value: object) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps({"id": "see a", "value": value}))
    with pytest.raises(InputError, match="'see a': value is the table"):
        read_queue(path, *run)


def test_a_long_answer_is_no_obstacle(run: tuple[Acquirer, Fetcher], tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    rows = [row | {"model_answer": "7" * 200_000} for row in queue(*run)]
    write_queue(path, rows)
    write_queue(path, rows)
    assert read_queue(path, *run) == []


@pytest.mark.parametrize("form", [".csv", ".jsonl"])
def test_a_queue_that_is_written_again_keeps_what_was_filled_in(
    run: tuple[Acquirer, Fetcher], tmp_path: Path, form: str
) -> None:
    """Before anybody has read it back."""
    path = tmp_path / f"queue{form}"
    write_queue(path, queue(*run))
    text = path.read_text().splitlines()
    if form == ".csv":
        path.write_text("\n".join([text[0], text[1] + "7", *text[2:]]) + "\n")
    else:
        path.write_text("\n".join([text[0].replace('"value": ""', '"value": "7"'), *text[1:]]) + "\n")
    before = [one.value for one in read_queue(path, *run)]
    assert before == [(7.0,)]
    write_queue(path, queue(*run))
    assert [one.value for one in read_queue(path, *run)] == before
