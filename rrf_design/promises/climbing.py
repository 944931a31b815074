"""Answers and checks that a policy needs, bought live: rung after rung, each for the items that no gate has decided yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rrf_design.promises.buying import NOTHING, BoughtAnswers, LiveModels, buy_answers, buy_checks
from rrf_design.promises.checks import may_run
from rrf_design.promises.family import CHECK_EVERYTHING, LadderPolicy
from rrf_design.promises.pilot_plans import last_prices
from rrf_design.promises.playing import PlayedPolicy, play
from rrf_design.promises.recalling import recalled
from rrf_design.promises.sheets import AnswerSheet, read_sheet
from rrf_design.questions.datasets import Dataset


def climb(dataset: Dataset, live: LiveModels, data: Mapping[str, Any], nodes: Sequence[str]) -> BoughtAnswers:
    """Buy rung after rung, each for the items that the policy has not decided yet."""
    if data["policy"] == CHECK_EVERYTHING:
        return NOTHING
    policy = LadderPolicy.from_json(data["ladder"])
    piloted = set(data["drawn"])
    running = [name for name in dataset if name not in piloted]
    live = _within_budget(replace(live, purpose="run under a policy"), dataset)
    answers = recalled(dataset, live, data.get("runs", ()), running)
    may_run(dataset, policy.further, allowed=bool(live.options.get("allow_commands")))
    for rung, node in enumerate(policy.order, start=1):
        if not running:
            break
        new = [name for name in running if node not in answers.of(name)]
        answers = answers.joined(buy_answers(dataset, new, live.after(answers), nodes=[node]))
        sheet, played = _played(dataset.only(running), answers, policy, nodes)
        # What is decided within the answers at hand does not depend on those to come.
        running = [name for name, asked in zip(sheet.ids, played.asked, strict=True) if asked > rung]
    outside = dataset.only([name for name in dataset if name not in piloted])
    for step in policy.further:
        sheet, played = _played(outside, answers, policy, nodes)
        items = zip(sheet.ids, played.more, strict=True)
        climbing = [name for name, more in items if step in more and step not in answers.of(name)]
        bought = (
            buy_answers(dataset, climbing, live.after(answers), nodes=[step])
            if step in nodes
            else buy_checks(dataset, climbing, live.after(answers), answers, [step])
        )
        answers = answers.joined(bought)
    return answers


def _within_budget(live: LiveModels, dataset: Dataset) -> LiveModels:
    """[promise] budget limits what is bought, where the call has no limit of its own. What people cost beside it is said at the end."""
    promise = dataset.recipe.promise
    return live if live.budget is not None or promise is None else replace(live, budget=promise.budget)


def _played(
    dataset: Dataset, answers: BoughtAnswers, policy: LadderPolicy, nodes: Sequence[str]
) -> tuple[AnswerSheet, PlayedPolicy]:
    sheet = read_sheet(dataset, answers, nodes)
    (played,) = play([policy], sheet, last=last_prices(sheet, dataset.recipe.ladder))
    return sheet, played
