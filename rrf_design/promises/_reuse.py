"""Answers that a pilot bought of items outside it, to make the order of its tests: a run under its
policy takes them as they are. So does a later look at it those of an earlier one.

The answer cache keeps what was answered, and neither refusals nor empty texts. Asked again, those
would have a second chance that the items of the pilot never had, and a model that answers wrongly
what it first refused would be wrong more often than was tested. The journal keeps all of it.

Do the pilot's items still come out as they did?

Recorded answers have no models that a policy could be bound to; but the pilot's own items are among
them.

A policy that was tested on other answers, or against other truths, than those that are there now
promises nothing about the rest of them.

Answers and checks that a policy needs, bought live: stage after stage, each for the items that no
acceptance rule has decided yet.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rrf_design import files
from rrf_design.errors import Refused
from rrf_design.market import declared
from rrf_design.problem import Problem
from rrf_design.promises._buying import (
    NOTHING,
    BoughtAnswers,
    LiveModels,
    all_questions,
    answers_of,
    buy_answers,
    buy_checks,
    checking_work,
    identities,
)
from rrf_design.promises._checks import may_run
from rrf_design.promises._pilot_design import last_prices
from rrf_design.promises._play import LastPrices, PlayedPolicy, play
from rrf_design.promises._policies import CHECK_EVERYTHING, CascadePolicy
from rrf_design.promises._sheets import AnswerSheet, read_sheet
from rrf_design.promises._truths import Said, Truth
from rrf_design.questions.answers import RecordedAnswer
from rrf_design.questions.datasets import Dataset


def recalled(dataset: Dataset, live: LiveModels, runs: Sequence[str], ids: Collection[str]) -> BoughtAnswers:
    """What these runs of the journal asked of these items, where it is exactly what is asked of
    them now; nothing of runs that another journal holds.
    """
    asked = {item.id: all_questions(item.problem) for item in dataset.only(list(ids)).items_in_order()}
    problems = {name: problem for name, problem in asked.items() if problem is not None}
    return BoughtAnswers(_found(live, runs, problems), {})


def recalled_pilot(
    dataset: Dataset, live: LiveModels, runs: Sequence[str], *, models: Mapping[str, Any], checks: Collection[str]
) -> BoughtAnswers:
    """The items of which these runs asked everything that a pilot buys, answers and checks, of
    models that are still the same: Refused where they are not.

    A look that goes on with an earlier one has its items in one piece, which were bought in
    several: no run of the journal is about just these.
    """
    now = identities(dataset, live)
    if dict(models) != now:
        raise Refused(
            "the earlier look at this pilot asked other models, or another version or address of them; a pilot goes on"
            " with the same, or begins anew in another file"
        )
    answers = recalled(dataset, live, runs, list(dataset))
    asked = {name: all_questions(dataset[name]) for name in answers.answers}
    whole = [
        name
        for name, problem in asked.items()
        if problem is not None and _all(answers.of(name), [node.id for node in problem.nodes])
    ]
    work = checking_work(dataset, whole, answers, checks)
    checked = _found(live, runs, work.problems)
    wanted = {n: [a.id for a in problem.anchors if a.id not in work.given[n]] for n, problem in work.problems.items()}
    done = [name for name in whole if _all(checked.get(name, {}), wanted.get(name, ()))]
    said = {
        name: {**answers.of(name), **{check: checked[name][check] for check in wanted.get(name, ())}} for name in done
    }
    nodes = [node for name in done if (problem := asked[name]) is not None for node in problem.nodes]
    price = sum((declared(node) for node in nodes), checking_work(dataset, done, answers, checks).price)
    return BoughtAnswers(said, now, tuple(runs), price=price)


def _all(said: Mapping[str, RecordedAnswer], wanted: Sequence[str]) -> bool:
    return all(name in said for name in wanted)


def _found(
    live: LiveModels, runs: Sequence[str], problems: Mapping[str, Problem]
) -> dict[str, dict[str, RecordedAnswer]]:
    """What these runs have of exactly these problems."""
    from rrf_design.acquisition import Journal, read_run
    from rrf_design.acquisition.stores import no_journal

    if not runs or no_journal(live.store) is not None:
        return {}
    digests = {name: files.digest(problem) for name, problem in problems.items()}
    found: dict[str, dict[str, RecordedAnswer]] = {}
    with Journal(live.store) as journal:
        there = {summary.run for summary in journal.summaries()}
        heads = {run: journal.header(run)["digests"] for run in runs if run in there}
    for run, known in heads.items():
        same = {name for name, digest in digests.items() if known.get(name) == digest}
        for entry in read_run(run, store=live.store).items if same else ():
            if entry.item in same:
                problem = problems[entry.item]
                names = [*(node.id for node in problem.nodes), *(check.id for check in problem.anchors)]
                found[entry.item] = answers_of(entry, problem, names)
    return found


WORDS = {"r": "right", "w": "wrong", "-": "not delivered", "d": "delivered"}


def refuse_other_outcomes(
    data: Mapping[str, Any], pilot: AnswerSheet, truths: Sequence[Truth | None], *, last: LastPrices, recorded: bool
) -> None:
    """Refused where an item of the pilot, in the order of the draw, comes out otherwise than its
    policy says; items that are not recorded, or whose truth is not at hand, are passed over; not
    all of them may be, where answers are recorded and the pilot's were bought.
    """
    policy = CascadePolicy.from_json(data["ladder"])
    marks = next(entry["marks"] for entry in data["policies"] if entry["policy"] == policy.name)
    (played,) = play([policy], pilot, last=last)
    compared = 0
    for row, held, before, value, delivered, truth in zip(
        pilot.rows, played.held, marks, played.values, played.delivered, truths, strict=True
    ):
        if not (row.absent | row.lost).isdisjoint(held):
            continue
        compared += 1
        now = "-" if not delivered else _mark(value, truth, unknown="d" if before == "-" else before)
        if before != now:
            raise Refused(
                f"item {row.id!r} of the pilot was {WORDS[before]} when the policy was tested, and is {WORDS[now]} now:"
                " its recorded answers or its truth have changed since, and what was proven with the old ones does not"
                " hold for these; pilot it anew"
            )
    if data["models"] is not None and recorded and not compared:
        raise Refused(
            "the pilot asked its models live, and none of its items is among the recorded answers, so nothing says that"
            " these are by the same models; record the pilot's items too, or run it with the models"
        )


def _mark(value: Said | None, truth: Truth | None, *, unknown: str) -> str:
    return unknown if truth is None else "r" if truth.right(value) else "w"


def buy_stages(dataset: Dataset, live: LiveModels, data: Mapping[str, Any], nodes: Sequence[str]) -> BoughtAnswers:
    """Buy stage after stage, each for the items that the policy has not decided yet."""
    if data["policy"] == CHECK_EVERYTHING:
        return NOTHING
    policy = CascadePolicy.from_json(data["ladder"])
    piloted = set(data["drawn"])
    running = [name for name in dataset if name not in piloted]
    live = _within_budget(replace(live, purpose="run under a policy"), dataset)
    answers = recalled(dataset, live, data.get("runs", ()), running)
    may_run(dataset, policy.further, allowed=bool(live.options.get("allow_commands")))
    for stage, node in enumerate(policy.order, start=1):
        if not running:
            break
        new = [name for name in running if node not in answers.of(name)]
        answers = answers.joined(buy_answers(dataset, new, live.after(answers), nodes=[node]))
        sheet, played = _played(dataset.only(running), answers, policy, nodes)
        # What is decided within the answers at hand does not depend on those to come.
        running = [name for name, asked in zip(sheet.ids, played.asked, strict=True) if asked > stage]
    outside = dataset.only([name for name in dataset if name not in piloted])
    for step in policy.further:
        sheet, played = _played(outside, answers, policy, nodes)
        items = zip(sheet.ids, played.more, strict=True)
        escalating = [name for name, more in items if step in more and step not in answers.of(name)]
        bought = (
            buy_answers(dataset, escalating, live.after(answers), nodes=[step])
            if step in nodes
            else buy_checks(dataset, escalating, live.after(answers), answers, [step])
        )
        answers = answers.joined(bought)
    return answers


def _within_budget(live: LiveModels, dataset: Dataset) -> LiveModels:
    """[promise] budget limits what is bought, where the call has no limit of its own.

    What people cost beside it is said at the end.
    """
    promise = dataset.recipe.promise
    return live if live.budget is not None or promise is None else replace(live, budget=promise.budget)


def _played(
    dataset: Dataset, answers: BoughtAnswers, policy: CascadePolicy, nodes: Sequence[str]
) -> tuple[AnswerSheet, PlayedPolicy]:
    sheet = read_sheet(dataset, answers, nodes)
    (played,) = play([policy], sheet, last=last_prices(sheet, dataset.recipe.ladder))
    return sheet, played
