"""Peel, then prove: which rows people look at next, and when the rest is proven
(docs/algorithms.md, fact 36).

First the doubtful rows, worst first, in batches; their labels fix them and teach whom to believe.
Then everything about the untouched rows is frozen: which answer of each is handed over, how many
may be wrong, and their random order. They are looked at in that order, blindly, until the boundary
is met. A label of a random row never changes what another row delivers.

A pass knows rows by their places and answers by their codes. All that happens to it is an event: a
batch that was chosen, the freeze, a label. The same events in the same order give the same state,
so a pass can be gone on with by anybody who has them; what was decided once is not decided again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.errors import InputError, Refused
from rrf_design.risk import UNREADABLE, Believed, Boundary, Cut, ErrorGuess, Picks, boundary, draw_order, plan_cut

Codes = NDArray[np.int64]
Event = Mapping[str, Any]
"""{"batch": places, "picks": codes}, {"freeze": …} or {"labels": {place: codes that are right, or
None where nobody can tell}}."""
PROBED = 0.01
"""So many of the rows are peeled in any case, where answers differ: agreement may mislead, and
nothing but labels tells.
"""
LISTED = 63
"""Numbers of the boundary that are worked out at once."""


class Stage(StrEnum):
    DOUBTFUL = "doubtful"
    """The most doubtful rows: their labels fix and teach; answers may be shown."""
    RANDOM = "random"
    """Rows in random order: only their labels prove; answers are not shown."""
    DONE = "done"
    """The risk is reached."""
    SPENT = "spent"
    """The budget is gone before it was."""


@dataclass(frozen=True, slots=True)
class Looks:
    """The rows to look at now, in this order."""

    stage: Stage
    rows: tuple[int, ...] = ()

    @property
    def answers_may_be_shown(self) -> bool:
        return self.stage is Stage.DOUBTFUL


@dataclass(frozen=True, slots=True)
class Frozen:
    """What was fixed before the first random draw."""

    untouched: tuple[int, ...]
    """Places in the order of the table; `order` names places in this list."""
    order: tuple[int, ...]
    allowed: int
    withheld: tuple[int, ...]
    """Rows that are handed over empty and are no part of the denominator."""


class OnePass:
    """One pass over a table.

    `next` says what to look at, `label` takes what was found; `events` is all that happened.

    `answers`: codes (rows, nodes). `digest` names what is frozen: it is given the picks of the
    untouched rows and what was withheld. `settled`: rows that a check decides: right, and no part
    of the draw. `labels`: at most so many looks. `record` is called with each event before it
    counts; `history` is what an interrupted pass recorded.
    """

    def __init__(
        self,
        answers: Codes,
        *,
        risk: Fraction,
        confidence: Fraction,
        seed: int,
        digest: Callable[[Mapping[int, int], Sequence[int]], str],
        settled: Collection[int] = (),
        labels: int | None = None,
        record: Callable[[Event], None] = lambda event: None,
        history: Iterable[Event] = (),
    ) -> None:
        self.codes, self.risk, self.level, self.seed = answers, risk, 1 - confidence, seed
        self.settled, self.most = frozenset(settled), labels
        self.frozen: Frozen | None = None
        self.looked: dict[int, frozenset[int] | None] = {}
        """Of every row that is labelled: the codes that are right, None where nobody can tell."""
        self.looks = 0
        self.wrong: dict[int, bool] = {}
        """Of every labelled row, whether its answer at that time was wrong."""
        self._digest, self._record = digest, record
        self._believed, self._guess = Believed(answers), ErrorGuess()
        self.picks: Picks = self._believed.picks()
        self._batch: tuple[int, ...] = ()
        self._batches = 0
        self._peeled: dict[int, int] = {}
        self._unheard: list[int] = []
        self._taught = 0
        for event in history:
            self.apply(event)

    @property
    def rows(self) -> int:
        return len(self.codes)

    @property
    def known(self) -> list[int]:
        """Rows whose labels were there before anything was asked."""
        return sorted(place for place, batch in self._peeled.items() if batch == 0)

    @property
    def peeled(self) -> list[int]:
        """Rows that were looked at before the freeze: batch after batch, each by place."""
        return sorted((p for p, batch in self._peeled.items() if batch), key=lambda p: (self._peeled[p], p))

    @property
    def withheld(self) -> tuple[int, ...]:
        """Rows that leave the denominator: nobody can tell, or nothing explains them and the budget
        was gone.
        """
        if self.frozen is not None:
            return self.frozen.withheld
        return tuple(place for place in sorted(self.looked) if self.looked[place] is None)

    @property
    def allowed(self) -> int:
        """So many of the rows handed over may be wrong."""
        if self.frozen is not None:
            return self.frozen.allowed
        return int(self.risk * (self.rows - len(self.withheld)))

    @property
    def boundary(self) -> Boundary | None:
        if self.frozen is None:
            return None
        return boundary(len(self.frozen.untouched), self.frozen.allowed, self.level, most=LISTED)

    def counted(self) -> tuple[int, ...]:
        """The random rows that count: in their order up to the first without a label, or to the
        stop.
        """
        if self.frozen is None or (limits := self.boundary) is None:
            return ()
        found: list[int] = []
        wrong = 0
        while not limits.stops(len(found), wrong):
            place = self.frozen.untouched[self.frozen.order[len(found)]]
            if place not in self.looked:
                break
            found.append(place)
            wrong += self.wrong[place]
        return tuple(found)

    @property
    def reached(self) -> bool:
        """Whether the risk is proven."""
        drawn = self.counted()
        return self.boundary is not None and self.boundary.stops(len(drawn), sum(self.wrong[p] for p in drawn))

    def next(self) -> Looks:
        """What to look at now; what has to be decided for it is decided, and recorded."""
        while self.frozen is None:
            waiting = tuple(place for place in self._batch if place not in self.looked)
            if waiting:
                left = self._left()
                return Looks(Stage.SPENT) if left == 0 else Looks(Stage.DOUBTFUL, waiting[:left])
            self._happens(self._decided())
        drawn = self.counted()
        limits = self.boundary
        assert limits is not None
        needed = limits.needed(sum(self.wrong[place] for place in drawn))
        if len(drawn) >= needed:
            return Looks(Stage.DONE)
        rest = (self.frozen.untouched[at] for at in self.frozen.order[len(drawn) : needed])
        waiting = tuple(place for place in rest if place not in self.looked)[: self._left()]
        return Looks(Stage.RANDOM, waiting) if waiting else Looks(Stage.SPENT)

    def label(self, right: Mapping[int, Collection[int] | None], *, free: bool = False, said: Any = None) -> None:
        """What one look found: of a row, and of those alike, the codes of the answers that are
        right (none where no answer is), or None where nobody can tell. `free`: known from before;
        `said`: what is kept of it beside.
        """
        found = {str(place): None if codes is None else sorted(codes) for place, codes in right.items()}
        self._happens({"labels": found, "said": said, **({"free": True} if free else {})})

    def expected(self) -> Cut:
        """What is still to be looked at before the proof begins, and in all."""
        doubts = self.picks.doubt[list(self._untouched())]
        return plan_cut(self._guess, doubts, allowed=self.allowed, level=self.level)

    def _left(self) -> int | None:
        return None if self.most is None else max(0, self.most - self.looks)

    def _untouched(self) -> tuple[int, ...]:
        gone = self.settled | self.looked.keys()
        return tuple(place for place in range(self.rows) if place not in gone)

    def _happens(self, event: Event) -> None:
        self._record(event)
        self.apply(event)

    def _decided(self) -> Event:
        """The next batch, or the freeze."""
        self._hear()
        untouched = self._untouched()
        silent = [place for place in untouched if self.picks.code[place] == UNREADABLE]
        size, left = max(2, self.rows // 100), self._left()
        if silent:
            voiced = [place for place in untouched if self.picks.code[place] != UNREADABLE]
            reserve = 0.0
            if left is not None:
                doubts = self.picks.doubt[voiced]
                reserve = plan_cut(self._guess, doubts, allowed=self.allowed, level=self.level).looks
            affordable = len(silent) if left is None else int(left - reserve)
            if affordable > 0:
                return self._batch_of(silent[: min(size, affordable)])
            untouched = tuple(voiced)
        gone = [*self.withheld, *silent]
        allowed = int(self.risk * (self.rows - len(gone)))
        if len(untouched) > allowed:
            doubts = self.picks.doubt[list(untouched)]
            worst = sorted(untouched, key=lambda place: (-self.picks.doubt[place], place))
            probe = len(self._peeled) < PROBED * self.rows and self._believed.disputed[worst[0]]
            if probe or plan_cut(self._guess, doubts, allowed=allowed, level=self.level).peel:
                return self._batch_of(worst[: min(size, len(untouched) - allowed)])
        # Before everything stands still, all labels are heard once more.
        self._teach()
        frozen = {place: int(self.picks.code[place]) for place in untouched}
        return {"freeze": {str(place): code for place, code in frozen.items()}, "withheld": sorted(gone)}

    def _batch_of(self, rows: Sequence[int]) -> Event:
        return {"batch": list(rows), "picks": [int(self.picks.code[place]) for place in rows]}

    def apply(self, event: Event) -> None:
        """Let an event count that was recorded before."""
        if "labels" in event:
            self._label(event["labels"], free=bool(event.get("free")))
            return
        self._hear()
        if "batch" in event:
            self._batch = tuple(event["batch"])
            self._batches += 1
            self._pick(dict(zip(event["batch"], event["picks"], strict=True)))
        else:
            self._freeze({int(place): int(code) for place, code in event["freeze"].items()}, event["withheld"])

    def _pick(self, codes: Mapping[int, int]) -> None:
        """What was picked when it was decided, whatever would be now."""
        found = self.picks.code.copy()
        for place, code in codes.items():
            found[place] = code
        self.picks = Picks(found, self.picks.doubt)

    def _freeze(self, picks: Mapping[int, int], withheld: Sequence[int]) -> None:
        untouched = tuple(sorted(picks))
        self._pick(picks)
        digest = self._digest(picks, withheld)
        order = tuple(draw_order(len(untouched), self.seed, digest=digest))
        allowed = int(self.risk * (self.rows - len(withheld)))
        self.frozen = Frozen(untouched, order, allowed, tuple(withheld))

    def _label(self, labels: Mapping[str, Sequence[int] | None], *, free: bool) -> None:
        fresh = [int(place) for place in labels if int(place) not in self.looked]
        self.looks += not free
        for place in fresh:
            codes = labels[str(place)]
            self.looked[place] = None if codes is None else frozenset(codes)
            self.wrong[place] = codes is None or int(self.picks.code[place]) not in codes
        if self.frozen is None:
            self._peeled |= dict.fromkeys(fresh, 0 if free else self._batches)
            self._unheard += fresh

    def _hear(self) -> None:
        """Learn from the labels of a batch when all of it is labelled: their order says nothing."""
        known = sorted(place for place in self._unheard if self.picks.code[place] != UNREADABLE)
        self._unheard = []
        if known:
            self._guess.see(self.picks.doubt[known], np.array([self.wrong[place] for place in known]))
        if self.frozen is None and len(self._peeled) - self._taught >= max(4, self.rows // 40):
            self._teach()

    def _teach(self) -> None:
        """Refit whom to believe; only rows without a label are touched by what follows."""
        told = [place for place in sorted(self._peeled) if self.looked[place] is not None]
        self._believed.teach(told, [self._truth(place) for place in told])
        self._guess.fade()
        self.picks, self._taught = self._believed.picks(), len(self._peeled)

    def _truth(self, place: int) -> int:
        """One code that is right: the first node's; UNREADABLE where no answer is."""
        codes = self.looked[place] or ()
        return next((int(code) for code in self.codes[place] if int(code) in codes), UNREADABLE)


class Record:
    """The events of a pass, a line each: written and on the disk before they count."""

    def __init__(self, path: Path, run: str, *, resume: bool) -> None:
        self.path = path
        self.events: list[Event] = []
        there = path.is_file() and path.stat().st_size > 0
        if there and not resume:
            raise InputError(f"{path}: this delivery was begun already; go on with it by --resume")
        if resume and not there:
            raise InputError(f"{path}: there is nothing to go on with; begin without --resume")
        try:
            self._file = path.open("r+b" if there else "xb")
        except OSError as error:
            raise InputError(f"{path}: can't be written ({error.strerror or error})") from None
        try:
            self._lock()
            if there:
                self._read(run)
            else:
                self.write({"run": run})
        except BaseException:
            self.close()
            raise

    def _lock(self) -> None:
        """One process at a time; the system lets go when it ends, however it does."""
        import fcntl

        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Refused(f"{self.path}: somebody else is labelling this delivery now") from None

    def _read(self, run: str) -> None:
        """What is there; a last line that a crash cut off does not count and is taken away."""
        data = self._file.read()
        whole = data[: data.rfind(b"\n") + 1]
        try:
            head, *rest = [json.loads(line) for line in whole.decode("utf-8").splitlines()]
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.path}: is no record of a delivery ({error})") from None
        if head != {"run": run}:
            raise InputError(f"{self.path}: was begun with another table, recipe, answers or risk; name another record")
        self.events = rest
        self._file.seek(len(whole))
        self._file.truncate()

    def write(self, event: Event) -> None:
        self._file.write(json.dumps(event, ensure_ascii=True, separators=(",", ":")).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()
