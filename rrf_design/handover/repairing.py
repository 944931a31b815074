"""Repair of a data set: the answers of every item, decoded with what their structures share, streamed chunk by chunk.

Memory does not grow with the table: rows go to a spool as they come. Chunks are the same whatever `n_jobs` is and wherever
an earlier run stopped, so the result is the same to the last bit.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design.bundles import Backend, Given, bundled, refuse_unused
from rrf_design.errors import InputError
from rrf_design.files import canonical_digest
from rrf_design.handover.bench import Bench, BenchSettings, RawItem
from rrf_design.handover.delivered import Delivery
from rrf_design.handover.reviews import Reviews, read_reviews
from rrf_design.handover.rows import DeliveredRow
from rrf_design.handover.spool import Spool
from rrf_design.noise import Noise
from rrf_design.problem import Problem
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.questions.datasets import DataItem, Dataset
from rrf_design.questions.recipe import Recipe
from rrf_design.repairing.run import MEANS
from rrf_design.workers import Supply, is_serial, shared_out, supplied

if TYPE_CHECKING:
    from solvers.result import Progress

CHUNK = 500
"""Items that are decoded, and travel to another process, together."""


@bundled(noise=Noise, given=Given, backend=Backend, rest="backend")
def repair_dataset(
    dataset: Dataset,
    responses: Any,
    *,
    select: Any = None,
    method: str = "auto",
    k: int | None = None,
    noise: Noise | None = None,
    given: Given | None = None,
    backend: Backend | None = None,
) -> Delivery:
    """`repair` for every item of a data set, from rows `id node [repeat model] value|text|status [cost]`.

    Of `given`, `reviews` is a filled-in review list, and `resume` names a file that keeps rows as they come; a second call with it goes on where
    the first stopped. An item that can't be used is one row with the verdict incomplete.
    """
    started = time.perf_counter()
    chosen = None if select is None else select if isinstance(select, str) else tuple(select)
    means, beside = Backend.of(backend, "repair", *MEANS), given or Given()
    refuse_unused(beside, "repair of a data set", ("reviews", "resume"))
    resume, progress = beside.resume, means.progress
    settings = BenchSettings(chosen, method, k, noise, replace(means, n_jobs=None, progress=None))
    examples = {key: one.example for key, one in dataset.structures.items()}
    bench = Bench(dataset.recipe, examples, settings)
    said = Reviews({}) if beside.reviews is None else read_reviews(beside.reviews, dataset)
    spool = Spool(resume, about=_about(dataset, responses, said, settings, resume), chunk=CHUNK)
    count = _Count(len(dataset), progress)
    with RecordedAnswers(dataset, responses) as answers:
        items = dataset.items_in_order()
        for row, item in zip(spool, items, strict=False):
            if row.id != item.id:
                raise InputError(f"{resume}: it holds a row of item {row.id!r} where {item.id!r} should be")
            count.add([row])
        items = islice(dataset.items_in_order(), spool.count, None)
        chunks = _chunks(items, answers, said)
        for rows in _worked(bench, dataset.recipe, examples, settings, chunks, means.n_jobs):
            spool.add(rows)
            count.add(rows)
    again = responses if isinstance(responses, str | os.PathLike | list | tuple) else None
    return Delivery(dataset, spool, verdicts=count.verdicts, seconds=time.perf_counter() - started, answers=again)


def _chunks(items: Iterator[DataItem], answers: RecordedAnswers, said: Reviews) -> Iterator[list[RawItem]]:
    while True:
        chunk = [
            RawItem(item.id, item.seen, item.structure, answers.of(item.id), said.of(item.id))
            for item in islice(items, CHUNK)
        ]
        if not chunk:
            return
        yield chunk


def _worked(
    bench: Bench,
    recipe: Recipe,
    examples: Mapping[str, Problem],
    settings: BenchSettings,
    chunks: Iterator[list[RawItem]],
    n_jobs: int | None,
) -> Iterator[list[DeliveredRow]]:
    if is_serial(n_jobs):
        yield from map(bench.rows, chunks)
        return
    from joblib import delayed

    with supplied((recipe, examples, settings)) as supply:
        yield from shared_out((delayed(_elsewhere)(supply, chunk) for chunk in chunks), n_jobs=n_jobs)


_BENCHES: dict[str, Bench] = {}
"""The bench of this process: what its structures share is worked out once, not once a chunk."""


def _elsewhere(supply: Supply, chunk: Sequence[RawItem]) -> list[DeliveredRow]:
    if supply.name not in _BENCHES:
        _BENCHES.clear()
        _BENCHES[supply.name] = Bench(*supply.get())
    return _BENCHES[supply.name].rows(chunk)


class _Count:
    """How many items are finished, and with what verdicts."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total, self._progress, self.verdicts = total, progress, Counter[str]()

    def add(self, rows: Sequence[DeliveredRow]) -> None:
        self.verdicts.update(row.verdict.value for row in rows)
        if self._progress is not None and len(rows) > 1:
            done = sum(self.verdicts.values())
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.verdicts.items()))
            self._progress(done / max(1, self._total), None, f"{done} of {self._total} items are finished: {kinds}")


def _about(dataset: Dataset, responses: Any, said: Reviews, settings: BenchSettings, resume: Any) -> dict[str, Any]:
    """What rows belong to: compared when they are taken up again."""
    if resume is None:
        return {}
    for source, what in ((dataset.table.name, "table"), (responses, "answers")):
        if not isinstance(source, str | os.PathLike) or not Path(source).is_file():
            raise InputError(f"resume: the {what} must be a file, so that a later run can tell that it is the same")
    return {
        "recipe": dataset.recipe.digest,
        "table": _file_digest(dataset.table.name),
        "responses": _file_digest(responses),
        "reviews": canonical_digest(sorted((item, sorted(checks.items())) for item, checks in said.by_item.items())),
        "items": len(dataset),
        "settings": repr(settings),
    }


def _file_digest(path: Any) -> str:
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
