"""What a run is begun with, its state by its events, and when it stops."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
from fields import ring, scripted

import rrf_design as rrf
from rrf_design.acquisition import acquire
from rrf_design.acquisition._candidates import Candidates
from rrf_design.acquisition._ledger import Ledger
from rrf_design.acquisition._purchases import BatchRecord, Buys, Doubt, Purchase, Settled, Settlement, purchase_id
from rrf_design.acquisition._state import ItemState, RunState
from rrf_design.acquisition.journal import Event, Kind
from rrf_design.acquisition.settings import (
    Mode,
    Settings,
    Terms,
    _revision,
    _versions,
    answering,
    header_of,
    same_models,
)
from rrf_design.acquisition.stopping import (
    AllOf,
    AnyOf,
    Because,
    Calls,
    Exhausted,
    Gain,
    Recall,
    Seconds,
    Stop,
    StoppingRule,
    Target,
    Validity,
    View,
    default,
    record,
    restore,
    summary,
)
from rrf_design.design import standing_of
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

    assert _versions()["numpy"] == np.__version__
    assert "no-such-package" not in _versions()
    assert _revision() == "" or len(_revision()) == 40


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


def test_money_is_reserved_at_its_most_and_given_back() -> None:
    books = Books(money=1.0)
    first = books.reserve("a", ceiling=0.6)
    assert books.short(terms=Terms(ceiling=0.6)) is Because.MONEY
    books.settle(first, money=0.1)
    assert books.short(terms=Terms(ceiling=0.6)) is None
    books = Books(stop=Calls(2))
    first = books.reserve("a")
    assert books.again(first)
    books.settle(first, calls=1)
    assert books.short() is None


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


BUY = Purchase("", "a", Buys.ANCHOR, 0.1, ceiling=0.5)


def state(*events: Event) -> RunState:
    result = RunState([""])
    for event in events:
        result.apply(event)
    return result


def doubt(policy: str) -> Event:
    return Event(Kind.DOUBT, {"item": "", "name": "a", "policy": policy}, "a", 0)


def test_settled_and_released_purchases_are_booked() -> None:
    reserved = state(BUY.intent())
    assert (reserved.committed, reserved.committed_money, reserved.spent) == (Fraction(1, 10), Fraction(1, 2), 0)
    settled = state(BUY.intent(), Settlement(BUY, "bought", (7.0,), money=0.2, calls=1).event())
    assert (settled.committed, settled.committed_money, settled.calls) == (Fraction(1, 10), Fraction(1, 5), 1)
    assert settled.items[""].values(Buys.ANCHOR) == {"a": (7.0,)}
    assert settled.pending == []
    released = state(BUY.intent(), Event(Kind.RELEASED, {"item": "", "name": "a", "reason": ""}, "a"))
    assert released.committed == 0
    assert released.items[""].round == ["a"]
    assert released.items[""].attempts == {"a": 1}


@pytest.mark.parametrize(
    ("policy", "lost", "spent", "again"), [("same", 0, 0, True), ("again", 0.1, 0.1, True), ("skip", 0, 0.1, False)]
)
def test_doubts(policy: str, lost: float, spent: float, again: bool) -> None:
    found = state(BUY.intent(), doubt(policy))
    assert float(found.lost_price) == lost
    assert float(found.spent) == float(found.committed) == spent
    assert ("a" in found.items[""].round) == again
    assert ("a" in found.items[""].failed) != again


def test_working_time_is_counted_over_sessions_without_the_pauses() -> None:
    found = state(
        Event(Kind.SESSION, {}, at=100.0),
        Event(Kind.ENDED, {"because": "paused"}, at=130.0),
        Event(Kind.SESSION, {}, at=1000.0),
    )
    assert found.seconds_before == 30.0
    assert found.ended is None


@pytest.mark.parametrize(("again", "stopped"), [(True, False), (False, True)])
def test_a_new_session_reopens_what_may_go_on(again: bool, stopped: bool) -> None:
    body: dict[str, Any] = {"item": "", "because": "time used up", "detail": "", "again": again}
    found = state(Event(Kind.SESSION, {}), Event(Kind.STOPPED, body), Event(Kind.SESSION, {}))
    assert (found.items[""].stopped is not None) == stopped


def test_every_kind_of_event_is_understood() -> None:
    for kind in Kind:
        assert hasattr(RunState, f"_{kind.value}"), kind


def settled(name: str, value: float | None, *, buys: Buys = Buys.ANSWER, again_of: str = "") -> Settled:
    numbers = None if value is None else (value,)
    return Settled(name, buys, value is not None, "", numbers, 1.0, 0.0, 0, again_of=again_of)


def item(*entries: Settled) -> ItemState:
    return ItemState(settled={entry.name: entry for entry in entries})


def test_a_node_asked_again_says_the_mean_of_what_could_be_read() -> None:
    state = item(settled("a", 1.0), settled("b", None), settled("x", 5.0, buys=Buys.ANCHOR))
    assert state.values(Buys.ANSWER) == {"a": (1.0,)}
    assert state.values(Buys.ANCHOR) == {"x": (5.0,)}
    assert (state.held, state.failed) == ({"a", "b", "x"}, {"b"})
    state = item(settled("a", 1.0), settled("a#2", None, again_of="a"), settled("a#3", 4.0, again_of="a"))
    assert state.values(Buys.ANSWER) == {"a": (2.5,)}
    assert state.failed == {"a#3"}  # one of three is lost, and it counts as the last
    state = item(settled("a", None), settled("a#2", None, again_of="a"))
    assert state.failed == {"a", "a#2"}
    assert state.values(Buys.ANSWER) == {}


def test_the_run_does_not_wait_for_people_and_is_not_done_while_it_waits_for_them() -> None:
    state = ItemState(pending={"p": Purchase("", "p", Buys.ANCHOR, 1.0, deferred=True)})
    assert state.waiting == {}
    assert not state.done
    state.stopped = {"because": "waiting for review"}
    assert not state.done
    state.stopped = {"because": "goal reached"}
    assert state.done
    state.pending["q"] = Purchase("", "q", Buys.ANSWER, 1.0)
    assert not state.done


def test_what_failed_after_the_schedule_was_made_is_unplanned() -> None:
    state = item(settled("a", None), settled("b", None))
    state.planned_without = frozenset({"a"})
    assert state.unplanned == {"b"}


PLAIN = Purchase("", "a", Buys.RELATION, 1.5)
FULL = Purchase(
    "x",
    "n",
    Buys.ANSWER,
    0.1,
    0.5,
    attempt=2,
    deferred=True,
    calls=3,
    model="mini",
    tried=4,
    attempts=5,
    again_of="m",
)


@pytest.mark.parametrize("purchase", [PLAIN, FULL])
def test_an_intent_is_read_back(purchase: Purchase) -> None:
    assert Purchase.of(purchase.intent()) == purchase


def test_an_intent_says_no_more_than_it_must() -> None:
    assert set(PLAIN.intent().body) == {"item", "name", "buys", "price"}


def test_a_settlement_is_remembered_without_its_evidence() -> None:
    event = Settlement(
        FULL, "read", (7.0,), money=0.2, calls=1, evidence={"reply": {"text": "seven"}}, source="judge"
    ).event()
    found = Settled.of(event, FULL)
    assert (found.value, found.text, found.money, found.source, found.again_of) == ((7.0,), "seven", 0.2, "judge", "m")
    assert (found.name, found.buys, found.attempt, found.ok) == ("n", Buys.ANSWER, 2, True)


def test_what_is_given_up_keeps_its_price_and_names_are_unique() -> None:
    found = Settled.in_doubt(FULL, money=0.5, at=9.0)
    assert (found.ok, found.value, found.price, found.money, found.outcome) == (False, None, 0.1, 0.5, "in doubt")
    assert purchase_id("", "a") == "a"
    assert len({purchase_id(item, "a") for item in ("", "x", "y")}) == 3


def test_a_batch_is_written_down_before_and_after_it_has_a_name() -> None:
    record = BatchRecord("t", "mini", ("a", "b"), mark="f-1")
    assert record.document() == {"token": "t", "model": "mini", "purchases": ["a", "b"], "mark": "f-1"}
    assert record.named("batch-7").document() == {"token": "t", "model": "mini", "batch": "batch-7"}


def view(**changes: Any) -> View:
    design = Candidates(ring(target=0.5))
    given: dict[str, Any] = {
        "problem": design.problem,
        "margin": lambda: design.margin(["r1", "r3"]),
        "ceiling": lambda: 2.0,
        "left": lambda: (3, 5),
        "planned": False,
        "history": ((0.0, 0.0), (1.0, 0.5)),
        "read": (10, 10),
        "recalled": (10, 10),
        "committed_money": 0.0,
        "calls": 10,
        "seconds": 5.0,
    }
    return View(**given | changes)


@pytest.mark.parametrize(
    ("rule", "changes", "because"),
    [
        (Target(), {}, Because.TARGET),
        (Target(5.0), {}, None),
        (Target(), {"problem": ring()}, None),
        (Validity(0.5, after=8), {"read": (3, 8)}, Because.VALIDITY),
        (Validity(0.5, after=8), {"read": (3, 7)}, None),
        (Validity(0.5, after=8), {"read": (4, 8)}, None),
        (Recall(0.5, after=4), {"recalled": (1, 4)}, Because.RECALL),
        (Recall(0.5, after=4), {"recalled": (0, 3)}, None),
        (Gain(0.6), {}, Because.GAIN),
        (Gain(0.4), {}, None),
        (Gain(0.6), {"history": ((0.0, 0.0), (1.0, 0.0))}, None),
        (Gain(0.6), {"history": ((0.0, 0.0),)}, None),
        (Exhausted(), {}, None),
        (Exhausted(), {"left": lambda: (0, 0)}, Because.EXHAUSTED),
        (Exhausted(), {"left": lambda: (0, 3)}, Because.BUDGET),
        (Exhausted(), {"ceiling": lambda: 0.3}, None),
        (Exhausted(), {"ceiling": lambda: 0.3, "history": ((0.0, 0.5), (1.0, 0.5))}, Because.EXHAUSTED),
        (Exhausted(), {"ceiling": lambda: 0.3, "history": ((0.0, 0.5),)}, Because.EXHAUSTED),
        (Exhausted(), {"ceiling": lambda: 0.3, "planned": True}, None),
        (Calls(10), {}, Because.CALLS),
        (Calls(11), {}, None),
        (Seconds(5.0), {}, Because.TIME),
        (Seconds(5.1), {}, None),
    ],
)
def test_rules(rule: StoppingRule, changes: dict[str, Any], because: Because | None) -> None:
    stop = rule.check(view(**changes))
    assert (None if stop is None else stop.because) == because
    assert rule.describe()


def test_composition() -> None:
    yes, no = Calls(1), Calls(99)
    assert (yes | no).check(view()) is not None
    assert (yes & no).check(view()) is None
    both = (yes & Seconds(1.0)).check(view())
    assert both is not None
    assert both.because is Because.CALLS
    assert "; and " in both.detail
    assert isinstance(yes | no, AnyOf)
    assert isinstance(yes & no, AllOf)
    assert (no & no | yes).check(view()) is not None
    assert ((no | no) & yes).check(view()) is None
    assert " or " in (yes | no).describe()
    assert " and " in (yes & no).describe()


def test_declared_uncertainty_is_subtracted_before_the_goal_is_called_reached() -> None:
    base = ring(target=0.5)
    blocks = [relation.model_copy(update={"uncertainty": 0.4}) for relation in base.relations]
    doubtful = Candidates(rrf.Problem(k=1, target=0.5, nodes=base.nodes, relations=blocks, anchors=base.anchors))
    margin = doubtful.margin(["r1", "r3"])
    assert margin.lower > 0.5 > standing_of(doubtful.problem, margin).robust_lower
    assert Target().check(view(problem=doubtful.problem, margin=lambda: margin)) is None


def test_summaries() -> None:
    done = Stop(Because.TARGET, "")
    assert summary({"": done}) == "target reached"
    assert summary({"a": done, "b": None, "c": done}) == "target reached: 2, unfinished: 1"


def test_shared_hallucination_does_not_stop_the_run(tmp_path: Any) -> None:
    """All answers agree on the same wrong number: the relation defect is zero from the start, and
    the margin too.

    A rule "stop when the answers are consistent" would stop before the first purchase and return
    the hallucination. The loop goes on until an anchor is bought, and says that the field is beyond
    its corruption budget.
    """
    problem = rrf.Problem(
        k=1,
        target=0.5,
        budget=3.0,
        nodes=[{"id": "x", "prompt": "x?"}, {"id": "y", "prompt": "y?"}],
        relations=[{"id": "xy", "tail": "x", "head": "y"}],
        anchors=[{"id": name, "node": node, "value": 7.0, "cost": 1.0} for name, node in (("ax", "x"), ("ay", "y"))],
    )
    wrong = scripted(lambda request: "9")
    run = acquire(problem, wrong, store=tmp_path / "r.sqlite", method="witness")
    answers = run.items[0].answers
    assert problem.operator().syndrome(answers) == pytest.approx([0.0])  # what a defect rule would have seen
    assert problem.margin().value == 0.0
    bought = [entry.name for entry in run.purchases if entry.price > 0]
    assert set(bought) & {"ax", "ay"}
    assert run.gamma_lower >= 0.5
    repair = run.items[0].repair
    assert repair is not None
    assert not repair["guaranteed"]  # two wrong answers are more than k = 1, and the run says so


@pytest.mark.parametrize(
    "rule",
    [
        default(),
        Target(0.4) & (Calls(7) | Seconds(1.5)),
        Gain(0.01) | Validity(0.5, after=3) | Recall(0.2, after=9) | Exhausted(),
    ],
)
def test_a_recorded_rule_comes_back_the_same(rule: StoppingRule) -> None:
    document = json.loads(json.dumps(record(rule)))
    back = restore(document)
    assert back.describe() == rule.describe()
    assert record(back) == document


def test_a_rule_of_ones_own_must_be_given_again() -> None:
    class Mine(StoppingRule):
        def check(self, view: View) -> Stop | None:
            return None

        def describe(self) -> str:
            return "when I say so"

    with pytest.raises(rrf.InputError, match=r"of its own \(when I say so\); give `stop` again"):
        restore(record(Target() | Mine()))
