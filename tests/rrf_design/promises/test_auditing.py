from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rrf_design.errors import InputError, Refused
from rrf_design.promises import GoldRule, audit_document, draw_audit, prove_audit, read_delivered
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
