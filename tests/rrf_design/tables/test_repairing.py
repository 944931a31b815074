"""A data set repaired at once gives what item by item gives, however it is cut up, and no item
stops another.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.questions import RecordedAnswers
from rrf_design.repairing.engine import RepairEngine
from rrf_design.responses.open_text import Classes
from rrf_design.tables import _engine as engine
from rrf_design.tables.rows import shown_value
from rrf_design.verdict import Verdict


def rows_of(answers: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Answers by item and node as the rows of a long table; texts are texts, numbers values."""
    key = {str: "text"}
    return [
        {"id": item, "node": node, key.get(type(said), "value"): said}
        for item, by_node in answers.items()
        for node, said in by_node.items()
    ]


def test_it_is_what_single_repairs_are(folder: Path, items: rrf.Dataset) -> None:
    """The slow and obvious way: one problem, one repair for each item."""
    delivery = rrf.repair(items, folder / "answers.jsonl")
    seen = set()
    with RecordedAnswers(items, folder / "answers.jsonl") as recorded:
        for row in delivery.rows():
            problem = items[row.id]
            responses = {node: answer.response for node, answer in recorded.of(row.id).items()}
            asked = [node for node in responses if problem.node_by_id[node].cost is not None]
            try:
                single = rrf.repair(problem, responses, select=asked)
            except InputError:  # no answer could be read
                assert row.verdict is Verdict.INCOMPLETE
                assert row.answer is None
                continue
            seen.add(row.verdict)
            assert (row.verdict, row.assumes, row.reason) == (single.verdict, single.assumes, single.reason)
            assert (row.wrong, row.unread) == (single.support, tuple(single.erased))
            value = single.repaired["total"]
            if row.answer is not None:
                assert value is not None
                assert row.answer == shown_value(value, None, Classes(()))
                assert row.bound == single.bounds.get("total")
            else:
                assert value is None or single.verdict in (Verdict.INCOMPLETE, Verdict.CONTRADICTED)
    assert {Verdict.CONSISTENT, Verdict.INCOMPLETE, Verdict.CONTRADICTED} <= seen


def test_nothing_that_is_certified_is_wrong_where_the_premise_holds(folder: Path, items: rrf.Dataset) -> None:
    """The attacker: every item with at most one wrong answer that is delivered has the true
    value.
    """
    delivery = rrf.repair(items, folder / "answers.jsonl")
    checked = 0
    with RecordedAnswers(items, folder / "answers.jsonl") as recorded:
        for item, row, _ in delivery.ranked():
            truth, fee = float(item.gold), item.cells["fee"]
            right = {"total": truth, "reworded": truth, "fee": truth + fee, "cents": 100 * truth}
            readable = {
                node: answer.value[0] if answer.value else float((answer.text or "").rpartition(" ")[2])
                for node, answer in recorded.of(item.id).items()
                if answer.value or (answer.text or "").startswith("That is")
            }
            wrong = sum(abs(value - right[node]) > 0.005 for node, value in readable.items())
            if row.verdict is Verdict.CONSISTENT and wrong <= 1:
                assert abs(row.answer - truth) <= 0.005
                checked += 1
    assert checked > 20


@pytest.mark.parametrize("chunk", [7, 500])
def test_cutting_it_up_and_sharing_it_out_changes_nothing(
    folder: Path, items: rrf.Dataset, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(engine, "CHUNK", chunk)
    one = [row.to_json() for row in rrf.repair(items, folder / "answers.jsonl").rows()]
    two = [row.to_json() for row in rrf.repair(items, folder / "answers.jsonl", n_jobs=2).rows()]
    assert one == two


def test_a_run_that_was_cut_short_goes_on(
    folder: Path, items: rrf.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "CHUNK", 10)
    whole = [row.to_json() for row in rrf.repair(items, folder / "answers.jsonl").rows()]
    kept = tmp_path / "rows.jsonl"
    done = 0

    def stop(share: float | None, bounds: object, words: str) -> None:
        nonlocal done
        done += 1
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rrf.repair(items, folder / "answers.jsonl", resume=kept, progress=stop)
    with kept.open("a") as stream:
        stream.write('{"id": "half a li')  # as a power cut leaves it
    work = engine.TableEngine.rows
    worked: list[int] = []

    def counted(self: Any, chunk: Any) -> Any:
        worked.append(len(chunk))
        return work(self, chunk)

    monkeypatch.setattr(engine.TableEngine, "rows", counted)
    again = rrf.repair(items, folder / "answers.jsonl", resume=kept)
    assert [row.to_json() for row in again.rows()] == whole
    assert sum(worked) == 30
    assert rrf.repair(items, folder / "answers.jsonl", resume=kept).verdicts == again.verdicts
    with pytest.raises(InputError, match="another recipe, table, set of answers or setting"):
        rrf.repair(items, folder / "answers.jsonl", resume=kept, k=2)


def test_equal_items_of_a_chunk_are_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same answers and checks are the same task; another check or a missing answer makes
    another one.
    """
    recipe = {
        "data": {"id": "no"},
        "answer": {"of": "a", "k": 1, "tolerance": 0.5},
        "ask": [
            {"id": n, "prompt": "{{ t }}", "parse": "decimal", **({} if n == "a" else {"like": "a"})} for n in "abc"
        ],
        "check": [{"id": "booked", "of": "a", "by": {"value": "{{ booked }}"}, "when": "{{ booked }}"}],
    }
    said = [("1", "1", "1"), ("1", "1", "1"), ("1", "1", "2"), ("1", "1", "nobody"), ("1", "1", ""), ("1", "1", "1")]
    table = [{"no": str(i), "t": f"text {i}", "booked": "1" if i == 5 else ""} for i in range(len(said))]
    answers = rows_of({str(i): dict(zip("abc", texts, strict=True)) for i, texts in enumerate(said)})
    counts = []
    real = RepairEngine.repair
    monkeypatch.setattr(RepairEngine, "repair", lambda own, p: (counts.append(len(p)), real(own, p))[1])
    together = rrf.repair(rrf.dataset(recipe, table), answers)
    assert counts == [4]
    monkeypatch.setattr(engine, "CHUNK", 1)  # each by itself
    apart = rrf.repair(rrf.dataset(recipe, table), answers)
    assert counts == [4, *[1] * 6]
    for one, other in zip(together.rows(), apart.rows(), strict=True):
        assert one == other


def test_one_bad_item_is_one_row(items: rrf.Dataset) -> None:
    answers = rows_of({name: {"total": 10.0, "reworded": 10.0, "fee": 10.0} for name in ("001", "002", "003")})
    fees = {item.id: item.cells["fee"] for item in items.items_in_order()}
    for row in answers:
        if row["node"] == "fee":
            row["value"] += fees[row["id"]]
    answers[3] = {"id": "002", "node": "total", "value": [1.0, 2.0]}
    delivery = rrf.repair(items.only(["001", "002", "003", "004"]), answers)
    rows = {row.id: row for row in delivery.rows()}
    assert rows["001"].verdict is rows["003"].verdict is Verdict.CONSISTENT
    assert rows["002"].verdict is Verdict.INCOMPLETE
    assert "has 2 numbers" in rows["002"].reason
    assert rows["004"].verdict is Verdict.INCOMPLETE
    assert "there is no answer" in rows["004"].reason
    assert rows["004"].answer is None


OPEN = {
    "data": {"id": "no"},
    "answer": {"of": "city"},
    "ask": [
        {"id": "city", "prompt": "Capital of {{ land }}?", "parse": "label"},
        {"id": "again", "prompt": "{{ land }}'s capital?", "parse": "label", "like": "city"},
        {"id": "third", "prompt": "Seat of government of {{ land }}?", "parse": "label", "like": "city"},
    ],
    "check": [{"id": "atlas", "of": "city", "by": {"value": "{{ known }}"}, "when": "{{ known }}"}],
}
LANDS = [
    {"no": "a", "land": "France", "known": ""},
    {"no": "b", "land": "Italy", "known": ""},
    {"no": "c", "land": "Spain", "known": "Madrid"},
    {"no": "d", "land": "Malta", "known": ""},
]


def test_open_answers_are_compared_as_classes() -> None:
    said = {
        "a": {"city": "Paris", "again": "paris.", "third": "The answer is Lyon"},
        "b": {"city": "Milan", "again": "Rome", "third": "Rome"},
        "c": {"city": "Madrid", "again": "Madrid", "third": "Seville"},
        "d": {"city": "Valletta", "again": "Mdina", "third": "Sliema"},
    }
    rows = {row.id: row for row in rrf.repair(rrf.dataset(OPEN, LANDS), rows_of(said)).rows()}
    assert (rows["a"].answer, rows["a"].verdict, rows["a"].wrong) == ("paris", Verdict.CONSISTENT, ("third",))
    assert (rows["b"].answer, rows["b"].changed, rows["b"].wrong) == ("rome", True, ("city",))
    assert (rows["c"].answer, rows["c"].verdict) == ("madrid", Verdict.CHECKED)
    assert (rows["d"].answer, rows["d"].verdict) == (None, Verdict.CONTRADICTED)


def test_open_answers_can_only_be_the_same() -> None:
    changed = {
        **OPEN,
        "ask": [*OPEN["ask"], {"id": "x", "prompt": "?", "parse": "label", "like": "city", "change": {"scale": 2}}],
    }
    with pytest.raises(InputError, match="can only be the same"):
        rrf.repair(rrf.dataset(changed, LANDS), rows_of({"a": {"city": "Paris"}}))


def test_choices_are_those_of_their_item() -> None:
    recipe = {
        "data": {"id": "no"},
        "answer": {"of": "one", "choices": "{{ options }}"},
        "ask": [
            {"id": "one", "prompt": "Which? {{ options }}"},
            {"id": "two", "prompt": "Choose: {{ options }}", "like": "one"},
            {"id": "three", "prompt": "Say: {{ options }}", "like": "one"},
        ],
    }
    table = [{"no": "a", "options": ["red", "green"]}, {"no": "b", "options": ["left", "right", "straight"]}]
    said = {
        "a": {"one": "red", "two": "green", "three": "green"},
        "b": {"one": "straight", "two": "straight", "three": "nowhere"},
    }
    rows = {row.id: row for row in rrf.repair(rrf.dataset(recipe, table), rows_of(said)).rows()}
    assert (rows["a"].answer, rows["a"].changed) == ("green", True)
    assert rows["b"].unread == ("three",)
    assert (rows["b"].answer, rows["b"].verdict) == (None, Verdict.INCOMPLETE)


def test_an_expression_is_evaluated_over_the_row_s_own_variables() -> None:
    variables = {"x": "{{ x }}"}
    recipe = {
        "problem": {"k": 1},
        "nodes": [
            {"id": "a", "prompt": "Twice {{ x }}?", "parser": "decimal", "variables": variables},
            {"id": "b", "prompt": "{{ x }} + {{ x }}?", "parser": "decimal"},
        ],
        "relations": [{"id": "same", "tail": "a", "head": "b"}],
        "anchors": [{"id": "twice", "node": "a", "source": "expression: x * 2"}],
    }
    rows = [{"x": n} for n in (1, 5, 7)]
    said = [{"id": str(at), "node": node, "value": 2 * row["x"]} for at, row in enumerate(rows, 1) for node in "ab"]
    found = rrf.repair(rrf.dataset(recipe, rows), said)
    assert [(row.verdict, row.answer) for row in found.values()] == [(Verdict.CONSISTENT, n) for n in (2, 10, 14)]
