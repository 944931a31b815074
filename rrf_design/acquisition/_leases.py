"""Leases: which process works on which item of a run, and the books that all of them share.

Several processes work on one run of a PostgreSQL store. Each takes leases on items
(`for update skip locked`, so nobody waits for anybody), and only who has an item's lease writes
about it. Everything is one transaction: the fence of the leases, the money, the events.

- A *fence* counts who had an item. Whoever was stopped for longer than the lease finds that the
  item has another fence now, and nothing of what it wanted to write about it is written.
- The *books* are one row of the run: what is booked and what may be. A reservation is one
  conditional update of it, so no sum of processes exceeds a limit. What is over (answers, doubts)
  is always booked, also beyond a limit, and then nothing is reserved until the sum is below it.
- The row also gives events their places, so that they are in the order of their commits, without
  gaps: who reads on from a place misses nothing.
- What a dead process had begun is in the books until its lease ends and somebody takes the item;
  then its doubts are settled as after any crash. Until then nobody says that the money is used up.

Time is the server's, so clocks of machines do not matter; tests give another.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rrf_design.acquisition._chains import Chains
from rrf_design.acquisition._state import Booked
from rrf_design.acquisition.journal import Event, Journal
from rrf_design.acquisition.stores import lease_tables
from rrf_design.errors import InputError, Refused
from rrf_design.market import exact
from rrf_design.texts import column, from_column

if TYPE_CHECKING:
    from sqlalchemy import Connection

SECONDS = 60.0
"""How long a lease lasts that nobody renews; the environment variable RRF_LEASE says otherwise."""
_OPEN, _DONE, _AGAIN = 0, 1, 2
_CLAIM = """
with held as (
  update rrf_leases as l
  set state = h.state, holder = case h.state when 0 then l.holder end,
    expires = case h.state when 0
      then coalesce(cast(:now as float8), cast(extract(epoch from clock_timestamp()) as float8)) + :seconds else 0 end
  from unnest(cast(:items as text[]), cast(:fences as int[]), cast(:states as int[])) as h (item, fence, state)
  where l.run = :run and l.item = h.item and l.fence = h.fence and l.holder = :member
  returning 1)
update rrf_books
set events = events + :count, open = open + :open,
  price = price + :price, money = money + :money, calls = calls + :calls
where run = :run and (select count(*) from held) = cardinality(cast(:items as text[])){within}
returning *
"""


@dataclass(frozen=True, slots=True)
class Written:
    """What became of events: items whose lease was lost, of which nothing was written, and the
    books after it; `books` is None where a limit forbids the reservation and nothing was written.
    """

    lost: frozenset[str]
    books: Booked | None


class Leases:
    """One process among those that work on a run."""

    def __init__(
        self, journal: Journal, run: str, *, seconds: float | None = None, clock: Callable[[], float] | None = None
    ) -> None:
        from sqlalchemy import text

        self.run, self.seconds = run, _seconds() if seconds is None else seconds
        self.member = f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(4)}"
        self._journal, self._clock = journal, clock
        self._books, self._rows = lease_tables()
        self._chains: Chains | None = None
        self._fences: dict[str, int] = {}
        """The items that this process has, with their fences."""
        self.limits: tuple[Fraction | None, Fraction | None, int | None] = (None, None, None)
        """Of budget, money and calls, as the books had them last."""
        with journal.transaction("opened") as connection:
            self._books.metadata.create_all(connection)
            # Whoever is stopped or cut off while it has the books holds up all others: the server
            # ends its session.
            idle = round(1000 * max(1.0, self.seconds / 4))
            connection.execute(text(f"set idle_in_transaction_session_timeout = {idle}"))

    @property
    def held(self) -> frozenset[str]:
        return frozenset(self._fences)

    def counts(self) -> dict[str, int]:
        """How many items the run has leases for, and how many of them are open; both 0 before it
        was opened.
        """
        from sqlalchemy import func, select

        rows = self._rows.c
        query = select(func.count(), func.count().filter(rows.state == _OPEN)).where(rows.run == self.run)
        with self._journal.transaction("read") as connection:
            items, left = connection.execute(query).one()
        return {"items": int(items), "open": int(left)}

    def open(self, items: Mapping[str, bool], booked: Booked, limits: Sequence[Any]) -> None:
        """Let processes join: the items in their order, with whether they are over, and the books.
        For who alone holds the run.
        """
        rows = [
            {"run": self.run, "position": place, "item": column(item), "fence": 0, "expires": 0.0, "state": int(over)}
            for place, (item, over) in enumerate(items.items())
        ]
        events = self._journal.length(self.run)
        with self._journal.transaction("written") as connection:
            for table in (self._rows, self._books):
                connection.execute(table.delete().where(table.c.run == self.run))
            connection.execute(self._rows.insert(), rows)
            values: dict[str, Any] = {"run": self.run, "events": events}
            sums = {"price": booked.price, "money": booked.money, "calls": Fraction(booked.calls)}
            for (name, now), most in zip(sums.items(), limits, strict=True):
                values |= {name: _decimal(now), f"most_{name}": None if most is None else _decimal(exact(most))}
            connection.execute(self._books.insert().values(**values, open=booked.open))

    def limit(self, limits: Sequence[Any]) -> None:
        """Other limits from now on; what is booked already stays."""
        from sqlalchemy import update

        values = {
            f"most_{name}": None if most is None else _decimal(exact(most))
            for name, most in zip(Booked._fields, limits, strict=False)
        }
        with self._journal.transaction("written") as connection:
            connection.execute(update(self._books).where(self._books.c.run == self.run).values(**values))

    def take(self, most: int) -> dict[str, int]:
        """Leases on up to so many items that nobody has, by item their position; those of the dead
        among them.
        """
        from sqlalchemy import select, update

        rows = self._rows.c
        with self._journal.transaction("written") as connection:
            now = self._now()
            unheld = select(rows.position).where(rows.run == self.run, rows.state == _OPEN, rows.expires < now)
            free = unheld.order_by(rows.position).limit(most).with_for_update(skip_locked=True).cte("free")
            picked = update(self._rows).where(rows.run == self.run, rows.position == free.c.position)
            mine = {"holder": self.member, "fence": rows.fence + 1, "expires": now + self.seconds}
            found = connection.execute(picked.values(mine).returning(rows.item, rows.position, rows.fence)).all()
        taken = {from_column(row.item): row for row in sorted(found, key=lambda row: row.position)}
        self._fences |= {item: row.fence for item, row in taken.items()}
        return {item: row.position for item, row in taken.items()}

    def events_of(self, items: Collection[str]) -> dict[str, list[Event]]:
        """What the journal says of items that were just taken; what is written of them goes on
        there.
        """
        self._chains = self._chains or self._journal.chains(self.run)
        for item in items:
            self._chains.last.pop(column(item), None)
        return self._journal.events_of(self.run, items, self._chains)

    def write(
        self,
        events: Sequence[tuple[Event, Booked]],
        *,
        reserving: bool = False,
        over: Mapping[str, bool] | None = None,
    ) -> Written:
        """Commit events with what each of them books; `over` are items that are done with this,
        and whether a later session opens them again.
        """
        over = over or {}
        chains = self._chains = self._chains or self._journal.chains(self.run)
        about = {event.body["item"] for event, _ in events if "item" in event.body} | over.keys()
        lost: frozenset[str] = frozenset()
        while True:
            kept = [(event, booked) for event, booked in events if event.body.get("item") not in lost]
            with self._journal.transaction("written") as connection:
                row = self._claim(connection, about - lost, over, [booked for _, booked in kept], reserving=reserving)
                if row is not None:
                    chains.last.pop(None, None)  # others write what is of no item
                    ahead = self._journal.insert(self.run, [event for event, _ in kept], row.events - len(kept), chains)
                    break
                connection.get_transaction().rollback()  # type: ignore[union-attr]
            with self._journal.transaction("written") as connection:
                gone = (about - lost) - self._still_mine(connection, about - lost)
            if not gone and reserving:
                return Written(frozenset(), None)
            if not gone:
                raise Refused(f"run {self.run}: it is not open for joining")
            lost |= gone
        chains.last.update(ahead)
        for item in (*lost, *over):
            self._fences.pop(item, None)
            chains.last.pop(column(item), None)
        return Written(lost, self._read(row))

    def books(self) -> Booked:
        """What is booked now, by all processes."""
        with self._journal.transaction("read") as connection:
            row = connection.execute(self._books.select().where(self._books.c.run == self.run)).one()
        return self._read(row)

    def renew(self) -> frozenset[str]:
        """Go on with everything that is held; the items that were lost."""
        if not self._fences:
            return frozenset()
        with self._journal.transaction("written") as connection:
            lost = self.held - self._still_mine(connection, self.held)
        for item in lost:
            del self._fences[item]
        return lost

    def leave(self, items: Iterable[str] | None = None) -> None:
        """Give leases back, all of them by default: somebody else may take them at once."""
        from sqlalchemy import update

        given = [item for item in (self.held if items is None else items) if item in self._fences]
        rows = self._rows.c
        with self._journal.transaction("written") as connection:
            mine = [column(item) for item in self._still_mine(connection, given)]
            back = update(self._rows).where(rows.run == self.run, rows.item.in_(mine))
            connection.execute(back.values(holder=None, expires=0.0))
        for item in given:
            del self._fences[item]

    def _now(self) -> Any:
        from sqlalchemy import Float, cast, extract, func

        if self._clock is not None:
            return self._clock()
        return cast(extract("epoch", func.clock_timestamp()), Float)

    def _still_mine(self, connection: Connection, items: Collection[str]) -> set[str]:
        """Those of these items that this process has, their leases renewed. An expired lease that
        nobody took is still the process's own.
        """
        from sqlalchemy import update

        if not items:
            return set()
        rows = self._rows.c
        named = [column(item) for item in sorted(items)]
        mine = update(self._rows).where(rows.run == self.run, rows.item.in_(named), rows.holder == self.member)
        found = connection.execute(mine.values(expires=self._now() + self.seconds).returning(rows.item, rows.fence))
        return {item for row in found if self._fences.get(item := from_column(row.item)) == row.fence}

    def _claim(
        self,
        connection: Connection,
        items: Collection[str],
        over: Mapping[str, bool],
        booked: Iterable[Booked],
        *,
        reserving: bool,
    ) -> Any:
        """Renew or end these leases and book what so many events book, in one statement, because
        whoever has the books holds up all others; the books after it.

        None where a lease is lost, or something would be reserved beyond a limit: then what was
        changed has to be rolled back.
        """
        from sqlalchemy import text

        every = list(booked)
        price, money, calls, under_way = (sum(filter(None, part)) for part in zip(Booked(), *every, strict=True))
        named = sorted(items)
        values: dict[str, Any] = {
            "run": self.run,
            "member": self.member,
            "seconds": self.seconds,
            "now": None if self._clock is None else self._clock(),
            "items": [column(item) for item in named],
            "fences": [self._fences.get(item, -1) for item in named],
            "states": [_OPEN if item not in over else _AGAIN if over[item] else _DONE for item in named],
            "count": len(every),
            "open": int(under_way),
            "price": _decimal(Fraction(price)),
            "money": _decimal(Fraction(money)),
            "calls": int(calls),
        }
        more = [name for name in ("price", "money", "calls") if values[name] > 0]
        within = "".join(f" and (most_{n} is null or {n} + :{n} <= most_{n})" for n in more) if reserving else ""
        return connection.execute(text(_CLAIM.format(within=within)), values).one_or_none()

    def _read(self, row: Any) -> Booked:
        price, money = (None if most is None else Fraction(most) for most in (row.most_price, row.most_money))
        self.limits = price, money, None if row.most_calls is None else int(row.most_calls)
        return Booked(Fraction(row.price), Fraction(row.money), int(row.calls), int(row.open))


def _seconds() -> float:
    said = os.environ.get("RRF_LEASE", str(SECONDS))
    try:
        seconds = float(said)
    except ValueError:
        seconds = 0.0
    if not 1.0 <= seconds < 1e6:
        raise InputError(f"RRF_LEASE={said!r}: how long leases on items last, in seconds, at least 1")
    return seconds


def _decimal(value: Fraction | int) -> Decimal:
    with localcontext(prec=60):
        return Decimal(Fraction(value).numerator) / Decimal(Fraction(value).denominator)
