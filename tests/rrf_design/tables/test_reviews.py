"""What people should look at: ordered, written in three forms, read back, and then the value."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.tables import Delivery, read_reviews, write_reviews
from rrf_design.verdict import Verdict


@pytest.fixture(scope="module")
def delivery(folder: Path, items: rrf.Dataset) -> Delivery:
    found: Delivery = rrf.repair(items, folder / "answers.jsonl")
    return found


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_what_is_open_is_listed_first_things_first(delivery: Delivery, tmp_path: Path) -> None:
    count = write_reviews(tmp_path / "review.csv", delivery)
    rows = read(tmp_path / "review.csv")
    assert len(rows) == count == len(delivery) - sum(delivery.verdicts[name] for name in ("checked", "consistent")) > 5
    assert [int(row["rank"]) for row in rows] == list(range(1, count + 1))
    kinds = [row["verdict"] for row in rows if delivery[row["id"]].answer is None]
    assert kinds == sorted(kinds)  # contradicted before incomplete: one check decides each, at one price
    assert rows[0]["question"] == f"Gross total of {rows[0]['id']}"
    assert all(row["value"] == "" for row in rows)


@pytest.mark.parametrize("form", ["csv", "jsonl", "json"])
def test_a_trusted_person_decides(
    folder: Path, items: rrf.Dataset, delivery: Delivery, tmp_path: Path, form: str
) -> None:
    path = tmp_path / f"review.{form}"
    write_reviews(path, delivery)
    if form == "csv":
        rows = read(path)
        rows[0]["value"], chosen = "77.5", rows[0]["id"]
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
    elif form == "jsonl":
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        lines[0]["value"], chosen = 77.5, lines[0]["id"]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    else:  # as Label Studio exports what it imported
        tasks = json.loads(path.read_text())
        chosen = tasks[0]["data"]["id"]
        given = {"value": {"text": ["77.5"]}, "from_name": "value", "to_name": "question", "type": "textarea"}
        cancelled = {"was_cancelled": True, "result": [{**given, "value": {"text": ["1"]}}]}
        tasks[0]["annotations"] = [{"was_cancelled": False, "result": [given]}, cancelled]
        path.write_text(json.dumps(tasks))
    after = rrf.repair(items, folder / "answers.jsonl", reviews=path)
    row = after[chosen]
    assert (row.verdict, row.answer, row.bound, row.assumes) == (Verdict.CHECKED, 77.5, 0.0, "clerk is right")
    assert row.changed
    assert row.cost == pytest.approx(delivery[chosen].cost + 5)
    others = [name for name in delivery if name != chosen]
    assert all(after[name] == delivery[name] for name in others[:10])
    assert after.verdicts["checked"] == delivery.verdicts["checked"] + 1


def test_a_person_is_no_better_than_the_noise_that_a_caller_declares(
    folder: Path, items: rrf.Dataset, delivery: Delivery, tmp_path: Path
) -> None:
    write_reviews(tmp_path / "review.jsonl", delivery)
    first = {**json.loads((tmp_path / "review.jsonl").read_text().splitlines()[0]), "value": 77.5}
    (tmp_path / "review.jsonl").write_text(json.dumps(first) + "\n")
    told = {"reviews": tmp_path / "review.jsonl"}
    row = rrf.repair(items, folder / "answers.jsonl", epsilon=0.004, **told)[first["id"]]
    assert (row.verdict, row.answer) == (Verdict.CHECKED, 77.5)
    assert row.bound == pytest.approx(0.004)
    assert row.assumes == "clerk is right, up to noise of 0.004"
    loose = rrf.repair(items, folder / "answers.jsonl", epsilon=0.5, **told)[first["id"]]
    assert loose.verdict is not Verdict.CHECKED  # the tolerance is 0.005


def test_faults_are_named_together(items: rrf.Dataset) -> None:
    rows = [
        {"id": "nobody", "check": "clerk", "value": "1"},
        {"id": "001", "check": "nobody", "value": "1"},
        {"id": "002", "check": "clerk", "value": "1"},
        {"id": "002", "check": "clerk", "value": "2"},
        {"id": "003", "check": "clerk", "value": ""},
    ]
    with pytest.raises(InputError) as error:
        read_reviews(rows, items)
    for part in ("no item 'nobody'", "no check 'nobody'", "two different values", "3 of 5 rows"):
        assert part in str(error.value)


def test_a_review_nobody_can_read_is_one_row(folder: Path, items: rrf.Dataset) -> None:
    said = [{"id": "001", "check": "clerk", "value": "about ten"}]
    row = rrf.repair(items, folder / "answers.jsonl", reviews=said)["001"]
    assert (row.verdict, row.answer) == (Verdict.INCOMPLETE, None)
    assert "about ten" in row.reason


def test_other_endings_are_refused(delivery: Delivery, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="review files end in"):
        write_reviews(tmp_path / "review.xlsx", delivery)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("notes.csv", "no,check,value\n1,x,2\n"),
        ("notes.csv", "a,b\n"),
        ("notes.jsonl", '{"no": 1, "value": 2}\n'),
        ("notes.json", '[{"data": {"text": "mine"}}]'),
    ],
)
def test_a_file_of_something_else_is_not_written_over(delivery: Delivery, tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match="is there already and is no review file"):
        write_reviews(path, delivery)
    assert path.read_text() == text


def test_what_label_studio_exported_is_read_back(tmp_path: Path) -> None:
    """Its release 1.23.2 imported a list of ours, two answers were given there, and this is its
    export.
    """
    rows = [{"no": "1001"}, {"no": "1002"}]
    recipe = {
        "data": {"id": "no"},
        "answer": {"of": "total", "tolerance": 0.005, "k": 1},
        "ask": [{"id": "total", "prompt": "{{ no }}", "parse": "decimal"}],
        "check": [{"id": "clerk", "of": "total", "by": {"person": "{{ no }}"}, "cost": 0.8}],
    }
    export = Path(__file__).parent / "logs" / "label-studio.json"
    assert read_reviews(export, rrf.dataset(recipe, rows)).by_item == {
        "1001": {"clerk": "49.98"},
        "1002": {"clerk": "47.60"},
    }
    answers = [{"id": "1001", "node": "total", "text": "1"}, {"id": "1002", "node": "total", "text": "2"}]
    delivery = rrf.repair(rrf.dataset(recipe, rows), answers, reviews=export)
    assert [(row.answer, row.verdict.value) for row in delivery.rows()] == [(49.98, "checked"), (47.6, "checked")]
    minimal = tmp_path / "minimal.json"  # its other JSON form has its own ids in place of ours
    minimal.write_text(json.dumps([{"id": 1, "check": "clerk", "value": "49.98", "annotation_id": 1}]))
    with pytest.raises(InputError, match="export as JSON, not as JSON-MIN"):
        read_reviews(minimal, rrf.dataset(recipe, rows))


@pytest.mark.parametrize("ending", [".jsonl", ".json"])
def test_a_table_is_no_answer(items: rrf.Dataset, delivery: Delivery, tmp_path: Path, ending: str) -> None:
    item = next(row for row in delivery.rows() if row.check is not None)
    row = {"id": item.id, "check": item.check, "value": {"x": 1}}
    path = tmp_path / f"review{ending}"
    path.write_text(json.dumps([{"data": row}] if ending == ".json" else row))
    with pytest.raises(InputError, match=r"row 1: .*value is the table"):
        read_reviews(path, items)


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".json"])
def test_what_people_wrote_stays_in_the_list(
    delivery: Delivery, items: rrf.Dataset, tmp_path: Path, ending: str
) -> None:
    """Written again over the same file: values of what is still open, and of what is decided
    since.
    """
    path = tmp_path / f"review{ending}"
    count = write_reviews(path, delivery)
    assert count > 1
    if ending == ".json":
        tasks = json.loads(path.read_text())
        tasks[0]["data"]["value"] = "12"
        tasks.append({"data": {**tasks[1]["data"], "id": next(iter(items)), "value": "13"}})
        path.write_text(json.dumps(tasks))
    else:
        text = path.read_text().splitlines()
        rows = list(csv.DictReader(text)) if ending == ".csv" else [json.loads(line) for line in text]
        rows[0]["value"] = "12"
        rows.append({**rows[1], "id": next(iter(items)), "value": "13"})
        with path.open("w", newline="") as stream:
            if ending == ".csv":
                writer = csv.DictWriter(stream, list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)
            else:
                stream.write("".join(json.dumps(row) + "\n" for row in rows))
    before = read_reviews(path, items).by_item
    assert len(before) == 2
    assert write_reviews(path, delivery) == count
    assert read_reviews(path, items).by_item == before
