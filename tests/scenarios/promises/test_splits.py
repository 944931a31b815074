"""A cell over splits: the fast bookkeeping against the product's own `choose`, and the promise where it can be counted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rrf_design.promises import PilotSettings, gold_truths, plan_pilot, run_pilot
from rrf_design.questions import dataset
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.risk import Among, Limit, Replay, Statement, choose, staggered
from scenarios.promises.boards import Boards, own_family
from scenarios.promises.panels import Panel, read_panel
from scenarios.promises.splits import CONFIDENCE, CountTests, OrderItems, PromiseCell, chosen_by, play_cell

CELL = PromiseCell("crux", 0.1, 80, 30.0)


@pytest.fixture(scope="module")
def boards(made_up_answers: Path) -> Boards:
    return Boards.of(read_panel(made_up_answers, CELL.panel), CELL.check)


def test_holm_on_one_split_is_the_choice_of_the_product(boards: Boards) -> None:
    board = boards.plain
    rows = play_cell(boards, CELL, splits=1, others=40, seed=3, diluted=True)
    (seed,) = np.random.SeedSequence([3, *map(ord, CELL.words)]).spawn(1)
    split = np.random.default_rng(seed).permutation(160)
    pilot, rest = split[:80], split[80:]
    policies = [
        Replay(p.name, p.cost[pilot], p.delivered[pilot], p.wrong[pilot], p.checked[pilot], p.value[pilot])
        for p in board.played
    ]
    chosen = choose(policies, Limit.of(0.1, among=Among.ALL), 0.95, population=160)
    place = [p.name for p in board.played].index(str(chosen))
    (holm,) = (row for row in rows if row["method"] == "Holm")
    assert holm["cost"] == pytest.approx(board.cost[rest, place].mean() / 30)
    assert holm["checks"] == pytest.approx(board.checked[rest, place].mean())
    assert holm["kept"] == float(board.wrong[:, place].sum() <= 16)


def test_methods_stand_where_they_must(boards: Boards) -> None:
    found = {row["method"]: row for row in play_cell(boards, CELL, splits=12, others=60, seed=0, diluted=True)}
    assert found["check everything"]["cost"] == 1.0
    assert found["best in hindsight"]["kept"] == 1.0
    assert found["staggered fronts"]["cost"] <= found["front, discounted"]["cost"] + 1e-9 + 0.02
    assert found["plurality of all"]["checks"] == 0.0
    assert found["plurality of all"]["cost"] == pytest.approx(25 / 30)
    assert found["adaptive consistency"]["cost"] < found["plurality of all"]["cost"]
    assert all(0 <= row["checks"] <= 1 and 0 <= row["kept"] <= 1 for row in found.values())


def as_recipe(panel: Panel, folder: Path) -> Path:
    """The same answers as a recipe with its table: codes for numbers."""
    asks = "".join(
        f'[[ask]]\nid = "{at}"\nprompt = "{{{{ text }}}} {at}"\ncost = {price}\n' + ('like = "0"\n' if at else "")
        for at, price in enumerate(panel.prices.tolist())
    )
    person = '[[check]]\nid = "clerk"\nof = "0"\nby = { person = "And {{ no }}?" }\ncost = 30.0\n'
    head = '[data]\ntable = "table.jsonl"\nid = "no"\ngold = "booked"\n[answer]\nof = "0"\nk = 1\n'
    (folder / "rrf.toml").write_text(head + asks + person)
    table = [{"no": f"i{at}", "text": f"item {at}", "booked": int(gold)} for at, gold in enumerate(panel.gold)]
    answers = [
        {"id": f"i{at}", "node": str(node), "text": "nothing" if code < 0 else str(code)}
        for at, row in enumerate(panel.answers.tolist())
        for node, code in enumerate(row)
    ]
    for name, rows in (("table", table), ("answers", answers)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "rrf.toml"


def test_one_split_is_what_a_pilot_of_the_product_chooses(made_up_answers: Path, tmp_path: Path) -> None:
    """The same family, the same order of tests, the same choice, for every statement."""
    panel = read_panel(made_up_answers, CELL.panel)
    boards = Boards.of(panel, CELL.check)
    data = dataset(as_recipe(panel, tmp_path))
    assert len(own_family(panel)) == len(boards.product.played)
    with RecordedAnswers(data, tmp_path / "answers.jsonl") as answers:
        for statement in Statement:
            plan = plan_pilot(data, answers, PilotSettings(80, 0.1, statement=statement, seed=5, aside=60))
            truths, _ = gold_truths(plan)
            result = run_pilot(plan, truths, truth_source="")
            places = {name: at for at, name in enumerate(plan.sheet.ids)}
            pilot = np.array(plan.drawn)
            aside = np.array([places[name] for name in plan.aside.ids])
            tests = CountTests(CELL, 160, statement)
            chains = OrderItems.of(boards.product, aside).chains()
            order = staggered(chains, tests.limit, tests.scope, confidence=CONFIDENCE)
            names = [policy.name for policy in plan.policies]
            told = [(stream.share, [names[int(place)] for place in stream.names]) for stream in order]
            assert told == [(stream.share, list(stream.names)) for stream in result.choice.streams]
            chosen = chosen_by(boards.product, CELL, tests, pilot, order)
            assert result.chosen is not None
            assert chosen is not None
            assert names[chosen] == result.chosen.name
