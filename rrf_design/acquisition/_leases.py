"""Leases: which process works on which item of a run, and the books that all of them share.

Several processes work on one run of a PostgreSQL store. Each takes leases on items
(`for update skip locked`, so nobody waits for anybody), and only who has an item's lease writes
about it. Everything is one transaction: the fence of the leases, the money, the events.

- A *fence* counts who had an item. Whoever was stopped for longer than the lease finds that the
  item has another fence now, and nothing of what it wanted to write about it is written.
- The *books* are one row of the run: what is booked and what may be. A reservation is one
  conditional update of it, under a CHECK, so no sum of processes exceeds a limit. What is over
  (answers, doubts) is always booked.
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
from rrf_design.errors import Refused
from rrf_design.market import exact
from rrf_design.texts import column, from_column

if TYPE_CHECKING:
    from sqlalchemy import Connection

SECONDS = 60.0
"""How long a lease lasts that nobody renews."""
_OPEN, _DONE, _AGAIN = 0, 1, 2


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
        self, journal: Journal, run: str, *, seconds: float = SECONDS, clock: Callable[[], float] | None = None
    ) -> None:
        self.run, self.seconds = run, seconds
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
                limit = None if most is None else _decimal(max(now, exact(most)))
                values |= {name: _decimal(now), f"most_{name}": limit}
            connection.execute(self._books.insert().values(**values, open=booked.open))

    def limit(self, limits: Sequence[Any]) -> None:
        """Other limits from now on; what is booked already stays."""
        from sqlalchemy import func, update

        table = self._books.c
        values = {
            f"most_{name}": None if most is None else func.greatest(table[name], _decimal(exact(most)))
            for name, most in zip(Booked._fields, limits, strict=False)
        }
        with self._journal.transaction("written") as connection:
            connection.execute(update(self._books).where(table.run == self.run).values(**values))

    def take(self, most: int) -> dict[str, int]:
        """Leases on up to so many items that nobody has, by item their position; those of the dead
        among them.
        """
        from sqlalchemy import select, update

        rows = self._rows.c
        with self._journal.transaction("written") as connection:
            now = self._now(connection)
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
        with self._journal.transaction("written") as connection:
            about = {event.body["item"] for event, _ in events if "item" in event.body} | over.keys()
            lost = about - self._still_mine(connection, about)
            kept = [(event, booked) for event, booked in events if event.body.get("item") not in lost]
            books, first = self._book(connection, [booked for _, booked in kept], len(kept), reserving=reserving)
            if books is None:
                transaction = connection.get_transaction()
                assert transaction is not None
                transaction.rollback()
                return Written(frozenset(), None)
            chains.last.pop(None, None)  # others write what is of no item
            ahead = self._journal.insert(self.run, [event for event, _ in kept], first, chains)
            for again in (False, True):
                done = [column(item) for item, later in over.items() if later is again and item not in lost]
                self._set(connection, done, state=_AGAIN if again else _DONE, holder=None, expires=0.0)
        chains.last.update(ahead)
        for item in (*lost, *over):
            self._fences.pop(item, None)
            chains.last.pop(column(item), None)
        return Written(frozenset(lost), books)

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
        given = [item for item in (self.held if items is None else items) if item in self._fences]
        with self._journal.transaction("written") as connection:
            mine = self._still_mine(connection, given)
            self._set(connection, [column(item) for item in mine], holder=None, expires=0.0)
        for item in given:
            del self._fences[item]

    def _now(self, connection: Connection) -> float:
        from sqlalchemy import text

        if self._clock is not None:
            return self._clock()
        return float(connection.execute(text("select extract(epoch from clock_timestamp())")).scalar_one())

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
        expires = self._now(connection) + self.seconds
        found = connection.execute(mine.values(expires=expires).returning(rows.item, rows.fence))
        return {item for row in found if self._fences.get(item := from_column(row.item)) == row.fence}

    def _set(self, connection: Connection, items: Sequence[str], **values: Any) -> None:
        from sqlalchemy import update

        if items:
            rows = self._rows.c
            connection.execute(update(self._rows).where(rows.run == self.run, rows.item.in_(items)).values(**values))

    def _book(
        self, connection: Connection, booked: Iterable[Booked], count: int, *, reserving: bool
    ) -> tuple[Booked | None, int]:
        """The books after these, and the place of the first of so many events; no books where
        something would be reserved beyond a limit.
        """
        from sqlalchemy import case, func, or_, update

        table = self._books.c
        price, money, calls, under_way = (sum(part) for part in zip(Booked(), *booked, strict=True))
        change = update(self._books).where(table.run == self.run)
        values: dict[str, Any] = {"events": table.events + count, "open": table.open + int(under_way)}
        for name, more in (("price", price), ("money", money), ("calls", calls)):
            now, most = table[name] + _decimal(Fraction(more)), table[f"most_{name}"]
            values[name] = now
            if reserving:
                change = change.where(or_(most.is_(None), now <= most)) if more > 0 else change
            elif more > 0:  # what is over is booked, whatever was reserved for it
                values[f"most_{name}"] = case((most.is_(None), None), else_=func.greatest(most, now))
        row = connection.execute(change.values(**values).returning(*table)).one_or_none()
        if row is None:
            if not reserving:
                raise Refused(f"run {self.run}: it is not open for joining")
            return None, 0
        return self._read(row), row.events - count

    def _read(self, row: Any) -> Booked:
        price, money = (None if most is None else Fraction(most) for most in (row.most_price, row.most_money))
        self.limits = price, money, None if row.most_calls is None else int(row.most_calls)
        return Booked(Fraction(row.price), Fraction(row.money), int(row.calls), int(row.open))


def _decimal(value: Fraction | int) -> Decimal:
    with localcontext(prec=60):
        return Decimal(Fraction(value).numerator) / Decimal(Fraction(value).denominator)
