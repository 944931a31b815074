"""Data set promises: panels of answers, boards, splits, baselines, coverage and forecasts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rrf_design.errors import InputError
from rrf_design.promises import PilotSettings, gold_truths, plan_pilot, run_pilot
from rrf_design.questions import dataset
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.risk import UNREADABLE, Among, Limit, Replay, Statement, choose, staggered
from rrf_design.risk._arguments import share
from rrf_design.risk._counts import BinomialTail
from rrf_design.risk._forecasts import FORECAST_ERROR
from scenarios.data_set_promises import TOSS_UP, coverage
from scenarios.data_set_promises.baselines import rules_of
from scenarios.data_set_promises.boards import Board, Boards, own_family
from scenarios.data_set_promises.drawn_panels import SIZE, drawn_panel
from scenarios.data_set_promises.forecast_cells import RISKS, TABLES, compared, foretold
from scenarios.data_set_promises.panels import NOBODY, Panel, folder_of, nodes_of_set, panel_names, read_panel
from scenarios.data_set_promises.splits import CONFIDENCE, CountTests, OrderItems, PromiseCell, chosen_by, play_cell
from scenarios.kit import Report


def test_equal_answers_have_equal_codes_and_silence_has_none(made_up_answers: Path) -> None:
    panel = read_panel(made_up_answers, "crux")
    assert panel.answers.shape == (160, 8)
    assert 0.005 < (panel.answers == UNREADABLE).mean() < 0.05
    assert (panel.answers == panel.gold[:, None]).mean() > 0.75
    assert set(panel.gold[panel.gold < 0].tolist()) <= {NOBODY}


def test_a_panel_may_share_the_answers_of_its_set(made_up_answers: Path) -> None:
    assert "gsm8k-small" in panel_names(made_up_answers)
    whole, part = read_panel(made_up_answers, "gsm8k"), read_panel(made_up_answers, "gsm8k-small")
    assert (whole.answers == part.answers).all()


def test_bad_input_is_one_line(made_up_answers: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give their folder: --set answers=FOLDER"):
        folder_of(None)
    with pytest.raises(InputError, match=r"there is no panels\.json"):
        folder_of(tmp_path)
    with pytest.raises(InputError, match="has no panel 'none'"):
        read_panel(made_up_answers, "none")
    (tmp_path / "panels.json").write_text('{"x": {"nodes": []}}', encoding="utf-8")
    with pytest.raises(InputError, match=r"x?\.table\.jsonl\.gz: can't be read"):
        read_panel(tmp_path, "x")


def test_a_draw_is_the_same_each_time_and_cheap_nodes_come_first(made_up_answers: Path) -> None:
    first, again, other = (drawn_panel(made_up_answers, "llmbar", draw) for draw in (0, 0, 1))
    assert first is not None
    assert again is not None
    assert other is not None
    assert first.nodes == again.nodes != other.nodes
    assert len(set(first.nodes)) == SIZE == first.answers.shape[1]
    assert (np.diff(first.prices) >= 0).all()
    assert set(first.nodes) <= set(nodes_of_set(made_up_answers, "llmbar"))


def test_a_set_with_few_nodes_has_no_draw(made_up_answers: Path) -> None:
    assert drawn_panel(made_up_answers, "nothing-like-it", 0) is None


U = UNREADABLE
PANEL = Panel(
    "toy",
    np.array([[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1], [U, U, U, U], [0, 1, 1, 1]]),
    np.array([0, 1, 0, NOBODY, 1]),
    np.ones(4),
    ("a", "b", "c", "d"),
)


def test_plurality_is_wrong_where_most_are_or_nobody_speaks() -> None:
    outcome = rules_of(PANEL, 10.0).fixed["plurality of all"]
    assert outcome.wrong.tolist() == [False, True, False, True, False]
    assert outcome.cost.tolist() == [4.0] * 5


def test_thresholds_deliver_less_the_higher_they_are() -> None:
    tested = rules_of(PANEL, 10.0).tested
    assert [int((~o.checked).sum()) for o in tested] == [4, 4, 4, 3, 1]
    assert tested[4].cost.tolist() == [4.0, 14.0, 14.0, 14.0, 14.0]
    assert not tested[4].wrong.any()


def test_conformal_delivers_single_sets_only() -> None:
    conformal = rules_of(PANEL, 10.0).conformal
    assert conformal[0].checked.all()
    # At least one vote: only the first item has a single candidate. At least two: the tie has two
    # of them, silence none.
    assert (~conformal[1].checked).tolist() == [True, False, False, False, False]
    assert (~conformal[2].checked).tolist() == [True, True, False, False, True]
    assert conformal[2].wrong.tolist() == [False, True, False, False, False]


def test_conformal_sets_contain_the_truth_often_enough_on_average() -> None:
    """Exchangeable items: the truth has at least as many votes as the threshold in 1 − r of fresh
    items, on average over pilots.
    """
    rng = np.random.default_rng(0)
    gold = np.zeros(3000, dtype=np.int64)
    panel = Panel("p", np.where(rng.random((3000, 5)) < 0.8, 0, 1), gold, np.ones(5), tuple("abcde"))
    rules = rules_of(panel, 10.0)
    covered = []
    for _ in range(200):
        split = rng.permutation(3000)
        chosen = rules.play(split[:60], 0.1, lambda x: BinomialTail(60, share(0.1, "r"), x))["conformal abstention"]
        covered.append(1 - chosen.wrong[split[60:]].mean())
    assert np.mean(covered) >= 0.9


def test_adaptive_consistency_stops_when_the_leader_is_sure() -> None:
    outcome = rules_of(PANEL, 10.0).fixed["adaptive consistency"]
    # Four of four is the first lead with probability 0.95 (31/32); three of three has 15/16.
    assert outcome.cost.tolist() == [4.0] * 5


def test_the_products_family_has_climbs_and_the_plain_one_none(made_up_answers: Path) -> None:
    boards = Boards.of(read_panel(made_up_answers, "crux"), 30.0)
    assert len(boards.plain.played) == 144
    assert any(", " in p.name for p in boards.product.played)
    assert not any(", " in p.name for p in boards.plain.played)
    for board in (boards.product, boards.plain):
        assert board.cost.shape == board.wrong.shape == (160, len(board.played))
        assert not np.logical_and(board.wrong, board.checked).any()


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
            places = {name: at for at, name in enumerate(plan.whole.ids)}
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


@pytest.mark.parametrize("name", list(coverage.SIMULATIONS))
def test_promises_are_false_rarely_enough(name: str) -> None:
    found = coverage.simulate(name, times=60, seed=1)
    assert found["false"] <= 10


def test_a_bound_without_margin_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The naive estimate instead of the bound is below the truth about half of the time."""
    monkeypatch.setattr(coverage, "bound", lambda population, drawn, wrong, confidence: population * wrong // drawn)
    rng = np.random.default_rng(0)
    assert coverage.false_bounds(rng, 400, population=2000, wrong=100, drawn=200) > 100


def test_a_choice_without_correction_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Testing each of forty policies at the full level proves something false too often."""
    from rrf_design.risk import choose

    def each(family: list[coverage._Drawn], risk: float, confidence: float) -> str | None:
        return next((p.name for p in family if choose([p], risk, confidence)), None)

    monkeypatch.setattr(coverage, "choose", each)
    assert coverage.false_choices(np.random.default_rng(0), 150, policies=40, labels=100, risk=0.05) > 25


def test_costs_count_the_pilot_and_are_the_same_each_time(made_up_answers: Path) -> None:
    panel = read_panel(made_up_answers, panel_names(made_up_answers)[0])
    board = Board.of(panel, own_family(panel), 30.0)
    rows = compared(board, 30.0, splits=2, others=40, seed=3)
    assert rows == compared(board, 30.0, splits=2, others=40, seed=3)
    assert [(row["risk"], row["items"]) for row in rows] == [(risk, size) for risk in RISKS for size in TABLES]
    calls = float(panel.prices.sum())
    for row in rows:
        pilot = row["with labels"] * (30.0 + calls) / (row["items"] * 30.0)
        most = pilot + 1 - row["with labels"] / row["items"]
        assert pilot <= row["played, best"] <= most + 1e-9
        assert row["forecast, best"] <= row["forecast at the same size"] + 1e-12
        assert row["played, best"] <= row["forecast's choice, played"] + 1e-12


def test_the_verdict_knows_a_false_forecast_and_leaves_toss_ups_out() -> None:
    assert TOSS_UP == FORECAST_ERROR  # what a forecast wants to be saved is what the page calls a toss-up

    def row(played: float, pays: float) -> dict[str, Any]:
        named = {"panel": "p", "risk": 0.01, "items": 5, "played, best": played, "says that a pilot pays": pays}
        return {**named, "forecast, best": 0.9, "forecast at the same size": 0.9}

    page = Report()
    foretold(page, [row(0.5, 1.0), row(1.2, 0.0), row(0.99, 0.0), row(1.01, 1.0)], toss_up=0.05)
    foretold(page, [row(0.5, 0.4)], toss_up=0.05)
    foretold(page, [row(1.1, 0.6)], toss_up=0.05)
    assert [verdict.status.value for verdict in page.verdicts] == ["met", "violated", "violated"]
