"""One pass over a table: labels from anywhere, killed anywhere, and what is proven in the end."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.checker.delivery import ProvenDelivery, prove_delivery
from rrf_design.errors import InputError, Refused
from rrf_design.promises import DeliverySession, Look, read_cells
from rrf_design.questions import Dataset
from rrf_design.tables.delivered import write_output
from rrf_design.verdict import Verdict

RECIPE = """
[data]
table = "t.jsonl"
id = "no"
gold = "truth"
[answer]
of = "a"
k = 1
[[ask]]
id = "a"
prompt = "{{ text }}"
cost = 1.0
[[ask]]
id = "b"
like = "a"
prompt = "Again: {{ text }}"
cost = 1.0
[[ask]]
id = "c"
like = "a"
prompt = "And again: {{ text }}"
cost = 1.0
[[check]]
id = "clerk"
of = "a"
by = { person = "How much is {{ text }}?" }
cost = 10.0
"""


def a_table(folder: Path, rows: int = 60, *, seed: int = 1, recipe: str = RECIPE, **cells: Any) -> Dataset:
    """Numbers to be read off, with three answers each that are often wrong."""
    rng = np.random.default_rng(seed)
    (folder / "r.toml").write_text(recipe)
    table, said = [], []
    for number in range(rows):
        table.append({"no": f"r{number:03d}", "text": f"sum {number}", "truth": number, **cells})
        for node in "abc":
            value = number if rng.random() < 0.85 else number + int(rng.integers(1, 4))
            said.append({"id": f"r{number:03d}", "node": node, "value": value})
    (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))
    (folder / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in said))
    return rrf.dataset(folder / "r.toml")


def gold_of(name: str) -> int:
    return int(name.removeprefix("r"))


def wrong_in(found: rrf.TestedDelivery) -> int:
    return sum(row.answer is not None and float(row.answer) != gold_of(row.id) for row in found.delivery.rows())


def test_the_gold_column_is_the_labels_and_the_promise_holds(tmp_path: Path) -> None:
    found = rrf.deliver(a_table(tmp_path), tmp_path / "said.jsonl", risk="10%")
    assert found.reached
    assert found.next == ()
    assert wrong_in(found) <= found.bound <= 6
    assert found.rows == 60
    assert found.labels + found.remaining == 60
    assert found.spent == pytest.approx(180 + 10 * found.labels)
    assert found.sentence.startswith(f"At most {found.bound} of these 60 rows are wrong (confidence 95 %): 60 rows, ")
    assert f"{found.labels} looked at" in found.sentence
    assert repr(found).startswith("TestedDelivery(At most")
    assert "\n" not in repr(found)
    assert found.verdicts["checked"] == found.labels


def test_what_answers_disagree_on_is_handed_over_with_what_they_said(tmp_path: Path) -> None:
    found = rrf.deliver(a_table(tmp_path, 200), tmp_path / "said.jsonl", risk=0.3)
    open_still = [row for row in found.delivery.rows() if row.verdict == "contradicted"]
    assert open_still
    for row in open_still:
        assert row.answer is not None
        assert re.match(r"3 answers, [23] values: .*; handed over is the one to believe most", row.reason)


def test_json_has_the_promised_keys_and_they_are_attributes(tmp_path: Path) -> None:
    found = rrf.deliver(a_table(tmp_path), tmp_path / "said.jsonl", risk=0.1)
    told = found.to_json()
    keys = "run rows labels wrong_found remaining bound risk confidence reached spent verdicts next"
    for key in keys.split():
        assert key in told
        assert hasattr(found, key)
    json.dumps(told)


def test_a_mapping_a_function_and_the_gold_column_come_to_the_same(tmp_path: Path) -> None:
    data, said = a_table(tmp_path), tmp_path / "said.jsonl"
    gold = rrf.deliver(data, said, risk=0.1)
    asked: list[Look] = []

    def truth(look: Look) -> int:
        asked.append(look)
        return gold_of(look.id)

    assert rrf.deliver(data, said, risk=0.1, truth=truth).document == gold.document
    assert rrf.deliver(data, said, risk=0.1, truth={f"r{n:03d}": n for n in range(60)}).document == gold.document
    assert len(asked) == gold.labels


def test_answers_are_shown_of_doubtful_rows_only_and_gold_never(tmp_path: Path) -> None:
    asked: list[Look] = []

    def truth(look: Look) -> int:
        asked.append(look)
        return gold_of(look.id)

    rrf.deliver(a_table(tmp_path), tmp_path / "said.jsonl", risk=0.1, truth=truth)
    assert {look.stage for look in asked} == {"doubtful", "random"}
    for look in asked:
        assert (look.answers is None) == (look.stage == "random")
        assert "truth" not in look.row
        assert look.question == f"How much is sum {gold_of(look.id)}?"


def test_rows_wait_until_somebody_labels_them(tmp_path: Path) -> None:
    found = rrf.deliver(a_table(tmp_path), tmp_path / "said.jsonl", risk=0.1, truth={})
    assert not found.reached
    assert found.next
    assert found.bound == found.remaining == 60
    assert found.sentence.startswith("Not proven yet that at most 6 of these 60 rows are wrong")
    values = {row.verdict for row in found.delivery.rows() if row.answer is not None}
    assert values <= {Verdict.CONSISTENT}


def relabelled(data: Dataset, said: Path, record: Path, *, most: int, resume: bool) -> None:
    """Label until so many labels, then die on the spot."""
    with DeliverySession(data, said, risk=0.1, record=record, resume=resume) as session:
        done = 0
        while looks := session.next():
            for look in looks:
                if done == most:
                    os.kill(os.getpid(), signal.SIGKILL)
                session.label(look.id, gold_of(look.id))
                done += 1


def test_killed_between_any_two_labels_and_resumed_it_ends_with_the_same_document(tmp_path: Path) -> None:
    data, said = a_table(tmp_path, rows=40), tmp_path / "said.jsonl"
    whole = rrf.deliver(data, said, risk=0.1)
    text = json.dumps(whole.document)
    assert whole.labels > 8
    for most in range(whole.labels):
        record = tmp_path / f"record-{most}.jsonl"
        child = os.fork()
        if child == 0:
            try:
                relabelled(data, said, record, most=most, resume=False)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status)
        assert sum("labels" in line for line in record.read_text().splitlines()) == most
        again = rrf.deliver(data, said, risk=0.1, record=record, resume=True, truth=lambda look: gold_of(look.id))
        assert json.dumps(again.document) == text


def test_a_line_that_a_crash_cut_off_does_not_count(tmp_path: Path) -> None:
    data, said, record = a_table(tmp_path), tmp_path / "said.jsonl", tmp_path / "record.jsonl"
    whole = rrf.deliver(data, said, risk=0.1)
    with DeliverySession(data, said, risk=0.1, record=record) as session:
        first = session.next()[0]
        session.label(first.id, gold_of(first.id))
    with record.open("ab") as stream:
        stream.write(b'{"labels":{"1":[0]},"sa')
    again = rrf.deliver(data, said, risk=0.1, record=record, resume=True)
    assert again.document == whole.document


@pytest.mark.parametrize(
    "line",
    [
        "[1]",
        "[" * 100_000,
        '{"run":"deliver-0"}',
        '{"labels":null}',
        '{"labels":{"x":[0]},"said":{"row":"r000","value":0}}',
        '{"labels":{"4000":[0]},"said":{"row":"r000","value":0}}',
        '{"labels":{"1":[0]},"said":{"row":"r000","value":0}}',
    ],
)
def test_a_record_that_no_delivery_could_have_written_is_one_line(tmp_path: Path, line: str) -> None:
    data, said, record = a_table(tmp_path), tmp_path / "said.jsonl", tmp_path / "record.jsonl"
    with DeliverySession(data, said, risk=0.1, record=record) as session:
        first = session.next()[0]
        session.label(first.id, gold_of(first.id))
    record.write_text(record.read_text() + line + "\n")
    with pytest.raises(InputError, match="is no record of") as caught:
        DeliverySession(data, said, risk=0.1, record=record, resume=True)
    assert "\n" not in str(caught.value)


def test_the_order_of_labels_within_a_batch_says_nothing(tmp_path: Path) -> None:
    data, said = a_table(tmp_path), tmp_path / "said.jsonl"
    with DeliverySession(data, said, risk=0.1) as session:
        while looks := session.next():
            for look in reversed(looks):
                session.label(look.id, gold_of(look.id))
        assert session.result().document == rrf.deliver(data, said, risk=0.1).document


def test_a_record_is_of_one_delivery_and_of_one_person_at_a_time(tmp_path: Path) -> None:
    data, said, record = a_table(tmp_path), tmp_path / "said.jsonl", tmp_path / "record.jsonl"
    first = DeliverySession(data, said, risk=0.1, record=record)
    with pytest.raises(Refused, match="somebody else is labelling"):
        DeliverySession(data, said, risk=0.1, record=record, resume=True)
    first.close()
    with pytest.raises(InputError, match="begun already; go on with it by --resume"):
        DeliverySession(data, said, risk=0.1, record=record)
    with pytest.raises(InputError, match="another table, recipe, answers or risk"):
        DeliverySession(data, said, risk=0.2, record=record, resume=True)
    with pytest.raises(InputError, match="nothing to go on with"):
        DeliverySession(data, said, risk=0.1, record=tmp_path / "none.jsonl", resume=True)


def test_labels_that_mean_nothing_are_refused_in_one_line(tmp_path: Path) -> None:
    with DeliverySession(a_table(tmp_path), tmp_path / "said.jsonl", risk=0.1) as session:
        waiting = session.next()
        with pytest.raises(InputError, match="is not to be looked at now"):
            session.label("r999", 1)
        with pytest.raises(InputError, match=f"row '{waiting[0].id}': the truth 'many'"):
            session.label(waiting[0].id, "many")
        with pytest.raises(InputError, match="the label is empty"):
            session.label(waiting[0].id, " ")
        assert session.next() == waiting


def test_a_risk_is_a_share(tmp_path: Path) -> None:
    data = a_table(tmp_path)
    for wrong in ("many", "0", "1.5", "200%"):
        with pytest.raises(InputError, match="risk"):
            rrf.deliver(data, tmp_path / "said.jsonl", risk=wrong)
    with pytest.raises(InputError, match="no risk to keep"):
        rrf.deliver(data, tmp_path / "said.jsonl")


def test_what_nobody_can_tell_is_handed_over_empty(tmp_path: Path) -> None:
    asked: list[str] = []

    def truth(look: Look) -> Any:
        asked.append(look.id)
        return "?" if len(asked) == 1 else gold_of(look.id)

    found = rrf.deliver(a_table(tmp_path), tmp_path / "said.jsonl", risk=0.1, truth=truth)
    row = found.delivery[asked[0]]
    assert row.answer is None
    assert found.rows == 59
    assert found.sentence.endswith("1 more row is handed over empty, and no part of this count.")


def test_labels_from_before_fix_rows_and_prove_nothing(tmp_path: Path) -> None:
    known = {f"r{n:03d}": n for n in range(20)}
    found = rrf.deliver(a_table(tmp_path), tmp_path / "said.jsonl", risk=0.1, known=known)
    assert found.reached
    assert found.labels <= 40
    assert found.labels + found.remaining + 20 == 60
    assert "20 known from earlier labels" in found.sentence
    assert all(found.delivery[name].verdict is Verdict.CHECKED for name in known)
    drawn = {place for place, _, _ in found.document["draws"]}
    assert not drawn & set(range(20))
    with pytest.raises(InputError, match="'x' was not asked about"):
        rrf.deliver(a_table(tmp_path), tmp_path / "said.jsonl", risk=0.1, known={"x": 1})


def test_rows_that_a_check_decides_need_no_look(tmp_path: Path) -> None:
    check = '[[check]]\nid = "ledger"\nof = "a"\nby = { value = "{{ booked }}" }\ncost = 0.0\n'
    check += 'when = "{{ booked }}"\n'
    (tmp_path / "r.toml").write_text(RECIPE + check)
    data = a_table(tmp_path, recipe=RECIPE + check, booked="")
    rows = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    for row in rows[:30]:
        row["booked"] = str(row["truth"])
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = rrf.dataset(tmp_path / "r.toml")
    found = rrf.deliver(data, tmp_path / "said.jsonl", risk=0.1)
    assert found.document["checked"] == list(range(30))
    assert found.labels <= 30
    assert "30 decided by a check" in found.sentence
    assert wrong_in(found) <= found.bound


def test_rows_that_show_the_same_are_one_look(tmp_path: Path) -> None:
    data = a_table(tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    for number, row in enumerate(rows):
        row["text"], row["truth"] = f"sum {number % 20}", number % 20
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = rrf.dataset(tmp_path / "r.toml")
    found = rrf.deliver(data, tmp_path / "said.jsonl", risk=0.1, truth=lambda look: gold_of(look.id) % 20)
    assert found.reached
    assert found.labels <= 20
    assert found.labels * 3 + found.remaining == 60
    assert found.spent == pytest.approx(180 + 10 * found.labels)


def test_a_budget_pays_answers_and_labels_together(tmp_path: Path) -> None:
    data = a_table(tmp_path)
    found = rrf.deliver(data, tmp_path / "said.jsonl", risk=0.1, budget=180 + 10 * 7 + 5)
    assert found.labels == 7
    assert not found.reached
    assert found.stage == "spent"
    assert found.next == ()
    assert found.spent <= 255
    assert "7 labels at 10 (70)" in found.cost_sentence


def test_rows_without_any_answer_are_left_out_when_the_budget_is_gone(tmp_path: Path) -> None:
    data = a_table(tmp_path, rows=120)
    said = [json.loads(line) for line in (tmp_path / "said.jsonl").read_text().splitlines()]
    kept = [row for row in said if gold_of(row["id"]) >= 10]
    for row in kept:
        row["value"] = gold_of(row["id"])
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))
    found = rrf.deliver(data, tmp_path / "said.jsonl", risk=0.1, budget=360 + 10 * 28)
    assert found.reached
    assert 0 < found.to_json()["withheld"] <= 10
    assert found.rows == 120 - found.to_json()["withheld"]
    assert "handed over empty, and no part of this count" in found.sentence
    everything = rrf.deliver(data, tmp_path / "said.jsonl", risk=0.1)
    assert everything.to_json()["withheld"] == 0
    assert all(everything.delivery[f"r{n:03d}"].verdict is Verdict.CHECKED for n in range(10))


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[tuple[str, list[str]]]]:
    folder = tmp_path_factory.mktemp("proof")
    known = {"r000": 0, "r001": 99}
    found = rrf.deliver(a_table(folder), folder / "said.jsonl", risk=0.1, known=known)
    write_output(folder / "d.csv", found.delivery)
    document = json.loads(json.dumps(found.document))
    return document, read_cells(folder / "d.csv", document["columns"])


def test_a_proof_is_redone_with_and_without_its_table(proof: Any) -> None:
    document, table = proof
    found = prove_delivery(document, table)
    assert isinstance(found, ProvenDelivery)
    assert found == prove_delivery(document)
    assert found.reached
    assert found.drawn == len(document["draws"])


def test_verify_takes_deliveries_and_audits_as_objects_and_paths(tmp_path: Path) -> None:
    found = rrf.deliver(a_table(tmp_path), tmp_path / "said.jsonl", risk=0.1)
    proven = rrf.verify(found)
    assert proven.valid
    assert proven.reason == found.sentence
    assert "the labels of people" in proven.taken_on_trust
    path = tmp_path / "x.json"
    path.write_text(json.dumps(found.document))
    assert rrf.verify(path).valid
    path.write_text(json.dumps({**found.document, "looks": 1}))
    assert not rrf.verify(path).valid
    path.write_text(json.dumps({"format": "rrf-delivered"}))
    assert not rrf.verify(path).valid
    write_output(tmp_path / "d.csv", found.delivery)
    audited = rrf.audit(tmp_path / "d.csv", gold="truth", id_column="no", labels=20)
    assert rrf.verify(audited).reason == audited.sentence


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [leaf for key, part in value.items() for leaf in leaves(part, (*path, key))]
    if isinstance(value, list) and value:
        return [leaf for at, part in enumerate(value) for leaf in leaves(part, (*path, at))]
    return [path]


def changed(value: Any) -> Any:
    if value is None:
        return "x"
    if isinstance(value, str):
        return {"right": "wrong", "wrong": "right"}.get(value, value + "x")
    return [0] if isinstance(value, list) else value + 1


def with_leaf(document: dict[str, Any], path: tuple[Any, ...], change: Callable[[Any], Any]) -> dict[str, Any]:
    copy: Any = json.loads(json.dumps(document))
    here = copy
    for part in path[:-1]:
        here = here[part]
    here[path[-1]] = change(here[path[-1]])
    return dict(copy)


def test_every_leaf_that_is_changed_is_refused(proof: Any) -> None:
    document, _ = proof
    for path in leaves(document):
        with pytest.raises(Refused):
            prove_delivery(with_leaf(document, path, changed))
    for key in document:
        with pytest.raises(Refused):
            prove_delivery({name: value for name, value in document.items() if name != key})
    with pytest.raises(Refused, match="'more' is unknown"):
        prove_delivery({**document, "more": 1})


TOLD = {("run",), ("truth",), ("spent",), ("population", "table"), ("recipe", "name"), ("columns", "answers", 0)}
"""Information: nothing that is proven depends on it, and `verify` says so."""


def test_a_forger_who_seals_anew_changes_what_is_said_to_be_information_and_nothing_else(proof: Any) -> None:
    from rrf_design.checker.delivery import seal_of

    document, table = proof
    bare = {**document, "columns": {**document["columns"], "id": None}}
    assert prove_delivery({**bare, "seal": seal_of(bare)}, table)
    before = prove_delivery(document)
    for path in leaves(document):
        forged = with_leaf(document, path, changed)
        forged["seal"] = seal_of(forged)
        if path == ("seal",):
            continue
        try:
            found = prove_delivery(forged, table)
        except Refused:
            continue
        assert path in TOLD or path[0] in ("looks", "label_cost", "columns"), path
        assert (found.reached, found.rows, found.bound, found.drawn) == (
            before.reached,
            before.rows,
            before.bound,
            before.drawn,
        )


@pytest.mark.parametrize("place", ["drawn", "unseen", "id", "order", "short", "long"])
def test_another_table_is_refused(proof: Any, place: str) -> None:
    document, table = proof
    rows = [(name, list(cells)) for name, cells in table]
    drawn = [at for at, _, _ in document["draws"]]
    gone = {*drawn, *(at for at, _ in (*document["looked"], *document["before"]))}
    unseen = next(at for at in range(60) if at not in gone)
    if place == "drawn":
        rows[drawn[0]][1][0] = "7000"
    elif place == "unseen":
        rows[unseen][1][0] = "7000"
    elif place == "id":
        rows[unseen] = ("other", rows[unseen][1])
    elif place == "order":
        rows[0], rows[1] = rows[1], rows[0]
    elif place == "short":
        rows.pop()
    else:
        rows.append(("r060", ["60"]))
    with pytest.raises(Refused):
        prove_delivery(document, rows)


def test_forged_promises_are_refused_though_they_are_sealed(proof: Any) -> None:
    from rrf_design.checker.delivery import seal_of

    document, _ = proof

    def sealed(**changes: Any) -> dict[str, Any]:
        forged = {**json.loads(json.dumps(document)), **changes}
        return {**forged, "seal": seal_of(forged)}

    fewer = sealed(draws=document["draws"][:-1], looks=document["looks"] - 1)
    assert not prove_delivery(fewer).reached
    kinder = [[place, "right", pick] for place, _, pick in document["draws"]]
    if kinder != document["draws"]:
        with pytest.raises(Refused, match="it was proven after"):
            prove_delivery(sealed(draws=kinder))
    with pytest.raises(Refused, match="draw other rows"):
        prove_delivery(sealed(risk=0.2))
    with pytest.raises(Refused, match="draw other rows"):
        prove_delivery(sealed(seed=1))
    with pytest.raises(Refused, match="draw other rows"):
        prove_delivery(sealed(looked=document["looked"][1:]))
    with pytest.raises(Refused, match="draw other rows"):
        prove_delivery(sealed(draws=[*document["draws"][1:], document["draws"][0]]))
    with pytest.raises(Refused, match="withheld"):
        prove_delivery(sealed(withheld=[document["draws"][0][0], document["looked"][0][0]]))
