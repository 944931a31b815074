"""Settings and the header in which they stand, and limits where a purchase is reserved."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
from fields import ring, scripted

import rrf_design as rrf
from rrf_design.acquisition._ledger import Ledger
from rrf_design.acquisition._purchases import Buys, Doubt, Purchase, Settlement
from rrf_design.acquisition._state import RunState
from rrf_design.acquisition.journal import Event, Kind
from rrf_design.acquisition.settings import Mode, Settings, Terms, answering, header_of, revision, same_models, versions
from rrf_design.acquisition.stopping import Because, Calls, Seconds, Target, default, record, restore
from rrf_design.errors import InputError, Refused
from rrf_design.files import digest


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"batch": 0}, "batch must be at least 1, not 0"),
        ({"budget": -1.0}, "budget must be zero or more, not -1.0"),
        ({"money": math.nan}, "money must be zero or more, not nan"),
    ],
)
def test_messages(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Settings(**wrong)  # type: ignore[arg-type]


def test_without_a_rule_the_default_ends_the_run() -> None:
    assert record(Settings().rule) == record(default())
    assert record(Settings(stop=Calls(5)).rule) == record(Calls(5))


def test_the_document_says_everything_that_is_fixed() -> None:
    told = Settings(budget=3.0, mode=Mode.TRIAGE, stop=Calls(5), doubt=Doubt.SKIP).document()
    assert told["budget"] == 3.0
    assert (told["mode"], told["doubt"], told["batch"], told["method"]) == ("triage", "skip", 1, "auto")
    assert record(restore(told["rule"])) == record(Calls(5))
    assert Settings().document()["doubt"] == "again"


class Roster(dict):  # type: ignore[type-arg]
    first = "main"


def roster(**identities: Any) -> Any:
    named = {name: SimpleNamespace(name=f"m:{name}", identity=identity) for name, identity in identities.items()}
    return Roster(named)


def made(entries: dict[str, Any], **problems: rrf.Problem) -> dict[str, Any]:
    models = roster(main={"model": "x", "slots": 4}, other={"model": "y"})
    return header_of(problems, models, Settings(), 7, entries=entries)


def test_it_names_everything_that_decides_a_run() -> None:
    one = ring()
    told = made({"main": {"use": "openai:x"}, "other": {}}, only=one)
    assert (told["format"], told["name"], told["seed"], told["program"]) == ("rrf-run", "ring", 7, rrf.__version__)
    assert told["digests"] == {"only": digest(one)}
    assert told["settings"] == Settings().document()
    assert (told["model"], told["identity"]) == ("m:main", {"model": "x", "slots": 4})
    assert set(told["models"]) == {"main", "other"}
    assert told["models"]["other"]["use"] is None
    assert made({"main": {}, "other": {}}, a=one, b=one)["name"] == "2 items"
    json.dumps(told, allow_nan=False)


def test_no_secret_and_no_object_is_written_down() -> None:
    entries = {
        "main": {
            "use": "openai:x",
            "api_key": "sk-1",
            "base_url": "http://here",
            "adapter": scripted(),
            "headers": {"Authorization": "Bearer t"},
            "nested": {"plain": [1, "two"]},
            "max_tokens": 20,
        },
        "other": {},
    }
    told = made(entries, only=ring())["models"]["main"]
    assert {key: told[key] for key in ("use", "base_url", "nested", "max_tokens")} == {
        "use": "openai:x",
        "base_url": "http://here",
        "nested": {"plain": [1, "two"]},
        "max_tokens": 20,
    }
    assert "sk-1" not in json.dumps(told)
    assert "Bearer" not in json.dumps(told)
    assert "adapter" not in told


@pytest.mark.parametrize(
    ("now", "same"),
    [
        ({"main": {"model": "x", "slots": 9}}, True),  # how many at once changes no answer
        ({"main": {"model": "x"}, "new": {"model": "z"}}, True),
        ({"main": {"model": "x2"}}, False),
        ({"main": {"model": "x", "template": "t"}}, False),
        ({"else": {"model": "x"}}, False),
    ],
)
def test_a_run_goes_on_with_the_backends_it_began_with(now: dict[str, Any], same: bool) -> None:
    before = {"model": "m:main", "models": {"main": {"identity": {"model": "x", "slots": 4}}}}
    if same:
        same_models("r1", before, roster(**now))
        return
    with pytest.raises(Refused, match=r"run r1: it was begun with m:main and this is .* start a new run"):
        same_models("r1", before, roster(**now))


def test_older_headers_name_one_model() -> None:
    before = {"model": "m:main", "identity": {"model": "x", "slots": 1}}
    same_models("r1", before, roster(main={"model": "x"}))
    with pytest.raises(Refused):
        same_models("r1", before, roster(main={"model": "y"}))
    assert answering({"model": "x", "slots": 3}) == {"model": "x"}


def test_versions_are_of_what_is_installed() -> None:
    import numpy as np

    assert versions()["numpy"] == np.__version__
    assert "no-such-package" not in versions()
    assert revision() == "" or len(revision()) == 40


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
