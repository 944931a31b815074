"""A file that was changed after its audit is not what was audited, however little was changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rrf_design.errors import InputError, Refused
from rrf_design.promises import GoldRule, audit_document, draw_audit, prove_audit, read_delivered
from rrf_design.promises.audits import check_delivered, compared

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
    from rrf_design.promises.audits import DeliveredTable

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
