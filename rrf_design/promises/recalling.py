"""Answers that a pilot bought of items outside it, to make the order of its tests: a run under its policy takes them as they are. So does a later look at it those of an earlier one.

The answer cache keeps what was answered, and neither refusals nor empty texts. Asked again, those would have a second chance that the items of the pilot never had, and
a model that answers wrongly what it first refused would be wrong more often than was tested. The journal keeps all of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rrf_design import files
from rrf_design.errors import Refused
from rrf_design.market import exact
from rrf_design.problem import Problem
from rrf_design.promises.buying import BoughtAnswers, LiveModels, all_questions, answers_of, checking_work, identities
from rrf_design.questions.answers import RecordedAnswer
from rrf_design.questions.datasets import Dataset


def recalled(dataset: Dataset, live: LiveModels, runs: Sequence[str], ids: Collection[str]) -> BoughtAnswers:
    """What these runs of the journal asked of these items, where it is exactly what is asked of them now; nothing of runs that another journal holds."""
    asked = {item.id: all_questions(item.problem) for item in dataset.only(list(ids)).items_in_order()}
    problems = {name: problem for name, problem in asked.items() if problem is not None}
    return BoughtAnswers(_found(live, runs, problems), {})


def recalled_pilot(
    dataset: Dataset, live: LiveModels, runs: Sequence[str], *, models: Mapping[str, Any], checks: Collection[str]
) -> BoughtAnswers:
    """The items of which these runs asked everything that a pilot buys, answers and checks, of models that are still the same: Refused where they are not.

    A look that goes on with an earlier one has its items in one piece, which were bought in several: no run of the journal is about just these."""
    now = identities(dataset, live)
    if dict(models) != now:
        raise Refused(
            "the earlier look at this pilot asked other models, or another version or address of them; a pilot goes on with the same, or begins anew in another file"
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
    price = sum((exact(node.price or 0.0) for node in nodes), checking_work(dataset, done, answers, checks).price)
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
