"""All that happens to one item: ask what is not recorded yet, read, choose, evaluate, repair,
replay.

Answers are appended to a file of the run's directory the moment they come, so a run that was
stopped never asks a question twice; and a log that was published there by an earlier run on the
same model is used as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from rrf_design.errors import InputError
from rrf_design.models import Model, Outcome, Request
from rrf_design.models import get as get_model
from rrf_design.models.base import RETRYABLE
from rrf_design.responses.sandbox import Sandbox
from scenarios.kit import designs
from scenarios.kit.scenario import public
from scenarios.real_model import answers, arithmetic, fields, marks, programs, replay
from scenarios.real_model.choices import BASELINES, Choice, baseline, natural_repair

PUBLISHED = "answers.jsonl.gz"
AGAIN = "again.jsonl.gz"
NOT_ASKED = RETRYABLE | {Outcome.FAILED}
"""Outcomes that say nothing of the model: no log of its answers holds them."""


def item_of(task: str, index: int, *, seed: int) -> answers.Item:
    if task == "code":
        return programs.items(index + 1, seed=seed)[index]
    if task == "printed":
        return arithmetic.printed_items()[index]
    make = arithmetic.our_items if task == "ours" else arithmetic.items
    return make(index + 1, seed=seed)[index]


class Asker:
    """A log that asks its model for what it lacks.

    One per run; the model is loaded at the first question.
    """

    def __init__(self, model: str, recorded: str | None, directory: Path) -> None:
        self._spec = model
        self._model: Model | None = None
        name = public(model)
        self._file = directory / f"asked-{_safe(name)}.jsonl"
        self.log = answers.Log(spec=name)
        published = directory / PUBLISHED
        if recorded:
            self.log = answers.Log.read(recorded)
        elif published.is_file() and (found := answers.Log.read(published)).spec == name:
            self.log = found
        if self._file.is_file():
            self._load()

    def need(self, request: Request) -> None:
        if request in self.log:
            return
        if self._model is None:
            self._model = self._start()
        reply = self._model.ask(request)
        if reply.outcome in NOT_ASKED:
            raise InputError(
                f"model {self._spec} could not be asked ({reply.outcome}: {reply.detail}); mend that, and --resume"
                " goes on"
            )
        self.log.add(request, reply, at=datetime.now(UTC).isoformat(timespec="seconds"))
        with self._file.open("a", encoding="utf-8") as stream:
            entry = {"identity": self.log.identity, **self.log.entries[-1]}
            stream.write(json.dumps(entry, ensure_ascii=False) + "\n")

    def _start(self) -> Model:
        try:
            return get_model(self._spec)
        except InputError as error:
            raise InputError(f"{error}; without it, give recorded answers with --set answers=FILE.jsonl.gz") from None

    def _load(self) -> None:
        for line in self._file.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:  # cut off by a crash: that answer is asked again
                continue
            identity = entry.pop("identity")
            self.log.identity = self.log.identity or identity
            if identity == self.log.identity:
                self.log.extend([entry])


def _safe(text: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in text)[-60:]


@cache
def asker(model: str, recorded: str | None, directory: Path) -> Asker:
    return Asker(model, recorded, directory)


def asked_again(log: answers.Log, recorded: str | None, directory: Path) -> answers.Log:
    """Answers of the same backend to questions that the log holds already: as told, else as
    published, else none.
    """
    path = Path(recorded) if recorded else directory / AGAIN
    if not recorded and not path.is_file():
        return answers.Log(log.identity, spec=log.spec)
    again = answers.Log.read(path)
    if again.identity != log.identity:
        raise InputError(f"{path}: these answers are those of {again.identity}, not of {log.identity}; leave them out")
    return again.subset(request for request in again.requests if request in log)


@cache
def sandbox() -> Sandbox:
    return Sandbox()


def ask(item: answers.Item, source: Asker, *, seed: int) -> None:
    """Every request of an item; the reflection comes after the answer that it shows."""
    source.need(answers.node_requests(item)[0])
    for _, _, request in fields.requests(item, source.log, seed=seed):
        source.need(request)


def process(
    item: answers.Item, log: answers.Log, *, seed: int, budgets: tuple[int, ...] = (1, 2), replays: int | None = None
) -> dict[str, Any]:
    """Read, choose, and only then evaluate.

    `seed` drew the item; `replays`, the same by default, draws where its errors are replayed.
    """
    code = isinstance(item, programs.AskedProgram)
    found = fields.read(item, log, seed=seed)
    right = fields.truth(item)
    choices = {name: baseline(name, found, right, code=code) for name in BASELINES}
    repaired = {
        (design.name, k): natural_repair(design, found, right, k=k, code=code)
        for design in designs.DESIGNS
        for k in budgets
    }
    judged = marks.mark_candidates(item, found, sandbox() if code else None)
    rows = []
    for (name, k), result in repaired.items():
        mark = marks.mark_choice(item, None if result is None else result.choice, judged)
        rows.append(
            {
                "design": name,
                "k": k,
                **asdict(mark),
                **(Choice() if result is None else result.choice).told(found),
                "support": None if result is None else " ".join(map(str, result.support)),
                "residual": None if result is None else result.residual,
                "edit": None if result is None else result.edit,
            }
        )
    wrong = replay.wrong_values(item, found, judged)
    return {
        "id": item.id,
        "index": item.index,
        "task": answers.task(item),
        "family": answers.family(item),
        "truth": list(right),
        "candidates": [candidate.document() for candidate in found],
        "marks": [asdict(mark) for mark in judged],
        "baselines": {
            name: {**asdict(marks.mark_choice(item, choice, judged)), **choice.told(found)}
            for name, choice in choices.items()
        },
        "repairs": rows,
        "wrong": [list(value) for value in wrong],
        "replay": replay.replay_rows(item, wrong, seed=seed if replays is None else replays),
    }


Document = Mapping[str, Any]


def nodes_of(document: Document) -> list[tuple[fields.AnswerCandidate, bool]]:
    """The four transformed answers of a processed item, each with whether it is right."""
    pairs = zip(document["candidates"], document["marks"], strict=True)
    return [(fields.AnswerCandidate.from_document(c), m["correct"]) for c, m in pairs if c["role"] == "node"]


def recall(document: Document) -> bool:
    return any(correct for _, correct in nodes_of(document))


def opportunity(document: Document) -> bool:
    """At least one right and one wrong transformed answer."""
    return len({correct for _, correct in nodes_of(document)}) == 2
