"""Limits where a purchase is reserved: budget, money, calls with their repetitions, time."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from rrf_design.acquisition.journal import Event, Kind
from rrf_design.acquisition.ledger import Ledger
from rrf_design.acquisition.purchases import Buys, Purchase, Settlement
from rrf_design.acquisition.settings import Settings, Terms
from rrf_design.acquisition.state import RunState
from rrf_design.acquisition.stopping import Because, Calls, Seconds, Target

CALL = Terms(calls=1)


class Books:
    """A run's state with a clock that stands until it is moved."""

    def __init__(self, **settings: Any) -> None:
        self.now = 0.0
        self.state = RunState([""])
        self.ledger = Ledger(self.state, Settings(**settings), lambda: self.now)

    def reserve(self, name: str, price: float = 0.0, *, ceiling: float = 0.0, calls: int = 1) -> Purchase:
        purchase = Purchase("", name, Buys.ANSWER, price, ceiling, calls=calls)
        self.state.apply(purchase.intent())
        return purchase

    def settle(self, purchase: Purchase, *, calls: int = 1, money: float = 0.0) -> None:
        self.state.apply(Settlement(purchase, "told", (7.0,), calls=calls, money=money).event())

    def again(self, purchase: Purchase) -> bool:
        allowed = self.ledger.allows_another_call()
        if allowed:
            self.state.apply(Event(Kind.REPEATED, {"item": "", "name": purchase.name, "tried": 1}))
        return allowed

    def short(self, price: float = 0.0, terms: Terms = CALL) -> Because | None:
        found = self.ledger.shortage(Fraction(str(price)), terms)
        return None if found is None else found.because


def test_prices_are_decimals() -> None:
    books = Books(budget=0.3)
    for name in "abc":
        assert books.short(0.1) is None
        books.reserve(name, 0.1)
    assert books.short(0.1) is Because.BUDGET
    assert books.short(0.0) is None  # what costs nothing always fits
    assert books.ledger.left == 0


def test_money_is_reserved_at_its_most_and_booked_at_what_it_was() -> None:
    books = Books(money=1.0)
    first = books.reserve("a", ceiling=0.6)
    assert books.short(terms=Terms(ceiling=0.6)) is Because.MONEY
    books.settle(first, money=0.1)
    assert books.short(terms=Terms(ceiling=0.6)) is None


def test_calls_under_way_and_repeated_ones_count() -> None:
    books = Books(stop=Target() | Calls(3))
    first = books.reserve("a")
    assert books.again(first)
    assert books.short() is None
    assert books.again(first)
    assert not books.again(first)
    assert books.short() is Because.CALLS
    assert books.short(terms=Terms()) is None  # what needs no call may still be bought
    books.settle(first, calls=3)
    assert books.short() is Because.CALLS


def test_a_repetition_that_was_not_charged_is_given_back() -> None:
    books = Books(stop=Calls(2))
    first = books.reserve("a")
    assert books.again(first)
    books.settle(first, calls=1)
    assert books.short() is None


def test_time_ends_everything() -> None:
    books = Books(stop=Seconds(5.0))
    assert books.short(terms=Terms()) is None
    books.now = 5.0
    assert books.short(terms=Terms()) is Because.TIME
    assert not books.again(books.reserve("a"))


def test_a_budget_below_what_is_spent_leaves_nothing() -> None:
    books = Books(budget=1.0)
    books.settle(books.reserve("a", 3.0))
    assert books.ledger.left == 0
    assert books.short(0.5) is Because.BUDGET
