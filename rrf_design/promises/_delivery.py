"""One pass over a table: people look at rows until at most a share of those handed over can be
wrong (docs/promises.md).

A `DeliverySession` says what to look at next and takes labels one by one; `deliver` drives it with
a mapping, a function or the gold column, the verb with a terminal or a review file. What happens is
written into a record before it counts, so a session that was killed anywhere is gone on with by
whoever has the record, and ends with the same document.

A label is of a whole row: it is right when all that is delivered of it is. Rows that show the same
are one look.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design._shown import ShownRows
from rrf_design.arguments import share_number
from rrf_design.checker.delivery import (
    RIGHT,
    UNTOLD,
    WRONG,
    order_digest,
    picks_digest,
    prove_delivery,
    seal_of,
    table_digest,
)
from rrf_design.checker.promise_words import percent
from rrf_design.documents import sealed
from rrf_design.errors import InputError, Refused, RRFError
from rrf_design.files import canonical_digest
from rrf_design.promises._asks import AskPlan
from rrf_design.promises._buying import LiveModels
from rrf_design.promises._one_pass import Event, OnePass, Record, Stage
from rrf_design.promises._pass_rows import PassRows
from rrf_design.promises._pilot_design import Population, settings_of
from rrf_design.promises._truths import (
    Truth,
    check_review_file,
    read_reviews,
    refuse_strangers,
    row_text,
    write_reviews,
)
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.questions.tables import RowFaults, open_table
from rrf_design.risk import share
from rrf_design.tables.delivered import Delivery
from rrf_design.tables.rows import Row, delivered_names
from rrf_design.texts import cell_text, from_sheet

if TYPE_CHECKING:
    from rrf_design.questions.datasets import Dataset

Truths = Mapping[str, Any] | Callable[["Look"], Any]


@dataclass(frozen=True, slots=True)
class Look:
    """A row that somebody should look at now."""

    id: str
    stage: str
    """`doubtful`: the label fixes and teaches; `random`: it proves, and no answer is shown."""
    question: str
    row: Mapping[str, Any]
    """Its cells, without the gold column."""
    answers: Mapping[str, Any] | None = None
    """What was answered, by node, where it may be shown."""

    @property
    def text(self) -> str:
        """The row in one line."""
        return row_text(self.row)

    def to_json(self) -> dict[str, Any]:
        found = {"id": self.id, "stage": self.stage, "question": self.question, "text": self.text}
        return found if self.answers is None else {**found, "answers": dict(self.answers)}


@dataclass(frozen=True, slots=True, repr=False)
class TestedDelivery(ShownRows):
    """A table handed over, and what is proven of it."""

    __test__ = False

    document: Mapping[str, Any]
    """What `verify` proves again."""
    delivery: Delivery = field(repr=False)
    """A row for each item, in the order of the table."""
    next: tuple[Look, ...]
    """The rows to look at now."""
    sentence: str
    """What may be said of the table."""
    run: str
    rows: int
    """Rows handed over with a value or decided by somebody: the denominator of the risk."""
    labels: int
    """How many rows people looked at."""
    wrong_found: int
    remaining: int
    """How many of the rows handed over nobody checked."""
    bound: int
    """How many of those may be wrong; all of them, while nothing is proven."""
    risk: float
    confidence: float
    reached: bool
    spent: float
    """Answers, checks and labels together, in the recipe's prices."""
    label_cost: float
    expected: float
    """Looks that are still to be expected."""
    stage: str
    progress: str
    """Where the pass stands, in a sentence."""
    unused: tuple[str, ...] = ()
    """Rows with a value in the review file that nobody was asked about."""

    @property
    def verdicts(self) -> Mapping[str, int]:
        return self.delivery.verdicts

    @property
    def cost_sentence(self) -> str:
        """What it cost, labels included."""
        return cost_words(self.document)

    def to_json(self) -> dict[str, Any]:
        """What the verb prints with --json; the proof is in `document`."""
        names = ("run", "rows", "labels", "wrong_found", "remaining", "bound", "risk", "confidence", "reached", "spent")
        found = {name: getattr(self, name) for name in names}
        return {
            **found,
            "verdicts": dict(self.verdicts),
            "next": [look.to_json() for look in self.next],
            "stage": self.stage,
            "expected": self.expected,
            "withheld": len(self.document["withheld"]),
            "sentence": self.sentence,
        }

    def _line(self) -> str:
        return self.sentence

    def _records(self) -> Iterable[Mapping[str, Any]]:
        return self.delivery._records()

    def plot(self, axes: Any = None) -> Any:
        """How many rows have each verdict, on matplotlib axes."""
        return self.delivery.plot(axes)

    def to_frame(self) -> Any:
        """The delivered table as a data frame."""
        return self.delivery.to_frame()

    def __repr__(self) -> str:
        return f"TestedDelivery({self.sentence.partition('. ')[0].removesuffix('.')})"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<p>{escape(self.sentence)}</p>{self.delivery._repr_html_()}"


def money(value: float) -> str:
    """An amount with at most two decimals."""
    text = f"{value:,.2f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def cost_words(document: Mapping[str, Any]) -> str:
    """What a delivery cost, labels included, from its document."""
    looks, each, spent = document["looks"], document["label_cost"], document["spent"]
    labels = f"{looks:,} label{'s' * (looks != 1)} at {money(each)} ({money(each * looks)})"
    rest = max(0.0, round(spent - each * looks, 9))  # a sum of floats may leave a little below nothing
    return f"Cost {money(spent)} in all: {labels}, answers and checks {money(rest)}."


class DeliverySession:
    """A pass over a table that takes labels one by one.

    `next` is what to look at now, `label` takes what somebody found, `result` is what came of it so
    far. `responses`: recorded answers, or `LiveModels`, whose answers are bought once. `known`:
    labels from before, which fix rows and prove nothing. `record`: the file that every event is
    written into; with `resume` what is there is gone on with. Close it, or use it in a `with`
    block.
    """

    def __init__(
        self,
        dataset: Dataset,
        responses: RecordedAnswers | LiveModels | str | os.PathLike[str],
        *,
        risk: float | str | None = None,
        confidence: float | str | None = None,
        budget: float | None = None,
        asks: int | str | None = None,
        seed: int = 0,
        known: Mapping[str, Any] | None = None,
        record: str | os.PathLike[str] | None = None,
        resume: bool | str = False,
    ) -> None:
        wanted = None if risk is None else share_number(risk, "risk")
        sure = None if confidence is None else share_number(confidence, "confidence")
        _, self.risk, self.confidence = settings_of(dataset, labels=None, risk=wanted, confidence=sure)
        own = None if dataset.recipe.promise is None else dataset.recipe.promise.budget
        self.budget, self.seed = budget if budget is not None else own, seed
        share(self.risk, "risk")
        share(self.confidence, "confidence")
        self.dataset = dataset
        plan = AskPlan.of(dataset, asks, risk=self.risk, confidence=self.confidence, seed=seed)
        self.table = PassRows.read(dataset, responses, self.budget, asks=plan)
        population = Population.of(dataset)
        self._population = {"table": dataset.table.name, "size": len(population), "digest": population.digest}
        self._fixed: dict[str, Any] = {
            "recipe": {"name": dataset.recipe.name, "digest": dataset.recipe.digest},
            "population": self._population,
            "answers": self.table.digest,
            "risk": self.risk,
            "confidence": self.confidence,
            "seed": seed,
        }
        self.run = f"deliver-{canonical_digest({**self._fixed, 'budget': self.budget})[:12]}"
        if isinstance(resume, str) and resume != "last" and not self.run.startswith(resume):
            raise InputError(f"--resume {resume}: this recipe, table and risk are {self.run}; name that, or nothing")
        place = None if record is None else _record_path(record, self.run)
        self._record = None if place is None else Record(place, self.run, resume=bool(resume))
        history = [] if self._record is None else self._record.events
        self._pass = OnePass(
            self.table.codes,
            risk=Fraction(str(self.risk)),
            confidence=Fraction(str(self.confidence)),
            seed=seed,
            digest=self._order_digest,
            settled=self.table.settled,
            labels=self.table.affordable(self.budget),
            record=self._keep,
        )
        self._said: dict[int, tuple[Truth, bool]] = {}
        """Of every labelled row what is right, and whether the look was its own."""
        try:
            for event in history:
                self._recall(event)
            if not history:
                self._take_known(known or {})
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> DeliverySession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the record; it stays where it is."""
        if self._record is not None:
            self._record.close()

    def next(self) -> tuple[Look, ...]:
        """The rows to look at now, in this order; none when it is done, or the budget is."""
        looks = self._pass.next()
        found = []
        for place in looks.rows:
            answers = self.table.answers(place) if looks.answers_may_be_shown else None
            question, cells = self.table.question(place), self.table.shown_cells(place)
            found.append(Look(self.table.ids[place], looks.stage.value, question, cells, answers))
        return tuple(found)

    def label(self, row: str, value: Any) -> None:
        """What somebody says is right of a row of `next`: a value, or "?" where nobody can tell."""
        if not self.waits(row):
            raise InputError(f"row {row!r:.60} is not to be looked at now")
        self._label(self.table.places[row], value)

    def waits(self, row: str) -> bool:
        """Whether a row is to be looked at now."""
        return self.table.places.get(row) in self._pass.next().rows

    def labelled(self, row: str) -> bool:
        """Whether somebody has said what is right of it."""
        return self.table.places.get(row) in self._said

    def gold(self, row: str) -> Any:
        """What the gold column says of a row that is to be looked at; None where it is empty."""
        return self.table.gold(self.table.places[row]) if self.waits(row) else None

    def result(self) -> TestedDelivery:
        """What is proven of the table so far, and the table."""
        made = self._pass
        upcoming = self.next()
        looks = made.next()
        document = self._document()
        proven = prove_delivery(document)
        delivery = Delivery(self.dataset, self._rows(), proven=proven)
        expected = len(looks.rows) if made.frozen is not None else made.expected().looks
        return TestedDelivery(
            document,
            delivery,
            upcoming,
            proven.sentence,
            self.run,
            proven.rows,
            proven.labels,
            proven.wrong_found,
            proven.remaining,
            proven.bound,
            self.risk,
            self.confidence,
            proven.reached,
            document["spent"],
            self.table.label_cost,
            0.0 if proven.reached else round(float(expected), 1),
            looks.stage.value,
            self.progress(),
        )

    def progress(self) -> str:
        """Where the pass stands, in a sentence."""
        made, looks = self._pass, self._pass.next()
        if looks.stage is Stage.DOUBTFUL:
            cut = made.expected()
            return (
                f"Doubtful rows, worst first: {made.looks:,} looked at, {sum(made.wrong.values()):,} wrong; about"
                f" {cut.looks:,.0f} more looks to expect ({cut.likely_most:,.0f} at most, nine times in ten)."
            )
        if made.frozen is None or (limits := made.boundary) is None:
            return "Nothing is proven yet."
        drawn = made.counted()
        wrong = sum(made.wrong[place] for place in drawn)
        if looks.stage is Stage.DONE:
            return f"Proven after {len(drawn):,} random rows, {wrong:,} of them wrong and fixed."
        now, then = limits.needed(wrong), limits.needed(wrong + 1)
        return (
            f"Random rows: {len(drawn):,} looked at, {wrong:,} wrong and fixed. Done at {now:,} if no further wrong row"
            f" turns up ({now - len(drawn):,} more); at {then:,} if one does."
        )

    def _take_known(self, known: Mapping[str, Any]) -> None:
        refuse_strangers(known, self.table.places.keys())
        for name, value in known.items():
            place = self.table.places[name]
            if place not in self._pass.looked and place not in self.table.settled:
                self._label(place, value, free=True)

    def _label(self, place: int, value: Any, *, free: bool = False) -> None:
        value = _kept(value)
        truth = self.table.truth(place, value)
        alike = [p for p in self.table.alike(place) if p not in self._pass.looked and p not in self.table.settled]
        right = {p: None if not truth.values else self.table.right(p, truth) for p in [place, *alike]}
        self._pass.label(right, free=free, said={"row": self.table.ids[place], "value": value})
        self._hear(place, alike, truth)

    def _hear(self, place: int, alike: Sequence[int], truth: Truth) -> None:
        self._said[place] = (truth, True)
        self._said |= dict.fromkeys(alike, (truth, False))

    def _keep(self, event: Event) -> None:
        if self._record is not None:
            self._record.write(event)

    def _recall(self, event: Event) -> None:
        """An event of the record; InputError where no delivery could have written it."""
        try:
            self._replay(event)
        except RRFError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as fault:
            assert self._record is not None
            words = f"{event!r:.60}: {type(fault).__name__}"
            raise InputError(f"{self._record.path}: is no record of this delivery ({words})") from None

    def _replay(self, event: Event) -> None:
        self._pass.apply(event)
        if "labels" in event:
            place = self.table.places[event["said"]["row"]]
            _ = event["labels"][str(place)]  # what was said of a row labels that row
            others = [int(p) for p in event["labels"] if int(p) != place]
            self._hear(place, others, self.table.truth(place, event["said"]["value"]))

    def _order_digest(self, picks: Mapping[int, int], withheld: Sequence[int]) -> str:
        kept = [(self.table.ids[place], self.table.cells(place, picks[place])) for place in sorted(picks)]
        return order_digest(self._before(withheld, picks_digest(kept)))

    def _before(self, withheld: Sequence[int], picks: str | None) -> dict[str, Any]:
        """What is fixed before the first random draw."""
        made = self._pass
        return {
            **self._fixed,
            "checked": sorted(self.table.settled),
            "before": [[place, self._mark(place)] for place in made.known],
            "looked": [[place, self._mark(place)] for place in made.peeled],
            "withheld": list(withheld),
            "picks": picks,
        }

    def _mark(self, place: int) -> str:
        if self._pass.looked[place] is None:
            return UNTOLD
        return WRONG if self._pass.wrong[place] else RIGHT

    def _document(self) -> dict[str, Any]:
        made, table = self._pass, self.table
        drawn = made.counted()
        frozen = made.frozen
        untouched = () if frozen is None else frozen.untouched
        others = [place for place in untouched if place in made.looked and place not in set(drawn)]
        picks = None
        if frozen is not None:
            kept = [(table.ids[p], table.cells(p, int(made.picks.code[p]))) for p in untouched]
            picks = picks_digest(kept)

        def late(place: int) -> list[Any]:
            return [place, self._mark(place), table.cells(place, int(made.picks.code[place]))]

        names = delivered_names(self.dataset.columns)
        rows = self._rows()
        content = {
            "run": self.run,
            **self._before(made.withheld, picks),
            "columns": {"id": self.dataset.recipe.data.id, "answers": [names["answer"]]},
            "truth": table.rule_words,
            "label_cost": table.label_cost,
            "spent": round(sum(row.cost for row in rows), 9),
            "draws": [late(place) for place in drawn],
            "alike": [late(place) for place in others],
            "looks": made.looks,
            "delivered": table_digest([(row.id, [cell_text(row.answer)]) for row in rows]),
        }
        document = sealed("rrf-delivered", content)
        return {**document, "seal": seal_of(document)}

    def _rows(self) -> list[Row]:
        made, table = self._pass, self.table
        reached, withheld = made.reached, set(made.withheld)
        promise = (
            f"at most {made.allowed:,} of {table.size - len(withheld):,} rows of this table are wrong (tested,"
            f" confidence {percent(Fraction(str(self.confidence)))})"
        )
        found = []
        for place in range(table.size):
            if place in self._said:
                truth, own = self._said[place]
                found.append(
                    table.looked_row(place, truth, int(made.picks.code[place]), wrong=made.wrong[place], own=own)
                )
            elif place in table.settled:
                found.append(table.checked_row(place))
            elif place in withheld:
                found.append(table.empty_row(place, "no answer could be read, and nobody looked at it"))
            else:
                found.append(table.unseen_row(place, int(made.picks.code[place]), promise if reached else None))
        return found


def _kept(value: Any) -> Any:
    """A label as the record has it."""
    if isinstance(value, list | tuple):
        return [_kept(part) for part in value]
    return value if isinstance(value, str | int | float | bool) else str(value)


def _record_path(place: str | os.PathLike[str], run: str) -> Path:
    """The record of a run: a file, or the one of its name in a folder."""
    path = Path(place)
    return path / f"{run}.jsonl" if path.is_dir() else path


def deliver(
    dataset: Dataset,
    responses: RecordedAnswers | LiveModels | str | os.PathLike[str],
    *,
    truth: Truths | None = None,
    risk: float | str | None = None,
    confidence: float | str | None = None,
    budget: float | None = None,
    asks: int | str | None = None,
    seed: int = 0,
    known: Mapping[str, Any] | None = None,
    record: str | os.PathLike[str] | None = None,
    resume: bool | str = False,
    review: str | os.PathLike[str] | None = None,
    ask: Callable[[DeliverySession], None] | None = None,
) -> TestedDelivery:
    """Hand over a table of which at most the share `risk` is wrong, with as few looks as that
    takes.

    People look at the doubtful rows, worst first; their labels fix them and teach whom to believe.
    Then the rest is frozen and rows are drawn at random until an exact test is passed: of R wrong
    rows among the U untouched ones, more than the allowed are left with a chance of at most
    1 − `confidence`, for every R (docs/promises.md).

    Parameters: `dataset` is the recipe with its table; `responses` a file of recorded answers, or
    `LiveModels`, whose answers are bought once. `truth`: what is right, a mapping from id to value
    or a function of a `Look`; "?" where nobody can tell, nothing where nobody has looked; default:
    the gold column. `risk` and `confidence`: default those of `[promise]`. `budget`: what answers
    and labels may cost together. `asks`: how many answers of each row are used or bought, the
    delivered question first and then the cheapest; "auto" for as many as a forecast from some rows
    finds cheapest, looks included; default: all. `seed` orders the random rows. `known`: labels
    from before, which fix rows and prove nothing. `record`: a file or folder for every label as it
    comes; with `resume` the one there is gone on with. `review`: a file in which people answer:
    what is filled in is read, rows to look at are written. `ask`: is given the session when nothing
    else is known, to label rows itself.

    Returns a `TestedDelivery`: `reached` or not, the rows to look at `next`, the table and the
    document that `verify` proves again.

    >>> import pathlib, tempfile
    >>> import rrf_design as rrf
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> recipe = '[data]\\ntable = "t.csv"\\nid = "no"\\ngold = "sum"\\n[answer]\\nof = "a"\\n'
    >>> asks = [f'[[ask]]\\nid = "{name}"\\nprompt = "1 + 1?"\\ncost = 1.0\\n' for name in "ab"]
    >>> _ = (folder / "r.toml").write_text(recipe + asks[0] + asks[1] + 'like = "a"\\n')
    >>> rows = [f"{n},{n},2\\n" for n in range(200)]
    >>> _ = (folder / "t.csv").write_text("no,text,sum\\n" + "".join(rows))
    >>> said = [f"{n},{node},2\\n" for n in range(200) for node in "ab"]
    >>> _ = (folder / "said.csv").write_text("id,node,text\\n" + "".join(said))
    >>> found = rrf.deliver(rrf.dataset(folder / "r.toml"), folder / "said.csv", risk=0.1)
    >>> found.sentence.partition(":")[0]
    'At most 20 of these 200 rows are wrong (confidence 95 %)'
    """
    if review is not None:
        check_review_file(review)
    said = read_reviews(review, only=list(dataset)) if review is not None and Path(review).is_file() else {}
    with DeliverySession(
        dataset,
        responses,
        risk=risk,
        confidence=confidence,
        budget=budget,
        asks=asks,
        seed=seed,
        known={**(known or {}), **({} if resume else said)},
        record=record,
        resume=resume,
    ) as session:

        def right(look: Look) -> Any:
            if look.id in said:
                return said[look.id]
            return session.gold(look.id) if truth is None else _told(truth, look)

        told = set(answered(session, right))
        if ask is not None:
            ask(session)
        found = session.result()
        unused = tuple(name for name in said if resume and name not in told and not session.labelled(name))
    if review is not None and found.next:
        write_reviews(review, [(look.id, look.question, look.text) for look in found.next])
    return replace(found, unused=unused)


def answered(session: DeliverySession, truth: Truths | None) -> Iterator[str]:
    """Label what is known, row after row, until nothing more is; the id of each that was
    labelled.
    """
    went_on = True
    while went_on:
        went_on = False
        for look in session.next():
            if not session.waits(look.id):
                continue  # a row that shows the same was just labelled
            value = session.gold(look.id) if truth is None else _told(truth, look)
            if value is not None:
                session.label(look.id, value)
                went_on = True
                yield look.id


def _told(truth: Truths, look: Look) -> Any:
    return truth(look) if callable(truth) else truth.get(look.id)


def read_cells(path: str | os.PathLike[str], columns: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Of a delivered table, each row's id and the texts of its delivered values, as its document
    was made from them; Refused where it has not these columns.
    """
    table = open_table(path)
    faults = RowFaults(table.name)
    rows = [(number, cells) for number, cells, _ in table.rows(faults)]
    faults.refuse(len(rows) + faults.unread)
    of_sheet = Path(path).suffix.lower() in (".csv", ".tsv")
    found = []
    for number, cells in rows:
        named = [name for name in (columns["id"], *columns["answers"]) if name is not None]
        lacking = next((name for name in named if name not in cells), None)
        if lacking is not None:
            raise Refused(f"{table.name}: row {number} has no column {lacking!r:.60}")
        texts = [cell_text(cells[name]) for name in columns["answers"]]
        texts = [from_sheet(text) for text in texts] if of_sheet else texts
        found.append((str(number if columns["id"] is None else cells[columns["id"]]), texts))
    return found
