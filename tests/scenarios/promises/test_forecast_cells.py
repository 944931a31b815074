"""What is forecast beside what is played: the same figures for the same draws, and a verdict that knows a false forecast."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rrf_design.risk.forecasts import FORECAST_ERROR
from scenarios.base import ConditionStatus
from scenarios.data_set_promises import TOSS_UP
from scenarios.promises.boards import Board, own_family
from scenarios.promises.forecast_cells import RISKS, TABLES, compared, foretold
from scenarios.promises.panels import panel_names, read_panel


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

    context: Any = SimpleNamespace(quick=False)
    assert (
        foretold(context, [row(0.5, 1.0), row(1.2, 0.0), row(0.99, 0.0), row(1.01, 1.0)], toss_up=0.05).status
        is ConditionStatus.MET
    )
    assert foretold(context, [row(0.5, 0.4)], toss_up=0.05).status is not ConditionStatus.MET
    assert foretold(context, [row(1.1, 0.6)], toss_up=0.05).status is not ConditionStatus.MET
