"""Answers that a pilot bought of items outside it, to make the order of its tests: a run under its policy takes them as they are.

The answer cache keeps what was answered, and neither refusals nor empty texts. Asked again, those would have a second chance that the items of the pilot never had, and
a model that answers wrongly what it first refused would be wrong more often than was tested. The journal keeps all of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rrf_design import files
from rrf_design.promises.buying import NOTHING, BoughtAnswers, LiveModels, all_questions, answers_of
from rrf_design.questions.answers import RecordedAnswer
from rrf_design.questions.datasets import Dataset


def recalled(dataset: Dataset, live: LiveModels, runs: Sequence[str], ids: Collection[str]) -> BoughtAnswers:
    """What these runs of the journal asked of these items, where it is exactly what is asked of them now; nothing of runs that another journal holds."""
    from rrf_design.acquisition import Journal, read_run
    from rrf_design.acquisition.stores import no_journal

    if not runs or no_journal(live.store) is not None:
        return NOTHING
    asked = {item.id: all_questions(item.problem) for item in dataset.only(list(ids)).items_in_order()}
    digests = {name: files.digest(problem) for name, problem in asked.items() if problem is not None}
    found: dict[str, dict[str, RecordedAnswer]] = {}
    with Journal(live.store) as journal:
        there = {summary.run for summary in journal.summaries()}
        heads = {run: journal.header(run)["digests"] for run in runs if run in there}
    for run, known in heads.items():
        same = {name for name, digest in digests.items() if known.get(name) == digest}
        for entry in read_run(run, store=live.store).items if same else ():
            problem = asked.get(entry.item)
            if entry.item in same and problem is not None:
                found[entry.item] = answers_of(entry, problem, [node.id for node in problem.nodes])
    return BoughtAnswers(found, {})
