"""Audits of delivered tables, and the files that people fill in."""

from __future__ import annotations

import copy
import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.errors import InputError, Refused
from rrf_design.promises import GoldRule, audit_document, draw_audit, prove_audit, read_delivered
from rrf_design.promises._delivered_tables import check_delivered, compared, read_run_document
from rrf_design.promises._truths import COLUMNS, joined_reviews, read_reviews, write_reviews
from rrf_design.risk import AuditSequence

RULE = GoldRule("booked")


@pytest.fixture
def table(tmp_path: Path) -> Any:
    rows = [f"{n},{n if n % 10 else ''},{n + (n % 37 == 0)}" for n in range(1, 401)]
    path = tmp_path / "delivered.csv"
    path.write_text("no,answer,booked\n" + "\n".join(rows) + "\n")
    return read_delivered(path, id_column="no")


def certificate(table: Any, labels: int, **options: Any) -> dict[str, Any]:
    state = draw_audit(table, labels, seed=5, rule=RULE, **options)
    made = audit_document(state, confidence=0.95, risk=0.1, truth="gold column 'booked'")
    found: dict[str, Any] = json.loads(json.dumps(made))
    return found


def test_only_rows_with_an_answer_are_the_population(table: Any) -> None:
    assert len(table) == 360
    document = certificate(table, 80)
    sequence = AuditSequence(360, 0.95)
    wrong = [int(name) % 37 == 0 for name in document["items"]]
    for mark in wrong:
        sequence.observe(mark)
    assert (document["drawn"], document["wrong"], document["bound"]) == (80, sum(wrong), sequence.bound)
    assert document["sentence"].startswith(f"Of the 360 values delivered, at most {sequence.bound} (")
    assert prove_audit(document).bound == sequence.bound


def test_a_resumed_audit_accumulates(table: Any) -> None:
    first = certificate(table, 40)
    second = certificate(table, 120, before=first)
    assert second["items"][:40] == first["items"]
    assert second == certificate(table, 120)  # looking in between cost nothing
    assert second["bound"] <= first["bound"]
    assert certificate(table, 10, before=first)["drawn"] == 40  # nothing that was drawn is forgotten


def test_an_audit_of_other_deliveries_begins_anew(table: Any, tmp_path: Path) -> None:
    first = certificate(table, 40)
    path = tmp_path / "delivered.csv"
    path.write_text(path.read_text().replace("\n7,7,", "\n7,8,"))
    with pytest.raises(Refused, match="other deliveries"):
        certificate(read_delivered(path, id_column="no"), 40, before=first)


def test_a_second_chance_is_refused(table: Any) -> None:
    """Another seed or confidence after looking would be another audit that may come out better."""
    first = certificate(table, 40)
    with pytest.raises(Refused, match="audited already, with seed 5"):
        draw_audit(table, 40, seed=6, rule=RULE, before=first)
    with pytest.raises(Refused, match=r"has confidence 0\.95"):
        draw_audit(table, 40, seed=5, rule=RULE, before=first, confidence=0.9)


def test_labels_count_up_to_the_first_that_waits(table: Any) -> None:
    """Nobody can leave out a label for what it says: what comes after a gap is not counted."""
    state = draw_audit(table, 30, seed=5, rule=GoldRule())
    assert len(state.waiting) == 30
    said = {name: name for at, name in enumerate(state.waiting) if at != 12}
    state = draw_audit(table, 30, seed=5, rule=GoldRule(), reviews=said)
    document = audit_document(state, confidence=0.95, risk=None, truth="17 reviews")
    assert document["drawn"] == 12
    assert len(state.waiting) == 1
    assert document["holds"] is None


def _drop_wrong(d: dict[str, Any]) -> None:
    place = d["record"]["labels"].index(True)
    d["record"]["labels"][place] = False


FORGERIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a smaller bound": lambda d: d.update(bound=d["bound"] - 1),
    "a smaller bound in both": lambda d: (d.update(bound=0), d["record"].update(bound=0)),
    "a label": _drop_wrong,
    "fewer wrong": lambda d: d.update(wrong=0),
    "another draw": lambda d: d["record"]["draws"].reverse(),
    "a draw left out": lambda d: (d["record"]["draws"].pop(0), d["record"]["labels"].pop(0)),
    "more confidence": lambda d: d.update(confidence=0.99),
    "a larger population": lambda d: d.update(population=10_000),
    "another seed": lambda d: d["record"].update(seed=6),
    "another digest": lambda d: d["record"].update(digest="0" * 64),
    "a risk that holds": lambda d: d.update(holds=not d["holds"]),
    "another sentence": lambda d: d.update(sentence="Nothing is wrong."),
    "fewer wrong items": lambda d: d["wrong_items"].pop(),
    "an item twice": lambda d: d["items"].__setitem__(1, d["items"][0]),
    "a fixed size afterwards": lambda d: d["record"].update(at_any_stop=False),
    "a size called planned afterwards": lambda d: d["record"].update(at_any_stop=False, planned=d["drawn"]),
    "a prior chosen afterwards": lambda d: d["record"].update(prior=[1.0, 30.0]),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_audit_is_refused(table: Any, forgery: str) -> None:
    document = certificate(table, 120)
    assert document["wrong"] > 0
    forged = copy.deepcopy(document)
    FORGERIES[forgery](forged)
    assert forged != document
    with pytest.raises(Refused):
        prove_audit(forged)


def test_every_entry_may_be_anything(table: Any) -> None:
    document = certificate(table, 30)
    junk: Any
    for key in document:
        for junk in (None, True, -1, "1e999999999", [], {}, [[]]):
            try:
                prove_audit({**document, key: junk})
            except Refused:
                continue
    for junk in (None, 1, "x", [], {}):
        with pytest.raises(Refused):
            prove_audit(junk)


def test_a_gold_column_that_is_not_there(table: Any) -> None:
    with pytest.raises(InputError, match="no gold column 'truth'"):
        draw_audit(table, 5, seed=1, rule=GoldRule("truth"))


def test_a_label_that_was_counted_is_not_changed(table: Any, tmp_path: Path) -> None:
    """Neither for the better nor for the worse: an edit after the draw is refused and named, in the
    gold column and in what people wrote.
    """
    first = certificate(table, 120)
    wrong, right = first["wrong_items"][0], next(i for i in first["items"] if i not in first["wrong_items"])
    with pytest.raises(Refused, match=f"item '{wrong}' was labelled wrong .* and right now"):
        certificate(table, 120, before=first, reviews={wrong: wrong})
    with pytest.raises(Refused, match=f"item '{right}' was labelled right .* and wrong now"):
        certificate(table, 150, before=first, reviews={right: "0"})
    path = tmp_path / "delivered.csv"
    path.write_text(path.read_text().replace(f"\n{wrong},{wrong},{int(wrong) + 1}\n", f"\n{wrong},{wrong},{wrong}\n"))
    edited = read_delivered(path, id_column="no")
    assert edited.digest == table.digest  # what was delivered is the same; only its truth is another
    with pytest.raises(Refused, match="a label that was looked at stays"):
        certificate(edited, 120, before=first)
    assert certificate(table, 130, before=first)["items"][:120] == first["items"]


def test_a_reviewer_who_cannot_tell_does_not_help(table: Any) -> None:
    """A row that nobody decides counts as wrong, so the bound is the worst that its truth could
    make it; a row that is left empty ends what is counted.
    """
    waiting = draw_audit(table, 30, seed=5, rule=GoldRule()).waiting
    said = {name: "?" if at == 12 else name for at, name in enumerate(waiting)}
    state = draw_audit(table, 30, seed=5, rule=GoldRule(), reviews=said)
    document = audit_document(state, confidence=0.95, risk=None, truth="30 reviews")
    assert (document["drawn"], document["wrong_items"]) == (30, [waiting[12]])
    for truth in (waiting[12], "no"):
        other = draw_audit(table, 30, seed=5, rule=GoldRule(), reviews={**said, waiting[12]: truth})
        assert audit_document(other, confidence=0.95, risk=None, truth="")["bound"] <= document["bound"]
    prove_audit(document)


@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize("wrong", ["none", "one", "all"])
def test_an_audit_of_everything_is_a_count(tmp_path: Path, rows: int, wrong: str) -> None:
    """N drawn of N: the bound is the number of wrong items, also for a table of one; more labels
    than items are all of them.
    """
    bad = {"none": 0, "one": 1, "all": rows}[wrong]
    path = tmp_path / "small.csv"
    path.write_text("no,answer,booked\n" + "".join(f"{n},5,{6 if n < bad else 5}\n" for n in range(rows)))
    table = read_delivered(path, id_column="no")
    for labels in (rows, rows + 50):
        document = certificate(table, labels)
        assert (document["drawn"], document["wrong"], document["bound"]) == (rows, bad, bad)
        assert prove_audit(document).bound == bad
    with pytest.raises(InputError, match="draw at least 1"):
        certificate(table, 0)


ROWS = [{"no": f"i{n}", "answer": str(10 + n % 7), "booked": str(10 + n % 7), "note": "same"} for n in range(40)]


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    path.write_text("\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)]) + "\n")
    return path


@pytest.fixture(params=["no", None])
def audited(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, Path]:
    path = write(tmp_path / "delivered.csv", ROWS)
    table = read_delivered(path, id_column=request.param)
    state = draw_audit(table, 12, seed=3, rule=GoldRule("booked"))
    return audit_document(state, confidence=0.95, risk=0.3, truth="gold"), path


def test_the_same_file_is_known_without_being_told_its_ids(audited: tuple[Any, Path]) -> None:
    assert check_delivered(*audited).digest == audited[0]["record"]["digest"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows[7].update(answer="99"), "an id or an answer has changed"),
        (lambda rows: rows.pop(), "39 values; 40 were audited"),
        (lambda rows: rows[3].update(answer=""), "39 values; 40 were audited"),
        (lambda rows: rows.append({**rows[0], "no": "new"}), "41 values; 40 were audited"),
        (lambda rows: rows.reverse(), "changed since the audit"),
        (lambda rows: rows[5].update(answer=rows[6]["answer"] + " "), "an id or an answer has changed"),
    ],
)
def test_any_change_is_noticed(audited: tuple[Any, Path], change: Callable[[Any], Any], words: str) -> None:
    rows = [dict(row) for row in ROWS]
    change(rows)
    with pytest.raises(Refused, match=words):
        check_delivered(audited[0], write(audited[1], rows))


def test_what_was_not_audited_may_change(audited: tuple[Any, Path]) -> None:
    rows = [{**row, "note": "other"} for row in ROWS]
    check_delivered(audited[0], write(audited[1], rows))


def test_every_single_answer_and_id_counts(audited: tuple[Any, Path]) -> None:
    for place in range(len(ROWS)):
        for column in ("answer", "no"):
            rows = [dict(row) for row in ROWS]
            rows[place][column] += "1"
            if column == "no" and audited[0]["items"][0].isdigit():
                continue  # audited by row numbers: nobody said that this column names the rows
            with pytest.raises(Refused):
                check_delivered(audited[0], write(audited[1], rows))


def test_what_was_audited_in_another_column_is_not_there(audited: tuple[Any, Path]) -> None:
    """Ids of the next row, or answers of nobody, with the audited ones kept in a column beside
    them.
    """
    ids = [row["no"] for row in ROWS]
    moved = [{**row, "no": other, "line": row["no"]} for row, other in zip(ROWS, ids[1:] + ids[:1], strict=True)]
    zeros = [{**row, "answer": "0", "rrf_answer": row["answer"]} for row in ROWS]
    named = audited[0]["columns"]["id"] == "no"
    for rows in (moved, zeros) if named else (zeros,):
        with pytest.raises(Refused, match="changed since the audit"):
            check_delivered(audited[0], write(audited[1], rows))
    with pytest.raises(Refused, match="no column 'answer'"):
        check_delivered(audited[0], write(audited[1], [{"no": row["no"], "said": row["answer"]} for row in ROWS]))


def test_columns_are_under_the_digest(audited: tuple[Any, Path]) -> None:
    """A forger who keeps the audited values in another column, and has the certificate name that
    one.
    """
    document, path = audited
    write(path, [{**row, "audited": row["answer"], "answer": "0"} for row in ROWS])
    forged = {**document, "columns": {**document["columns"], "answer": "audited"}}
    prove_audit(forged)
    with pytest.raises(Refused, match="changed since the audit"):
        check_delivered(forged, path)
    unnamed = {key: value for key, value in document.items() if key != "columns"}
    with pytest.raises(Refused, match="'columns' is missing; if another version of rrf-design wrote it, make it anew"):
        prove_audit(unnamed)
    for columns in (None, {"id": "no"}, {"id": 3, "answer": "answer"}, {"id": None, "answer": None}):
        with pytest.raises(Refused, match="columns"):
            prove_audit({**document, "columns": columns})
    ids = "the numbers of the rows" if document["columns"]["id"] is None else "column 'no'"
    assert compared(check_delivered(document, write(path, ROWS))) == f"ids: {ids}, answers: column 'answer'"


def test_a_run_is_compared_by_its_items(tmp_path: Path) -> None:
    from rrf_design.documents import sealed
    from rrf_design.promises._delivered_tables import DeliveredTable

    items: list[dict[str, Any]] = [{"id": f"i{n}", "answer": n if n % 5 else None} for n in range(30)]
    kept = [(str(item["id"]), item["answer"]) for item in items if item["answer"] is not None]
    ids, answers = zip(*kept, strict=True)
    table = DeliveredTable("run", ids, answers, tuple({"booked": str(answer)} for answer in answers))
    audit = audit_document(draw_audit(table, 5, seed=0, rule=GoldRule("booked")), confidence=0.9, risk=None, truth="g")
    path = tmp_path / "run.json"
    path.write_text(json.dumps(sealed("rrf-delivery", {"items": items})))
    check_delivered(audit, path)
    items[1]["answer"] = 77
    path.write_text(json.dumps(sealed("rrf-delivery", {"items": items})))
    with pytest.raises(Refused, match="an id or an answer has changed"):
        check_delivered(audit, path)
    path.write_text(json.dumps(sealed("rrf-delivery", {"items": [{"id": 1}]})))
    with pytest.raises(InputError, match="no items with an id and an answer"):
        check_delivered(audit, path)


@pytest.fixture
def delivered_tables_table(tmp_path: Path) -> Any:
    path = tmp_path / "delivered.csv"
    path.write_text("no,answer,booked\n1,1,1\n2,,2\n3,4,3\n")
    return read_delivered(path, id_column="no")


def test_rows_without_an_answer_were_not_delivered(delivered_tables_table: Any) -> None:
    assert (delivered_tables_table.ids, delivered_tables_table.answers) == (("1", "3"), ("1", "4"))


def test_the_digest_is_of_ids_answers_and_their_columns(tmp_path: Path, delivered_tables_table: Any) -> None:
    digests = {delivered_tables_table.digest}
    for text in ("no,answer\n1,1\n3,5\n", "no,answer\n3,4\n1,1\n", "no,rrf_answer\n1,1\n3,4\n"):
        (tmp_path / "other.csv").write_text(text)
        digests.add(read_delivered(tmp_path / "other.csv", id_column="no").digest)
    assert len(digests) == 4
    (tmp_path / "other.csv").write_text("no,answer,more\n1,1,x\n3,4,y\n")
    assert read_delivered(tmp_path / "other.csv", id_column="no").digest == delivered_tables_table.digest


def test_a_document_that_is_no_run(make_world: Any) -> None:
    with pytest.raises(InputError, match="audit what was delivered, a table or a run of one; this is 'rrf-policy'"):
        read_run_document({"format": "rrf-policy"}, "policy.json", make_world(items=5).dataset)


def test_people_see_the_row_and_neither_answer_nor_truth(delivered_tables_table: Any) -> None:
    assert delivered_tables_table.shown(0) == "no: 1; booked: 1"
    assert delivered_tables_table.shown(0, without="booked") == "no: 1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no,value\n1,2\n", "no column 'answer'"),
        ("no,answer\n1,\n", "no row has an answer"),
        ("no,answer\n1,2\n1,3\n", "not unique"),
        ("no,answer\n1,2,3\n1,3,4\n2,2\n", "2 of 3 rows can't be used"),
    ],
)
def test_a_table_that_cannot_be_audited(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=words):
        read_delivered(tmp_path / "t.csv", id_column="no")


ROWS_REVIEWS = [("007", "What is right?", "text, with comma"), ("008", "=HYPERLINK()", "two\nlines")]


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
    assert write_reviews(path, ROWS_REVIEWS) == 2
    assert read_reviews(path) == {}
    fill(path, "008", "12,50")
    assert read_reviews(path) == {"008": "12,50"}
    write_reviews(path, [*ROWS_REVIEWS, ("009", "?", "new")])
    assert read_reviews(path) == {"008": "12,50"}
    assert "009" in path.read_text()


def test_a_spreadsheet_runs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "review.csv"
    write_reviews(path, ROWS_REVIEWS)
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
        ("id,value\n,5\n", "row 1: the column id is missing or empty"),
        ("value\n5\n", "row 1: the column id is missing or empty"),
        ("id,value\n1,5\n1,6\n", "row 2: item '1' has two different values"),
        ("id,value\n9,5\n", "row 1: item '9' was not asked about"),
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
    for call in (lambda path: write_reviews(path, ROWS_REVIEWS), read_reviews):
        with pytest.raises(InputError, match=r"review files end in .csv or .jsonl"):
            call(tmp_path / "review.xlsx")


def test_label_studio_gives_truths_too_and_they_stay(tmp_path: Path) -> None:
    path = tmp_path / "review.json"
    assert write_reviews(path, ROWS_REVIEWS) == 2
    tasks = json.loads(path.read_text())
    given = {"value": {"text": ["12,50"]}, "from_name": "value", "to_name": "question", "type": "textarea"}
    asked = next(task for task in tasks if task["data"]["id"] == "008")
    asked["annotations"] = [{"was_cancelled": False, "result": [given]}]
    path.write_text(json.dumps(tasks))
    for _ in range(2):
        assert read_reviews(path) == {"008": "12,50"}
        write_reviews(path, ROWS_REVIEWS)


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
    write_reviews(path, [*ROWS_REVIEWS, ("009", "?", "empty")])
    fill(path, "008", "12,50")
    before = read_reviews(path)
    assert write_reviews(path, ROWS_REVIEWS[:1]) == 1
    assert read_reviews(path) == before == {"008": "12,50"}
    assert "009" not in path.read_text()
    write_reviews(path, ROWS_REVIEWS)
    assert path.read_text().count("008") == 1


def _partly_checked(folder: Path, *, checked: int, rows: int = 300) -> Path:
    """A delivered table of which people looked at the first rows."""
    path = folder / "delivered.csv"
    lines = ["no,truth,answer,verdict"]
    lines += [f"{n},{n},{n},{'checked' if n < checked else 'consistent'}" for n in range(rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_only_rows_that_nobody_checked_are_drawn(tmp_path: Path) -> None:
    path = _partly_checked(tmp_path, checked=100)
    found = rrf.audit(path, gold="truth", id_column="no", labels=80, risk=0.05)
    assert found.document["population"] == 200
    assert found.document["checked"] == 100
    assert all(int(name) >= 100 for name in found.document["items"])
    assert found.document["holds"] == (found.bound <= 15)
    assert found.sentence.startswith("Of the 300 values delivered, at most ")
    assert "0 of 80 drawn at random from the 200 that nobody had checked were wrong" in found.sentence
    assert check_delivered(found.document, path).checked == 100
    path.write_text(path.read_text().replace("150,150,150,consistent", "150,150,150,checked"))
    with pytest.raises(Refused):
        check_delivered(found.document, path)


def test_the_number_of_checked_values_is_bound_to_the_draws(tmp_path: Path) -> None:
    found = rrf.audit(_partly_checked(tmp_path, checked=100), gold="truth", id_column="no", labels=60)
    for told in (99, 101, 100_000):
        with pytest.raises(Refused, match="draw other items"):
            prove_audit({**found.document, "checked": told})
    with pytest.raises(Refused):
        prove_audit({name: value for name, value in found.document.items() if name != "checked"})


def test_an_audit_that_can_show_nothing_is_refused_before_anybody_looks(tmp_path: Path) -> None:
    path = _partly_checked(tmp_path, checked=0)
    with pytest.raises(InputError, match=r"60 labels can't show a risk of 5 % even with none wrong: .* give 72"):
        rrf.audit(path, gold="truth", id_column="no", labels=60, risk=0.05)
    assert rrf.audit(path, gold="truth", id_column="no", labels=72, risk=0.05).document["holds"]


def test_a_table_of_which_everything_was_checked_has_nothing_to_audit(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="every row with an answer was checked"):
        rrf.audit(_partly_checked(tmp_path, checked=300), gold="truth", id_column="no", labels=60)
