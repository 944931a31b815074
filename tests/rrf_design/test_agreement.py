"""One truth in every room: on generated problem files all verbs agree on wanted margin, radius,
price, reached and verdict; and verbs that touch a table on cost, rank, verdict and value of an
item.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreeing import BOUNDED, CHECKED, PRICED, SIGNS, TIERED, generated, live, page_words, true_field

import rrf_design as rrf
from rrf_design._explain import explain
from rrf_design.derive import field_problems
from rrf_design.goal import Goal
from rrf_design.models.scripted import ScriptedModel
from rrf_design.questions import RecordedAnswers
from rrf_design.reporting import write_report
from rrf_design.tables import delivery_of, write_output
from rrf_design.tables.rows import review_ranks
from rrf_design.texts import cell_text
from rrf_design.transforms import rules_of, stated, vetoed

CASES = 60


def same(first: float | None, second: float | None) -> bool:
    return first == second or (first is not None and second is not None and first == pytest.approx(second, rel=1e-6))


@pytest.mark.parametrize("seed", range(CASES))
def test_plan_explain_certify_and_repair_agree(seed: int) -> None:
    problem = generated(seed)
    wish = Goal.of(problem)
    bought = rrf.plan(problem, budget=3.5)
    told = explain(problem, bought.selected, mend=False)
    written = rrf.certify(problem, bought.selected, budgets=())
    standing = problem.design(bought.selected).standing(problem)
    assert same(bought.wanted, standing.wanted)
    assert same(told.wanted, standing.wanted)
    assert written.standing is not None
    assert same(written.standing.wanted, standing.wanted)
    assert same(bought.epsilon, standing.radius.total)
    assert same(written.document["error"]["effective_epsilon"] or 0.0, standing.radius.total or 0.0)
    assert same(bought.robust_lower, standing.robust_lower)
    assert same(written.robust_lower, standing.robust_lower)
    assert told.enough == standing.reached == written.standing.reached
    assert same(bought.cost, float(problem.design(bought.selected).price))
    assert same(bought.error_bound, standing.error_bound)
    assert same(written.error_bound, standing.error_bound)
    assert written.met == (standing.reached or not wish.named)
    found = problem.margin(bought.selected)
    assert same(written.gamma_lower, found.lower)
    assert told.margin.value == found.value
    if standing.robust_lower > 0:
        assert rrf.verify(written).valid


@pytest.mark.parametrize("seed", range(0, CASES, 4))
def test_a_run_and_its_page_say_what_the_other_verbs_say(seed: int, tmp_path: Path) -> None:
    """One answer in three runs is wrong; what was bought is then held against every other verb, and
    against the page.
    """
    problem = live(generated(seed))
    truth = true_field(problem) | ({"n1": 9.0} if seed % 3 == 0 else {})
    model = ScriptedModel(lambda request: f"{truth[request.prompt]}")
    run = rrf.acquire(problem, model, budget=4.5, store=tmp_path / "runs.sqlite")
    (item,) = run.items
    held = tuple(name for name in item.selected if name in {*item.problem.node_by_id, *item.problem.block_by_id})
    standing = problem.design(held).standing(problem)
    told = explain(problem, held, mend=False)
    written = rrf.certify(problem, held, budgets=())
    fixed = rrf.repair(problem, {name: list(value) for name, value in item.answers.items()}, select=held)
    assert item.reached == told.enough == standing.reached
    assert same(item.robust_lower, standing.robust_lower)
    assert same(item.robust_lower, written.robust_lower)
    assert run.spent == pytest.approx(float(problem.design(held).price))
    assert run.spent <= 4.5
    assert item.verdict == fixed.verdict
    assert item.assumes == fixed.assumes
    assert item.repair is not None
    assert same(item.repair["wanted"], fixed.wanted)
    assert same(item.repair["epsilon"], fixed.epsilon)
    assert same(item.repair["error_bound"], fixed.error_bound)
    assert run.passes == fixed.verdict.passes
    page = page_words(write_report(run, tmp_path / "run.html", problem=problem))
    assert f"verdict {SIGNS[item.verdict]}{item.verdict}" in page
    assert f"spent {run.spent:g} " in page
    assert ("The answers are consistent" in page) == (item.verdict == "consistent")
    if item.goal is not None:
        assert (": reached" if standing.reached else ": not reached") in page
    design = page_words(write_report(told, tmp_path / "design.html", problem=problem))
    assert f"{float(problem.design(held).price):g}" in design


@pytest.mark.parametrize("seed", range(CASES))
def test_a_plan_for_the_goal_reaches_it_everywhere(seed: int) -> None:
    problem = generated(seed)
    wish = Goal.of(problem)
    if not wish.named:
        return
    if wish.delta is not None and problem.design("all").radius(problem).total is None:
        with pytest.raises(rrf.InputError, match="range"):
            rrf.plan(problem)
        assert not explain(problem, "all", mend=False).enough
        return
    bought = rrf.plan(problem)
    standing = problem.design(bought.selected).standing(problem)
    if bought.status == "infeasible":
        assert not explain(problem, "all", mend=False).enough or problem.structure.market.node_items
        return
    assert bought.reached == standing.reached
    assert bought.cost == pytest.approx(float(problem.design(bought.selected).price))
    if not standing.reached:
        return
    truth = true_field(problem)
    checks = {a.id: truth[a.nodes[0]] for a in problem.anchors if a.id in bought.selected}
    design = problem.design(bought.selected)
    answers = {name: truth[name] for name in design.operator.node_ids}
    fixed = rrf.repair(problem, answers, select=bought.selected, anchors=checks)
    assert same(fixed.wanted, standing.wanted) or problem.delta is not None
    assert fixed.verdict.passes, fixed.reason


@pytest.fixture
def priced(make_world: Callable[..., Any]) -> Any:
    """Items of every verdict; one of three answers is on sale and has a price beside its cost."""
    world = make_world(items=150, nodes=3, scale=None, wrong=0.2, unread=0.3, seed=3)
    world.recipe.write_text(PRICED)
    return world


def test_repair_and_acquire_of_a_table_agree_on_every_row(priced: Any, tmp_path: Path) -> None:
    data = priced.dataset
    repaired = rrf.repair(data, priced.answers)
    run = rrf.acquire(data, responses=priced.answers, budget=0.0, store=tmp_path / "runs.sqlite")
    acquired = delivery_of(data, run)
    assert run.spent == 0.0  # what an item cost is one thing, what this run paid another
    assert repaired.ranks == acquired.ranks
    assert all(count > 0 for name, count in repaired.verdicts.items() if name != "checked")
    for one, other in zip(repaired.rows(), acquired.rows(), strict=True):
        assert (one.cost, one.verdict, one.answer, one.raw) == (9.0, other.verdict, other.answer, other.raw), one.id
        assert (one.cost, one.changed, one.wrong) == (other.cost, other.changed, other.wrong), one.id


@pytest.mark.parametrize("recipe", [PRICED, BOUNDED, CHECKED], ids=["priced", "bounded", "checked"])
def test_every_maker_of_rows_agrees_on_every_item(
    priced: Any, tmp_path: Path, recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repair of the table, whole, in small chunks and shared out; a run; batches of Arrow; the
    table as it is written and read again; and each item repaired alone.
    """
    pa = pytest.importorskip("pyarrow")
    table = priced.folder / "table.jsonl"
    rows = [json.loads(line) for line in table.read_text().splitlines()]
    rows = [{**row, "ledger": str(row["booked"]) if at % 3 == 0 else ""} for at, row in enumerate(rows)]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    priced.recipe.write_text(recipe)
    data = priced.dataset
    repaired = rrf.repair(data, priced.answers)
    acquired = delivery_of(
        data, rrf.acquire(data, responses=priced.answers, budget=0.0, store=tmp_path / "runs.sqlite")
    )
    monkeypatch.setattr("rrf_design.tables._engine.CHUNK", 7)
    again = rrf.repair(data, priced.answers, n_jobs=2)
    write_output(tmp_path / "delivered.csv", repaired)
    with (tmp_path / "delivered.csv").open(newline="") as stream:
        written = {row["no"]: row for row in csv.DictReader(stream)}
    with RecordedAnswers(data, priced.answers) as recorded:
        said = {item.id: recorded.of(item.id) for item in data.items_in_order()}
    batch = [
        {**item.cells, "answers": [{"node": node, **asdict(one)} for node, one in said[item.id].items()]}
        for item in data.items_in_order()
    ]
    arrow = {row["id"]: row for row in rrf.repairer(data.recipe)(pa.Table.from_pylist(batch)).to_pylist()}
    assert repaired.ranks == acquired.ranks == again.ranks
    for (item, row, rank), *others in zip(repaired.ranked(), acquired.rows(), again.rows(), strict=True):
        name, cells = item.id, row.cells(rank)
        for other in others:
            assert (other.cost, other.verdict, other.answer, other.raw) == (row.cost, row.verdict, row.answer, row.raw)
            assert (other.assumes, other.changed) == (row.assumes, row.changed), name
        for key in ("verdict", "answer", "raw", "assumes"):
            shown = None if cells[key] is None else cell_text(cells[key])
            assert arrow[name][key] == shown, (name, key)
            assert written[name][key] == (shown or ""), (name, key)
        assert arrow[name]["cost"] == float(written[name]["cost"]) == row.cost
        assert written[name]["rank"] == ("" if rank is None else str(rank))
        read = {node: one.response for node, one in said[name].items()}
        try:
            alone = rrf.repair(data[name], read, select=list(read))
        except rrf.InputError:  # no answer could be read
            assert row.verdict == "incomplete"
            continue
        assert (alone.verdict, alone.assumes) == (row.verdict, row.assumes), name
        assert row.answer is None or same(alone.repaired["total"][0], float(row.answer)), name
    assert ("checked" in repaired.verdicts and repaired.verdicts["checked"] > 0) == (recipe == CHECKED)


def test_a_policy_and_its_pilot_agree_with_a_repair_of_the_table(priced: Any) -> None:
    from rrf_design.promises import PilotSettings, run_policy

    data, document = priced.dataset, priced.document(PilotSettings(60, 0.2))
    repaired = rrf.repair(data, priced.answers)
    with RecordedAnswers(data, priced.answers) as answers:
        delivery = run_policy(data, answers, document).delivery
    rows = dict(delivery)
    assert document["policy"] != "check everything"
    assert {rows[name].cost for name in document["drawn"]} == {9.0}  # a pilot has every answer
    held = [name for name, row in rows.items() if row.answer is None and row.cost == 9.0 + 30.0]
    assert {rows[name].verdict for name in held} == {"ambiguous", "contradicted"}
    for name in held:  # every answer was asked: the rows say what a repair says, and a person costs 30 more
        assert (rows[name].verdict, rows[name].raw) == (repaired[name].verdict, repaired[name].raw)
    inside = [repaired[name].with_value(answer=None) for name in held]
    assert review_ranks(rows[name] for name in held) == review_ranks(inside)
    last = {
        verdict: [rank for _, row, rank in delivery.ranked() if rank and row.verdict == verdict] for verdict in SIGNS
    }
    assert max(last["contradicted"]) < min(last["ambiguous"])
    assert max(last["ambiguous"]) < min(last["incomplete"])


def test_every_verb_says_what_is_declared_of_the_field_and_whether_it_is_broken(priced: Any, tmp_path: Path) -> None:
    from rrf_design.promises import PilotSettings, run_policy

    priced.recipe.write_text(BOUNDED)
    data = priced.dataset
    repaired = rrf.repair(data, priced.answers)
    with RecordedAnswers(data, priced.answers) as answers:
        document = priced.document(PilotSettings(60, 0.2))
        policy = dict(run_policy(data, answers, document).delivery)
    run = rrf.acquire(data, responses=priced.answers, budget=0.0, store=tmp_path / "runs.sqlite")
    broken = 0
    for one, other in zip(repaired.rows(), delivery_of(data, run).rows(), strict=True):
        assert (one.verdict, one.answer, one.assumes) == (other.verdict, other.answer, other.assumes), one.id
        assert "the true field is at most 60 long" in one.assumes or one.verdict == "incomplete"
        if "amplitude = 60 is declared" in one.reason:
            broken += 1
            assert (one.verdict, one.answer) == ("contradicted", None)
            if policy[one.id].answer is None:
                assert policy[one.id].verdict == "contradicted"
        elif one.verdict == "consistent":
            assert float(one.answer) < 63
    assert broken > 10
    assert any(policy[row.id].verdict == "contradicted" for row in repaired.rows() if "amplitude" in row.reason)


def test_every_verb_knows_the_price_of_the_second_check(tmp_path: Path) -> None:
    """The first of two checks costs 5, the second 2."""
    data = rrf.dataset(TIERED, [{"no": "1"}])
    problem = data["1"]
    answers = [{"id": "1", "node": "a", "value": 7.0}]
    bought = rrf.plan(problem)
    (row,) = rrf.repair(data, answers, select=bought.selected).rows()
    run = rrf.acquire(data, responses=answers, mode="adaptive", store=tmp_path / "runs.sqlite")
    assert bought.selected == ("x", "y")
    assert (bought.cost, row.cost, run.spent, delivery_of(data, run)["1"].cost) == (7.0, 7.0, 7.0, 7.0)


def test_a_live_run_pays_for_what_is_asked_in_any_case(priced: Any, tmp_path: Path) -> None:
    """Under the budget, in what was spent, in the estimate and in the delivered cost."""
    data = priced.dataset.only([f"i{n}" for n in range(6)])
    model, store = ScriptedModel(lambda request: "7"), tmp_path / "runs.sqlite"
    run = rrf.acquire(data, model, store=store, budget=1000.0)
    rows = list(delivery_of(data, run).rows())
    assert {row.cost for row in rows} <= {4.0, 9.0}  # two are asked in any case, the third where it helps
    assert run.spent == pytest.approx(sum(row.cost for row in rows))
    said = rrf.estimate(data, "embedded").cost
    assert (said.expected, said.most) == (6 * 4.0, 6 * (9.0 + 30.0))
    poor = rrf.acquire(data, model, store=store, budget=5.0)
    assert poor.spent <= 5.0
    assert poor.verdicts["incomplete"] > 0


@pytest.mark.parametrize("seed", range(6))
def test_every_field_of_a_row_is_what_a_repair_of_its_own_problem_says(seed: int) -> None:
    """Numbers and choices of one document, with an equation between answers and one within: the row
    of a table, field by field, against `repair` of the part of the problem that each is judged by.
    """
    rng = np.random.default_rng(seed)
    money = [{"of": f"a.{name}", "tolerance": 0.01} for name in ("total", "net", "tax")]
    recipe = {
        "answer": [*money, {"of": "a.paid", "choices": ["yes", "no"]}],
        "ask": [
            {"id": "a", "prompt": "{{ x }}"},
            *({"id": n, "like": "a", "prompt": f"{n} {{{{ x }}}}"} for n in "bcd"),
        ],
        "equation": [
            {"sum": ["a.net", "a.tax"], "equals": "a.total"},
            {"sum": ["b.net", "b.tax"], "equals": "c.total"},
        ],
    }
    said, texts = [], {}
    for ask in "abcd":
        right = {"total": 119.0, "net": 100.0, "tax": 19.0, "paid": "yes"}
        wrong = {"total": 120.0, "net": 101.0, "tax": 18.0, "paid": "no"}
        texts[ask] = {name: wrong[name] if rng.random() < 0.15 else value for name, value in right.items()}
        said.append({"id": "1", "node": ask, "text": json.dumps(texts[ask])})
    data = rrf.dataset(recipe, [{"x": "1"}])
    (row,) = rrf.repair(data, said).rows()
    whole = data["1"]
    numbers = {f"{ask}.{name}": value for ask, own in texts.items() for name, value in own.items() if name != "paid"}
    gone = vetoed(rules_of(whole), {name: stated((value,)) for name, value in numbers.items()})
    given: dict[str, Any] = {name: value for name, value in numbers.items() if name not in gone}
    given |= {f"{ask}.paid": [1.0, 0.0] if own["paid"] == "yes" else [0.0, 1.0] for ask, own in texts.items()}
    assert set(gone) <= set(row.unread)
    for value, part in zip(row.values, field_problems(whole), strict=True):
        (node,) = part.deliver or ()
        struck = {name: {"status": "vetoed"} for name in gone}
        alone = rrf.repair(part, {name: one for name, one in (given | struck).items() if name in part.node_by_id})
        assert (value.field, value.verdict, value.assumes) == (node, alone.verdict, alone.assumes)
        if value.answer is not None:
            told = alone.repaired[node]
            assert told is not None
            expected = ("yes", "no")[int(told[1] > 0.5)] if len(told) == 2 else told[0]
            assert value.answer == pytest.approx(expected) if len(told) == 1 else value.answer == expected
            assert same(value.bound, alone.bounds[node])
