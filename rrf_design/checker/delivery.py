"""Deliveries whose promise was tested, re-proved: draws, stop, bound and table are worked out again
from the document's inputs (docs/algorithms.md, fact 36).

Inputs: the population and its answers by their digests, risk, confidence and seed; the rows that a
check decided, that people had labelled before, that they looked at because they were doubtful, and
that are withheld; a digest of what every untouched row was to deliver; and the labels of those
drawn at random, in order. Of these, all that was fixed before the first draw is in the digest that
orders the draws: a changed figure draws other rows. The boundary is made in whole numbers here;
`rrf_design.risk`, which the maker used, is not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from json import dumps
from typing import Any

from rrf_design.checker._forms import (
    Document,
    a_confidence,
    a_list,
    a_number,
    a_share,
    a_whole,
    one_of,
    total,
    typed,
)
from rrf_design.checker._tails import is_drawn
from rrf_design.checker.promise_words import delivery_sentence
from rrf_design.errors import Refused

DELIVERED = "rrf-delivered"
RIGHT, WRONG, UNTOLD = "right", "wrong", "?"
"""What a look says of the answer that would have been handed over; `?`: nobody can tell."""
MOST_ROWS = 1_000_000
KEYS = (
    *("format", "version", "run", "recipe", "population", "answers", "columns", "risk", "confidence", "seed"),
    *("truth", "label_cost", "spent", "checked", "before", "looked", "withheld", "picks", "draws", "alike"),
    *("looks", "delivered", "seal"),
)
FIXED = (
    *("recipe", "population", "answers", "risk", "confidence", "seed", "checked", "before", "looked", "withheld"),
    "picks",
)
"""Fixed before the first random draw, and bound to its order."""


@dataclass(frozen=True, slots=True)
class ProvenDelivery:
    """What a delivery's document proves."""

    rows: int
    """Handed over with a value or decided by somebody: the denominator."""
    labels: int
    wrong_found: int
    remaining: int
    """Rows handed over that nobody checked."""
    bound: int
    """So many of them may be wrong; all, where nothing is proven yet."""
    reached: bool
    drawn: int
    untouched: int
    """Rows that nobody had looked at when the first was drawn."""
    allowed: int
    """So many of the rows handed over may be wrong."""
    confidence: Fraction
    sentence: str


Cells = Sequence[str]
Table = Sequence[tuple[str, Cells]]
"""Of a delivered table: each row's id and the texts of its delivered values, in order."""


@total
def prove_delivery(document: Any, table: Table | None = None) -> ProvenDelivery:
    """What follows from the document, and that the table is what it speaks of; `Refused` where it
    does not hold together.
    """
    if not isinstance(document, Mapping) or document.get("format") != DELIVERED:
        raise Refused(f"the format should be {DELIVERED!r}")
    if document["version"] != 1 or isinstance(document["version"], bool):
        raise Refused(f"version {document['version']!r:.40} is not known here; this release reads 1")
    for key in sorted(set(document) ^ set(KEYS)):
        raise Refused(f"{key!r:.40} is {'missing' if key in KEYS else 'unknown'}")
    if document["seal"] != seal_of(document):
        raise Refused("the seal is not that of the document: something in it was changed")
    return _proven(document, table)


def _proven(data: Document, table: Table | None) -> ProvenDelivery:
    people = data["population"]
    size = a_whole(people["size"], "population.size", most=MOST_ROWS)
    risk, sure = a_share(a_number(data["risk"], "risk"), "risk"), a_confidence(data["confidence"])
    _told(data)
    checked, withheld = _places(data["checked"], "checked", size), _places(data["withheld"], "withheld", size)
    before, looked = _marks(data["before"], "before", size), _marks(data["looked"], "looked", size)
    early = {**before, **looked}
    untold = {place for place, mark in early.items() if mark == UNTOLD}
    if len(early) != len(before) + len(looked) or early.keys() & set(checked):
        raise Refused("a row is named twice among those checked, known before and looked at")
    if not untold <= set(withheld) or (set(withheld) - untold) & {*early, *checked}:
        raise Refused("withheld: are the rows of which nobody could tell, and others that nobody looked at")
    gone = {*checked, *early, *withheld}
    untouched = [place for place in range(size) if place not in gone]
    rows, allowed = size - len(withheld), int(risk * (size - len(withheld)))
    draws, alike = _drawn(data["draws"], "draws", size), _drawn(data["alike"], "alike", size)
    frozen = data["picks"] is not None
    if not frozen and (draws or alike or set(withheld) != untold):
        raise Refused("rows were drawn or withheld, and nothing was fixed before")
    of = {place: at for at, place in enumerate(untouched)}
    late = {**draws, **alike}
    if len(late) != len(draws) + len(alike) or not late.keys() <= of.keys():
        raise Refused("a row is drawn twice, or was no longer untouched")
    if draws and not is_drawn([of[place] for place in draws], len(untouched), data["seed"], order_digest(data)):
        raise Refused("seed and digest draw other rows than the document names, or in another order")
    marks = [mark for mark, _ in draws.values()]
    reached = frozen and _stops(len(untouched), allowed, 1 - sure, marks)
    looks = a_whole(data["looks"], "looks", most=size)
    if not looks <= len(looked) + len(late) or ((late or looked) and not looks):
        raise Refused(f"looks: {looks} looks do not label {len(looked) + len(late)} rows")
    remaining = len(untouched) - len(late)
    bound = min(allowed, remaining) if reached else remaining
    wrong = sum(mark != RIGHT for mark in early.values()) + sum(mark != RIGHT for mark, _ in late.values())
    if table is not None:
        _check_table(data, table, untouched, {place: pick for place, (_, pick) in late.items()})
    sentence = delivery_sentence(
        rows=rows,
        labels=looks,
        wrong_found=wrong,
        remaining=remaining,
        allowed=allowed,
        reached=reached,
        confidence=sure,
        checked=len(checked),
        known=len(before),
        withheld=len(withheld),
        untold=sum(mark == UNTOLD for mark, _ in late.values()),
    )
    return ProvenDelivery(
        rows, looks, wrong, remaining, bound, reached, len(draws), len(untouched), allowed, sure, sentence
    )


def _told(data: Document) -> None:
    """The form of what is told beside the proof."""
    people, recipe, columns = data["population"], data["recipe"], data["columns"]
    for name, value in (
        *(("run", data["run"]), ("truth", data["truth"]), ("answers", data["answers"])),
        *(("delivered", data["delivered"]), ("population.table", people["table"])),
        *(
            ("population.digest", people["digest"]),
            ("recipe.name", recipe["name"]),
            ("recipe.digest", recipe["digest"]),
        ),
    ):
        typed(value, str, name, "a text")
    for name, part, keys in (
        ("population", people, {"table", "size", "digest"}),
        ("recipe", recipe, {"name", "digest"}),
        ("columns", columns, {"id", "answers"}),
    ):
        if set(part) != keys:
            raise Refused(f"{name}: should have {', '.join(sorted(keys))}")
    typed(columns["id"], str | None, "columns.id", "a text or null")
    if not columns["answers"] or any(type(name) is not str for name in a_list(columns["answers"], "columns.answers")):
        raise Refused("columns.answers: should name columns")
    typed(data["picks"], str | None, "picks", "a digest or null")
    a_whole(data["seed"], "seed")
    if min(a_number(data["label_cost"], "label_cost"), a_number(data["spent"], "spent")) < 0:
        raise Refused("a cost below 0")
    if a_number(data["spent"], "spent") < a_number(data["label_cost"], "label_cost") * a_whole(data["looks"], "looks"):
        raise Refused("spent: less than the looks cost")


def order_digest(data: Document) -> str:
    """What orders the draws: everything that was fixed before the first of them."""
    return _digest_of({key: data[key] for key in FIXED})


def seal_of(data: Document) -> str:
    return _digest_of({key: value for key, value in data.items() if key != "seal"})


def _digest_of(value: Any) -> str:
    return sha256(dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()).hexdigest()


def picks_digest(picks: Iterable[tuple[str, Cells]]) -> str:
    """Of the ids and values of the untouched rows, in the order of the table."""
    return _digest_of([[name, list(cells)] for name, cells in picks])


def table_digest(rows: Table) -> str:
    """Of a delivered table: its ids and delivered values."""
    return _digest_of([[name, list(cells)] for name, cells in rows])


def _check_table(data: Document, table: Table, untouched: Sequence[int], late: Mapping[int, Cells]) -> None:
    """Whether the table is the one that was proven: as it was frozen where nobody looked, as people
    said where they did.
    """
    if len(table) != data["population"]["size"]:
        raise Refused(f"the table has {len(table):,} rows; the document speaks of {data['population']['size']:,}")
    if any(len(cells) != len(data["columns"]["answers"]) for _, cells in table):
        raise Refused("the table has not the columns of values that the document names")
    for place in data["withheld"]:
        if any(table[place][1]):
            raise Refused(f"row {table[place][0]!r:.60} is withheld, and has a value in the table")
    for place, mark, pick in (*data["draws"], *data["alike"]):
        name, cells = table[place]
        if mark == RIGHT and list(cells) != pick:
            raise Refused(f"row {name!r:.60} was found right, and the table has another value of it")
        if mark == WRONG and list(cells) == pick:
            raise Refused(f"row {name!r:.60} was found wrong, and still has that value in the table")
        if mark == UNTOLD and any(cells):
            raise Refused(f"nobody could tell what is right of row {name!r:.60}, and it has a value in the table")
    if data["picks"] is not None:
        kept = [(table[place][0], late.get(place, table[place][1])) for place in untouched]
        if picks_digest(kept) != data["picks"]:
            raise Refused("the rows that nobody looked at have other ids or values than when they were frozen")
    if table_digest(table) != data["delivered"]:
        raise Refused("an id, a value or the order of the rows has changed since the table was delivered")


def _places(value: Any, name: str, size: int) -> list[int]:
    found = [a_whole(place, name, most=size - 1) for place in a_list(value, name)]
    if found != sorted(set(found)):
        raise Refused(f"{name}: should be places of rows in order, no two the same")
    return found


def _marks(value: Any, name: str, size: int) -> dict[int, str]:
    found: dict[int, str] = {}
    for place, mark in a_list(value, name):
        if found.setdefault(a_whole(place, name, most=size - 1), one_of(mark, (RIGHT, WRONG, UNTOLD))) != mark:
            raise Refused(f"{name}: row {place} is there twice")
    if len(found) != len(value):
        raise Refused(f"{name}: a row is there twice")
    return found


def _drawn(value: Any, name: str, size: int) -> dict[int, tuple[str, Cells]]:
    found: dict[int, tuple[str, Cells]] = {}
    for place, mark, pick in a_list(value, name):
        if any(type(cell) is not str for cell in a_list(pick, name)):
            raise Refused(f"{name}: a value should be a text")
        found[a_whole(place, name, most=size - 1)] = one_of(mark, (RIGHT, WRONG, UNTOLD)), pick
    if len(found) != len(value):
        raise Refused(f"{name}: a row is there twice")
    return found


def _stops(size: int, allowed: int, level: Fraction, marks: Sequence[str]) -> bool:
    """Whether the draws end at the first moment at which the rest is proven; `Refused` where they
    go on behind it.
    """
    counts = boundary(size, allowed, level, most=sum(mark != RIGHT for mark in marks))
    wrong = 0
    for drawn in range(len(marks) + 1):
        wrong += drawn > 0 and marks[drawn - 1] != RIGHT
        if drawn >= counts[min(wrong, len(counts) - 1)]:
            if drawn < len(marks):
                raise Refused(f"{len(marks)} labels are told, and it was proven after {drawn}")
            return True
    return False


def boundary(size: int, allowed: int, level: Fraction, *, most: int) -> list[int]:
    """c_0, c_1, … up to c_most in whole numbers, from the numbers of sequences that go on; the last
    holds for all larger counts where the list is shorter.
    """
    end = size - allowed
    if end <= 0:
        return [0]
    going = [1] + [0] * most  # sequences of length n with x ones that did not stop
    counts: list[int] = []
    spent: list[int] = []  # a_k · C(size − c_k, R − k) for the R that is tested next
    unseen = math.comb(size, allowed + 1)  # C(size − n, allowed + 1)
    ways = unseen  # C(size, R)
    for n in range(end):
        if n:
            for x in range(min(n, most), len(counts) - 1, -1):
                going[x] += going[x - 1] if x else 0
            unseen = unseen * (size - n - allowed) // (size - n + 1)
        while (x := len(counts)) <= min(n, most) and (wrong := allowed + 1 + x) <= size:
            here = going[x] * unseen
            if (sum(spent) + here) * level.denominator > level.numerator * ways:
                break
            counts.append(n)
            going[x] = 0
            spent.append(here)
            # From R to R + 1: C(m, r + 1) = C(m, r) (m − r) / (r + 1).
            spent = [
                term * (size - c - wrong + k) // (wrong - k + 1)
                for k, (c, term) in enumerate(zip(counts, spent, strict=True))
            ]
            ways = ways * (size - wrong) // (wrong + 1)
        if len(counts) > most:
            return counts
        if allowed + 1 + len(counts) > size:
            break
    return [*counts, end]
