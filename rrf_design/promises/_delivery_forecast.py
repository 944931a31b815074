"""What a delivery is expected to take, before anybody looks: from the answers alone."""

from __future__ import annotations

import os
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rrf_design.promises._asks import AUTO, AskPlan, cheapest
from rrf_design.promises._one_pass import OnePass
from rrf_design.promises._pass_rows import PassRows
from rrf_design.promises._pilot_design import settings_of
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.risk import boundary

if TYPE_CHECKING:
    from rrf_design.questions.datasets import Dataset

RISKS = (0.01, 0.02, 0.05, 0.1)
"""The risks of a forecast, beside the one that is asked for."""
USUAL = 0.05
"""The risk of the curve where none is asked for."""
PAYS = 0.95
"""A delivery pays where it is expected to cost less than this part of looking at every row."""


def forecast_delivery(
    dataset: Dataset,
    responses: RecordedAnswers | str | os.PathLike[str] | None,
    *,
    risk: float | None = None,
    confidence: float | None = None,
    asks: int | str | None = None,
) -> dict[str, Any]:
    """Looks to expect at several risks before anybody looks, and whether that pays: from the
    answers, no truth is read. Without answers, what the proof takes at least.

    `curve`: at the risk asked for, what answers and looks cost together if so many answers of each
    row are bought, the cheapest first; `best` how many that advises. `asks`: the forecast is for so
    many.
    """
    promise = dataset.recipe.promise
    wanted = risk if risk is not None else None if promise is None else promise.risk
    _, _, sure = settings_of(dataset, labels=None, risk=wanted or RISKS[0], confidence=confidence)
    plan = AskPlan.of(dataset, asks, risk=wanted or USUAL, confidence=sure)
    whole = None if responses is None else PassRows.read(dataset, responses, None)
    curve = [] if whole is None else plan.curve(whole, rows=len(dataset))
    best = cheapest(curve).answers if curve and whole is not None and whole.label_cost else len(plan.prices)
    if plan.count == AUTO:
        plan = replace(plan, count=best)
    table = whole
    if responses is not None and int(plan.count) < len(plan.prices):
        table = PassRows.read(dataset, responses, None, asks=plan)
    size, level = len(dataset), 1 - Fraction(str(sure))
    found = []
    for one in sorted({*RISKS, *([] if wanted is None else [wanted])}):
        allowed = int(Fraction(str(one)) * size)
        least = boundary(size, allowed, level, most=1).needed(0)
        row: dict[str, Any] = {"risk": one, "allowed": allowed, "least": least}
        if table is not None:
            session = OnePass(
                table.codes,
                risk=Fraction(str(one)),
                confidence=Fraction(str(sure)),
                seed=0,
                digest=lambda picks, withheld: "",
                settled=table.settled,
            )
            cut = session.expected()
            open_rows = size - len(table.settled)
            answers = float(sum(table.paid))
            everything = open_rows * table.label_cost
            cost = answers + cut.looks * table.label_cost
            pays = cost < PAYS * everything if table.label_cost else cut.looks < PAYS * open_rows
            row |= {"looks": round(cut.looks, 1), "likely_most": round(cut.likely_most, 1)}
            row |= {"cost": round(cost, 6), "check_everything": everything, "pays": bool(pays)}
        found.append(row)
    told = {"rows": size, "confidence": sure, "risk": wanted, "risks": found, "answers_known": table is not None}
    return {**told, "asks": plan.count, "best": best, "curve": [point.to_json() for point in curve]}
