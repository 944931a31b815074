"""What is bought and what came of it, as the journal has it: an intent with what is reserved, then
a settlement, or a doubt.

A purchase is written down before it is made, so that whatever happens the books know of it; what a
batch holds is written down too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from rrf_design.acquisition.journal import Event, Kind


class Buys(StrEnum):
    """What a purchase brings."""

    ANSWER = "answer"  # a node's response, from the model
    RELATION = "relation"  # rows that compare answers; nothing has to be fetched
    ANCHOR = "anchor"  # rows with a value, from the anchor's source


class Doubt(StrEnum):
    """What becomes of an intent that a crash left without an outcome."""

    SAME = "same"
    """Made again under the same reservation: nothing left this machine that could have been
    charged.
    """
    AGAIN = "again"
    """Made again and paid again; the first reservation stays counted as lost."""
    SKIP = "skip"
    """Given up; its price stays counted as spent."""


_SAID_IF_SET = ("ceiling", "deferred", "calls", "model", "tried", "attempts", "again_of")
"""What an intent says of a purchase only where it is not nothing."""


@dataclass(frozen=True, slots=True)
class Purchase:
    """One thing to fetch, with what is reserved for it.

    Hand it back to `tell` with what came of it.
    """

    item: str
    name: str
    buys: Buys
    price: float
    """In the problem's unit of cost."""
    ceiling: float = 0.0
    """The most that the call can cost in money, by the price table; 0 without one."""
    attempt: int = 0
    deferred: bool = False
    """A person answers: the run does not wait for it."""
    calls: int = 0
    """Model calls that it begins with; repeated ones are reserved when they are made."""
    model: str = ""
    """The run's name for the model that is asked."""
    tried: int = 0
    """Attempts at it that ended in doubt, with the sessions that made them: they count."""
    attempts: int = 0
    """How many more `ceiling` is for; 0 where nobody counts them."""
    again_of: str = ""
    """The node that is asked once more; its answer is the mean of what it says."""

    @property
    def id(self) -> str:
        return purchase_id(self.item, self.name)

    def intent(self) -> Event:
        """What is written down before it is made; `of` reads it back."""
        body = {"item": self.item, "name": self.name, "buys": self.buys.value, "price": self.price}
        more = {name: said for name in _SAID_IF_SET if (said := getattr(self, name))}
        return Event(Kind.INTENT, body | more, self.id, self.attempt)

    @classmethod
    def of(cls, event: Event) -> Purchase:
        body = event.body
        more = {name: body[name] for name in _SAID_IF_SET if name in body}
        return cls(body["item"], body["name"], Buys(body["buys"]), body["price"], attempt=event.attempt, **more)


@dataclass(frozen=True, slots=True)
class Settlement:
    """What came of a purchase: a value, or the name of a failure. `evidence` is kept word for
    word.
    """

    purchase: Purchase
    outcome: str
    value: tuple[float, ...] | None = None
    ok: bool = True
    money: float = 0.0
    calls: int = 0
    evidence: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    """Who said so, for an anchor: the kind of its source."""

    def event(self) -> Event:
        bought = self.purchase
        body: dict[str, Any] = {"item": bought.item, "name": bought.name, "ok": self.ok, "outcome": self.outcome}
        body |= {"value": None if self.value is None else list(self.value), "price": bought.price}
        body |= {"money": self.money, "calls": self.calls} | ({"source": self.source} if self.source else {})
        return Event(Kind.SETTLED, body | {"evidence": dict(self.evidence)}, bought.id, bought.attempt)


def purchase_id(item: str, name: str) -> str:
    return f"{item}\N{RIGHTWARDS ARROW}{name}" if item else name


@dataclass(frozen=True, slots=True)
class Settled:
    """A settled purchase as the state remembers it (the evidence stays in the journal)."""

    name: str
    buys: Buys
    ok: bool
    outcome: str
    value: tuple[float, ...] | None
    price: float
    money: float
    attempt: int
    text: str = ""
    """The model's own words, where there are any."""
    at: float = 0.0
    """When it was settled: seconds since 1970."""
    source: str = ""
    """Who said so, for an anchor: the kind of its source."""
    again_of: str = ""
    """The node that was asked once more."""
    recorded: float | None = None
    """What a response that exists already is said to have cost; the run did not pay it."""

    @property
    def came_about(self) -> bool:
        """Somebody was asked, or it was bought: not a response that is only known to be missing."""
        return bool(self.price) or self.recorded is not None or self.outcome != "missing"

    @classmethod
    def of(cls, event: Event, purchase: Purchase) -> Settled:
        """As a settlement's event tells it (`Settlement.event`)."""
        body, evidence = event.body, event.body["evidence"]
        return cls(
            buys=purchase.buys,
            value=None if body["value"] is None else tuple(body["value"]),
            attempt=event.attempt,
            text=(evidence.get("reply") or {}).get("text", ""),
            at=event.at,
            source=body.get("source", ""),
            again_of=purchase.again_of,
            recorded=evidence.get("recorded_cost"),
            **{name: body[name] for name in ("name", "ok", "outcome", "price", "money")},
        )

    @classmethod
    def in_doubt(cls, purchase: Purchase, *, money: float, at: float) -> Settled:
        """Given up: it may have been paid for, and nothing was got."""
        return cls(
            purchase.name,
            purchase.buys,
            ok=False,
            outcome="in doubt",
            value=None,
            price=purchase.price,
            money=money,
            attempt=purchase.attempt,
            at=at,
            again_of=purchase.again_of,
        )


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """Purchases that are handed in together.

    `batch` is the provider's name for it; None until that is written down.
    """

    token: str
    model: str
    purchases: tuple[str, ...]
    batch: str | None = None
    mark: str = ""
    """What the provider's interface needs, beside the token, to find it again."""

    def named(self, batch: str) -> BatchRecord:
        return replace(self, batch=batch)

    def document(self) -> dict[str, Any]:
        purchases = {"purchases": list(self.purchases)} if self.batch is None else {"batch": self.batch}
        mark = {"mark": self.mark} if self.mark and self.batch is None else {}
        return {"token": self.token, "model": self.model, **purchases, **mark}
