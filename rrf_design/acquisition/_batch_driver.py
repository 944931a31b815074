"""A run through the provider's batch interface: its questions are handed in together, and the
session ends while they are pending.

A purchase goes through four committed steps: its intent; its place in a batch, under a token that
is written down before the batch is made; the batch's name, once it is made; its outcome. Whoever is
killed in between finds by the token whether the batch was made, so nothing is asked twice, nothing
that was answered is lost, and what is reserved stays reserved. Only questions go this way; checks,
judges and models without the interface are asked at once.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rrf_design.acquisition._purchases import BatchRecord, Purchase
from rrf_design.acquisition.journal import Event, Kind
from rrf_design.acquisition.sources.base import NOTHING, Attempted, Unreachable
from rrf_design.acquisition.stopping import Because
from rrf_design.models.base import NotBegun
from rrf_design.models.batches import BatchFault, BatchInterface, BatchState, Handed, Undecided

if TYPE_CHECKING:
    from rrf_design.acquisition._fetch import Fetcher
    from rrf_design.acquisition._loop import Acquirer
    from rrf_design.acquisition.redaction import Redactor

PORTION = 1000
LINE = 256
"""Bytes of a request in a batch beside its body, at most."""
TRIES = 3
"""So often a question is handed in that comes back without an answer."""


class BatchDriver:
    """One session of a run in batches: collects what is back, asks what can be asked, hands it in.

    `pending` says what is still out.
    """

    def __init__(self, acquirer: Acquirer, fetcher: Fetcher, redactor: Redactor) -> None:
        self.acquirer, self.fetcher, self.redactor = acquirer, fetcher, redactor
        self.paused: str | None = None
        self.pending = ""

    def run(self) -> None:
        try:
            for record in list(self.acquirer.state.batches.values()):
                self._collect(record)
            self._hand_in(self._gather())
        except BatchFault as fault:
            self.paused = self.redactor.text(str(fault))
        self.fetcher.write_kept()
        out = self.acquirer.state.batches
        if self.paused is None and out:
            count = len(self.acquirer.state.in_batch)
            self.pending = f"answers pending: {count}, in batches: {len(out)}; --resume collects them"

    @property
    def ending(self) -> tuple[str, str] | None:
        """Why the session ended before the run did, and in which words; None where it did not."""
        if self.paused:
            return Because.PAUSED.value, self.paused
        return (Because.PENDING.value, self.pending) if self.pending else None

    def _gather(self) -> list[Purchase]:
        """Everything that can be asked now; what is no question for a batch is fetched on the
        way.
        """
        found: list[Purchase] = []
        while self.paused is None and (asked := self.acquirer.ask(PORTION)):
            for purchase in asked:
                if purchase.deferred:
                    continue
                if self.fetcher.in_batches(purchase):
                    found.append(purchase)
                else:
                    self._fetch(purchase)
        return found

    def _fetch(self, purchase: Purchase) -> None:
        state = self.acquirer.state.items[purchase.item]
        try:
            self.acquirer.tell(
                self.fetcher.fetch(purchase, state, lambda tried: self.acquirer.again(purchase, tried)), flush=False
            )
        except NotBegun:
            self.acquirer.release(purchase, "to be reserved anew")
        except Unreachable as error:
            self.paused = self.paused or self.redactor.text(str(error))
            self.acquirer.release(purchase, self.redactor.text(str(error)), used=error.used)

    def _hand_in(self, purchases: list[Purchase]) -> None:
        for name, group in self._groups(purchases):
            mark = self._interface(name).mark()
            record = BatchRecord(secrets.token_hex(12), name, tuple(purchase.id for purchase in group), mark=mark)
            self.acquirer.note(Event(Kind.BATCHED, record.document()))
            self._make(record, group)

    def _make(self, record: BatchRecord, group: list[Purchase]) -> None:
        requests = ((custom_id(purchase), self._body(purchase)) for purchase in group)
        made = self._interface(record.model).create(requests, record.token)
        self.acquirer.note(Event(Kind.BATCHED, record.named(made.id).document()))

    def _groups(self, purchases: list[Purchase]) -> Iterator[tuple[str, list[Purchase]]]:
        """Purchases by model, no group larger than a batch may be."""
        by_model: dict[str, list[Purchase]] = {}
        for purchase in purchases:
            by_model.setdefault(purchase.model, []).append(purchase)
        for name, members in by_model.items():
            most = self._interface(name)
            group: list[Purchase] = []
            size = 0
            for purchase in members:
                length = len(json.dumps(self._body(purchase))) + LINE
                if group and (len(group) == most.most_lines or size + length > most.most_bytes):
                    yield name, group
                    group, size = [], 0
                group.append(purchase)
                size += length
            yield name, group

    def _body(self, purchase: Purchase) -> dict[str, Any]:
        question = self.fetcher.questions[purchase.item, purchase.name]
        return question.model.batch_body(question.request)

    def _collect(self, record: BatchRecord) -> None:
        """Settle what a batch brought; one that was never made is made now."""
        waiting = [p for p in self.acquirer.state.pending if self.acquirer.state.in_batch.get(p.id) == record.token]
        if not self._brought(record, waiting):
            self._make(record, waiting)

    def _brought(self, record: BatchRecord, waiting: list[Purchase]) -> bool:
        """Settle what is back, if anything is; False if the batch was never made."""
        interface = self._interface(record.model)
        try:
            if record.batch is None:
                found = interface.find(Handed(record.token, record.mark, len(record.purchases)))
                if found is None:
                    return False
                record = record.named(found.id)
                self.acquirer.note(Event(Kind.BATCHED, record.document()))
            state = interface.look(record.batch or "")
            if not state.ended:
                return True
            answers = {custom_id(purchase): purchase for purchase in waiting}
            for line in interface.lines(state):
                purchase = answers.pop(str(line.get("custom_id")), None)
                if purchase is not None:
                    self._settle(purchase, line)
        except Undecided:
            return True
        except BatchFault as fault:
            if not fault.gone:
                raise
            for purchase in waiting:  # nobody can say whether it was charged
                if purchase.id in self.acquirer.state.in_batch:
                    self.acquirer.abandon(purchase, "the provider knows its batch no more")
            return True
        self._miss(list(answers.values()), state)
        return True

    def _settle(self, purchase: Purchase, line: dict[str, Any]) -> None:
        question = self.fetcher.questions[purchase.item, purchase.name]
        reply = question.model.batch_reply(question.request, line)
        try:
            settlement = self.fetcher.settle(purchase, reply)
        except Unreachable as error:
            self._unanswered(purchase, str(error), error.used)
            return
        self.acquirer.tell(settlement, flush=False)

    def _unanswered(self, purchase: Purchase, reason: str, used: Attempted = NOTHING) -> None:
        words = self.redactor.text(reason)
        if purchase.attempt + 1 < TRIES:
            self.acquirer.release(purchase, words, used=used, flush=False)
            return
        self.acquirer.tell_unanswered(purchase, words, used)

    def _miss(self, left: list[Purchase], state: BatchState) -> None:
        """What an ended batch has no line of: not charged where it failed, expired or was
        cancelled; lost where it says it is complete.
        """
        for purchase in left:
            if state.status == "completed":
                self.acquirer.abandon(purchase, "its batch is complete, and has no answer to it")
            else:
                self._unanswered(purchase, f"its batch is {state.status}")
        if state.status == "failed":
            self.paused = self.redactor.text(f"the provider refuses the batch: {state.fault or 'it does not say why'}")

    def _interface(self, name: str) -> BatchInterface:
        found = self.fetcher.roster[name].batches()
        assert found is not None
        return found


def custom_id(purchase: Purchase) -> str:
    """How a batch calls a purchase: one name for each intent, short and plain whatever the item is
    called.
    """
    return f"{purchase.attempt}-{hashlib.sha256(purchase.id.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}"
