"""Ask and tell without any model: rounds, reservations, batches, failures, replay, and the queue of
items.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fields import pairs, priced, ring

import rrf_design as rrf
from rrf_design.acquisition import Acquirer, Buys, Doubt, Journal, Mode, Purchase, Settings, Settlement, Terms
from rrf_design.acquisition._loop import _ItemQueue
from rrf_design.acquisition._state import RunState
from rrf_design.acquisition.journal import Event, Kind
from rrf_design.acquisition.stopping import Because, Calls, Gain, Seconds, Target
from rrf_design.errors import InputError, Refused
from rrf_design.market import exact


def settings(**changes: Any) -> Settings:
    given: dict[str, Any] = {"budget": 4.0, "method": "witness"}
    return Settings(**(given | changes))


def answer(purchase: Purchase, value: float = 7.0) -> Settlement:
    return Settlement(purchase, "told", (value,), calls=int(purchase.buys is Buys.ANSWER))


def play(acquirer: Acquirer, tell: Callable[[Purchase], Settlement] = answer, count: int = 3) -> None:
    while purchases := acquirer.ask(count):
        for purchase in purchases:
            acquirer.tell(tell(purchase))


def bought(acquirer: Acquirer, item: str = "") -> list[str]:
    return [name for name, entry in acquirer.state.items[item].settled.items() if entry.price > 0]


def test_settings_are_checked() -> None:
    with pytest.raises(InputError, match="batch"):
        Settings(batch=0)
    with pytest.raises(InputError, match="budget"):
        Settings(budget=-1.0)
    with pytest.raises(InputError, match="empty"):
        Acquirer({})


def test_questions_come_first_then_the_schedule_within_the_budget() -> None:
    acquirer = Acquirer(ring(), settings=settings())
    first = acquirer.ask(99)
    assert [p.name for p in first] == ["n0", "n1", "n2", "n3", "n4"]
    assert acquirer.ask(99) == ()  # it waits for what is under way
    acquirer.tell(*(answer(p) for p in first))
    play(acquirer)
    assert acquirer.finished
    assert acquirer.state.committed == acquirer.state.spent <= 4
    assert acquirer.margin().lower > 0.5


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("batch", [1, 3])
def test_reservations_never_exceed_the_budget(mode: Mode, batch: int) -> None:
    seen: list[Event] = []
    acquirer = Acquirer(ring(), settings=settings(mode=mode, batch=batch), watch=seen.append)
    play(acquirer)
    state = RunState([""])
    for event in seen:
        state.apply(event)
        assert state.committed <= 4


def test_agnostic_schedules_are_fixed_before_any_answer_and_do_not_depend_on_them() -> None:
    seen: list[Event] = []
    one = Acquirer(ring(), settings=settings(), watch=seen.append)
    play(one)
    kinds = [event.kind for event in seen]
    assert kinds.count(Kind.SCHEDULE) == 1
    assert kinds.index(Kind.SCHEDULE) < kinds.index(Kind.INTENT)
    other = Acquirer(ring(), settings=settings())
    play(other, lambda p: answer(p, float(len(p.name) * hash(p.name) % 97)))
    assert bought(one) == bought(other)


def test_adaptive_mode_decides_step_by_step_and_says_so() -> None:
    seen: list[Event] = []
    acquirer = Acquirer(ring(), settings=settings(mode=Mode.ADAPTIVE), watch=seen.append)
    play(acquirer)
    assert sum(event.kind is Kind.SCHEDULE for event in seen) > 1
    assert acquirer.settings.document()["mode"] == "adaptive"


def test_a_batch_is_decided_together_and_waited_for() -> None:
    seen: list[Event] = []
    acquirer = Acquirer(ring(), settings=settings(batch=2, budget=None, mode=Mode.ADAPTIVE), watch=seen.append)
    play(acquirer)
    rounds = [event.body["names"] for event in seen if event.kind is Kind.ROUND and "gamma" in event.body]
    assert max(len(names) for names in rounds) == 2


def test_an_answer_that_can_not_be_read_stays_in_the_field_and_is_known_to_be_missing() -> None:
    def tell(purchase: Purchase) -> Settlement:
        if purchase.name == "n2":
            return Settlement(purchase, "parse failure", ok=False)
        return answer(purchase)

    acquirer = Acquirer(ring(), settings=settings())
    play(acquirer, tell)
    assert acquirer.finished
    assert acquirer.margin().unread == ("n2",)
    assert acquirer.margin().lower > 0.0


def test_no_answer_at_all_is_an_end_of_its_own() -> None:
    acquirer = Acquirer(ring(), settings=settings())
    play(acquirer, lambda p: Settlement(p, "parse failure", ok=False))
    stop = acquirer.stops[""]
    assert stop is not None
    assert stop.because is Because.UNREADABLE


@pytest.mark.parametrize(
    ("rule", "because"),
    [
        (Target(0.3), Because.TARGET),
        (Calls(4), Because.CALLS),
        (Seconds(0.0), Because.TIME),
        (Gain(99.0) | Target(9.0), Because.GAIN),
    ],
)
def test_rules_stop_the_loop(rule: Any, because: Because) -> None:
    acquirer = Acquirer(ring(), settings=settings(stop=rule))
    play(acquirer)
    stop = acquirer.stops[""]
    assert stop is not None
    assert stop.because is because


def test_exhaustion_is_proved() -> None:
    """One node has no relation and nothing on sale sees it: the margin stays 0 whatever is
    bought.
    """
    problem = rrf.Problem(
        k=1,
        nodes=[{"id": "a", "prompt": "?"}, {"id": "b", "prompt": "?"}, {"id": "alone", "prompt": "?"}],
        relations=[{"id": "ab", "tail": "a", "head": "b"}],
        anchors=[{"id": "A", "node": "a", "value": 1.0, "cost": 1.0}],
    )
    acquirer = Acquirer(problem, settings=settings(mode=Mode.ADAPTIVE, budget=None))
    play(acquirer)
    stop = acquirer.stops[""]
    assert stop is not None
    assert stop.because is Because.EXHAUSTED
    assert bought(acquirer) == []
    assert "at most 0" in stop.detail


def test_the_planners_bound_is_held_against_the_margin_that_it_bounds() -> None:
    """Where relations are uncertain the planner bounds what that leaves of γ, not γ, 1.41421."""
    doubtful = [{"id": x, "node": x.lower(), "value": 1.0, "cost": 1.0, "uncertainty": 0.1} for x in "BC"]
    problem = rrf.Problem(
        k=1,
        nodes=[{"id": x, "prompt": x, "range": [0, 2]} for x in "abc"],
        relations=[{"id": x + y, "tail": x, "head": y, "uncertainty": 0.1} for x, y in ("ab", "bc", "ca")],
        anchors=[
            {"id": "A", "node": "a", "value": 1.0},
            *doubtful,
            {"id": "D", "node": "c", "value": 1.0, "cost": 0.5, "uncertainty": 5.0},
        ],
    )
    acquirer = Acquirer(problem, settings=settings(method="optimal", budget=3.0))
    play(acquirer)
    stop = acquirer.stops[""]
    assert stop is not None
    assert "a margin, with declared uncertainty taken off, above 1.19061, and it is 1.19061" in stop.detail


def test_the_planners_bound_is_a_reason_to_stop() -> None:
    acquirer = Acquirer(ring(), settings=settings(method="optimal"))
    play(acquirer)
    stop = acquirer.stops[""]
    assert stop is not None
    assert stop.because is Because.EXHAUSTED
    assert "the planner proved" in stop.detail
    assert acquirer.margin().lower == pytest.approx(ring().margin(bought(acquirer)).value)


def test_told_twice_or_never_asked_is_refused() -> None:
    acquirer = Acquirer(ring(), settings=settings())
    (purchase, *_) = acquirer.ask(1)
    acquirer.tell(answer(purchase))
    with pytest.raises(Refused, match="not under way"):
        acquirer.tell(answer(purchase))
    with pytest.raises(Refused, match="not under way"):
        acquirer.tell(answer(Purchase("", "n4", Buys.ANSWER, 0.0)))
    with pytest.raises(Refused, match="not under way"):
        acquirer.tell(answer(Purchase("elsewhere", "n4", Buys.ANSWER, 0.0)))


def test_what_was_released_can_be_bought_later() -> None:
    acquirer = Acquirer(ring(), settings=settings())
    (purchase,) = acquirer.ask(1)
    acquirer.release(purchase, "nobody there")
    again = acquirer.ask(1)[0]
    assert (again.name, again.attempt) == (purchase.name, 1)


def test_given_responses_are_not_asked() -> None:
    acquirer = Acquirer(ring(), settings=settings())
    acquirer.give({"n0": 7.0, "n3": [7.0]})
    assert [p.name for p in acquirer.ask(9)] == ["n1", "n2", "n4"]
    with pytest.raises(InputError, match="no node 'x'"):
        acquirer.give({"x": 1.0})
    with pytest.raises(InputError, match="needs 1 numbers"):
        acquirer.give({"n1": [1.0, 2.0]})


def test_ceilings_reserve_money_and_release_what_was_not_used() -> None:
    terms = lambda item, name: Terms(ceiling=0.3)  # noqa: E731
    acquirer = Acquirer(ring(), settings=settings(money=1.0), terms=terms)
    asked = acquirer.ask(9)
    assert len(asked) == 3  # four ceilings would be more than the money
    assert float(acquirer.state.committed_money) == pytest.approx(0.9)
    acquirer.tell(*(Settlement(p, "told", (7.0,), money=0.1, calls=1) for p in asked))
    assert acquirer.state.committed_money <= 1
    assert float(acquirer.state.settled_money) == pytest.approx(0.3)


def test_many_items_share_one_budget() -> None:
    acquirer = Acquirer({"a": ring(), "b": ring(4)}, settings=settings(budget=5.0))
    play(acquirer, count=4)
    assert acquirer.finished
    assert acquirer.state.spent <= 5
    assert {p.item for p in Acquirer({"a": ring(), "b": ring(4)}, settings=settings()).ask(9)} == {"a", "b"}


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("options", [{"budget": 12.0}, {"budget": None, "target": 0.3}, {"budget": 9.0, "target": 0.3}])
@pytest.mark.parametrize("method", ["witness", "greedy"])
def test_a_run_begins_from_nothing(mode: Mode, options: dict[str, Any], method: str) -> None:
    """The paper's own setting: every query has a price."""
    acquirer = Acquirer(priced(**options), settings=settings(mode=mode, budget=options["budget"], method=method))
    play(acquirer)
    stop = acquirer.stops[""]
    assert stop is not None
    assert acquirer.margin().lower >= options.get("target", 1e-6)
    assert options["budget"] is None or acquirer.state.spent <= options["budget"]


@pytest.mark.parametrize("mode", list(Mode))
def test_too_little_money_to_begin_is_said(mode: Mode) -> None:
    acquirer = Acquirer(priced(budget=0.5), settings=settings(mode=mode, budget=0.5, method="greedy"))
    play(acquirer)
    stop = acquirer.stops[""]
    assert stop is not None
    assert stop.because is Because.BUDGET
    assert (
        any(words in stop.detail for words in ("costs 1", "settling it costs 3"))
        or "none of them is affordable" in stop.detail
    )


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("method", ["witness", "greedy"])
@pytest.mark.parametrize("lost", ["n1", "n3"])
def test_a_run_goes_on_after_an_answer_that_can_not_be_read(mode: Mode, method: str, lost: str) -> None:
    """What the goal needs instead is bought from what is left."""

    def tell(purchase: Purchase) -> Settlement:
        return Settlement(purchase, "parse failure", ok=False, calls=1) if purchase.name == lost else answer(purchase)

    for problem in (priced(budget=20.0, target=0.3), ring(5, budget=20.0, target=0.3)):
        seen: list[Event] = []
        acquirer = Acquirer(problem, settings=settings(mode=mode, budget=20.0, method=method), watch=seen.append)
        play(acquirer, tell)
        stop = acquirer.stops[""]
        assert stop is not None
        if lost in acquirer.state.items[""].settled:
            assert stop.because is Because.TARGET, stop.detail
            assert mode is not Mode.AGNOSTIC or any(event.body.get("replaces") for event in seen)


def test_the_only_free_answer_may_be_unreadable() -> None:
    """One free question, the rest on sale: the first answer decides nothing about the budget."""
    problem = priced(budget=20.0, target=0.3, free=1)
    for mode in Mode:
        acquirer = Acquirer(problem, settings=settings(mode=mode, budget=20.0))
        play(acquirer, lambda p: Settlement(p, "refused", ok=False) if p.name == "n0" else answer(p))
        stop = acquirer.stops[""]
        assert stop is not None
        assert stop.because is Because.TARGET


@pytest.mark.parametrize("mode", list(Mode))
def test_what_could_not_be_read_is_checked_directly_where_nothing_else_helps(mode: Mode) -> None:
    """Two questions hang on a third; it can't be read, so only a check of it says what it would
    have been.
    """
    problem = rrf.Problem(
        k=1,
        target=0.3,
        nodes=[{"id": name, "prompt": "?"} for name in ("total", "net", "tax")],
        relations=[{"id": f"r-{name}", "tail": name, "head": "total"} for name in ("net", "tax")],
        anchors=[{"id": "clerk", "node": "total", "value": 7.0, "cost": 2.0}],
    )
    acquirer = Acquirer(problem, settings=settings(mode=mode, method="greedy"))
    play(acquirer, lambda p: Settlement(p, "refused", ok=False) if p.name == "total" else answer(p))
    assert bought(acquirer) == ["clerk"]


def test_one_budget_over_all_items_reaches_as_many_goals_as_it_can() -> None:
    """An even split would reach none: each item needs two checks, and a share buys one."""
    items = {f"i{j:02d}": pairs(2, name=f"i{j:02d}", target=0.3) for j in range(30)}
    acquirer = Acquirer(items, settings=settings(budget=40.0, mode=Mode.ADAPTIVE))
    play(acquirer, count=7)
    reached = sum(acquirer.margin(item).lower >= 0.3 for item in items)
    assert acquirer.finished
    assert (reached, float(acquirer.state.spent)) == (20, 40.0)


def test_cheaper_goals_come_first_and_nobody_waits_for_ever() -> None:
    items = {f"dear{j}": pairs(1, name=f"d{j}", target=0.3, cost=5.0) for j in range(3)}
    items |= {f"cheap{j}": pairs(1, name=f"c{j}", target=0.3, cost=1.0) for j in range(3)}
    acquirer = Acquirer(items, settings=settings(budget=13.0, mode=Mode.ADAPTIVE))
    play(acquirer)
    done = {item for item in items if acquirer.margin(item).lower >= 0.3}
    assert done == {"cheap0", "cheap1", "cheap2", "dear0", "dear1"}


@pytest.mark.parametrize("mode", list(Mode))
def test_neither_the_order_of_answers_nor_a_new_session_changes_what_is_bought(tmp_path: Path, mode: Mode) -> None:
    items = {f"i{j}": ring(4, name=f"i{j}") for j in range(4)}
    given = settings(budget=9.0, mode=mode)

    def value(purchase: Purchase) -> Settlement:
        if (purchase.item, purchase.name) in (("i1", "n2"), ("i3", "n0")):
            return Settlement(purchase, "refused", ok=False)
        return answer(purchase, 9.0 if purchase.name == "n1" else 7.0)

    def buys(count: int, *, last_first: bool, sessions: bool) -> dict[str, list[str]]:
        with Journal(tmp_path / f"{count}{last_first}{sessions}.sqlite") as journal:
            run = journal.create({"name": "r"}, {"": {}})
            options: dict[str, Any] = {"settings": given, "journal": journal, "run": run}
            options["terms"] = lambda item, name: Terms(local=True)
            acquirer = Acquirer(items, **options)
            under_way: list[Purchase] = []
            while under_way := [*under_way, *acquirer.ask(count - len(under_way))]:
                acquirer.tell(value(under_way.pop(-1 if last_first else 0)))
                if sessions:
                    acquirer, under_way = Acquirer(items, **options), []
            return {item: sorted(bought(acquirer, item)) for item in items}

    calm = buys(1, last_first=False, sessions=False)
    assert sum(map(len, calm.values())) > 3
    assert buys(5, last_first=True, sessions=False) == calm
    assert buys(3, last_first=False, sessions=True) == calm


def test_questions_wait_for_money_that_is_reserved_elsewhere() -> None:
    """Each call may cost 0.3 and costs 0.1: all five questions are asked with 0.8, never more than
    the money at once.
    """
    terms = lambda item, name: Terms(ceiling=0.3, calls=1)  # noqa: E731
    acquirer = Acquirer(ring(), settings=settings(money=0.8, budget=0.0), terms=terms)
    under_way = list(acquirer.ask(9))
    assert len(under_way) == 2
    while under_way:
        acquirer.tell(Settlement(under_way.pop(0), "told", (7.0,), money=0.1, calls=1))
        under_way += acquirer.ask(9)
        assert acquirer.state.committed_money <= exact(0.8)
    assert len(acquirer.state.items[""].values(Buys.ANSWER)) == 5


def test_money_that_really_is_used_up_is_said() -> None:
    terms = lambda item, name: Terms(ceiling=0.3, calls=1)  # noqa: E731
    acquirer = Acquirer(ring(), settings=settings(money=0.8, budget=0.0), terms=terms)
    play(acquirer, lambda p: Settlement(p, "told", (7.0,), money=0.25, calls=1))
    stop = acquirer.stops[""]
    assert stop is not None
    assert (stop.because, stop.again) == (Because.MONEY, True)
    assert len(acquirer.state.items[""].values(Buys.ANSWER)) == 3


def test_calls_under_way_count_against_the_limit() -> None:
    terms = lambda item, name: Terms(calls=1)  # noqa: E731
    acquirer = Acquirer({"a": ring(), "b": ring()}, settings=settings(stop=Calls(4)), terms=terms)
    asked = acquirer.ask(9)
    assert len(asked) == 4
    assert acquirer.ask(9) == ()
    acquirer.tell(*(answer(p) for p in asked))
    assert acquirer.ask(9) == ()
    assert {stop.because for stop in acquirer.stops.values() if stop} == {Because.CALLS}


def test_what_was_abandoned_is_lost_and_can_be_bought_again() -> None:
    acquirer = Acquirer(priced(budget=9.0), settings=settings(budget=9.0), terms=lambda item, name: Terms(calls=1))
    (purchase,) = acquirer.ask(1)
    acquirer.abandon(purchase, "enough")
    assert (float(acquirer.state.lost_price), acquirer.state.calls) == (1.0, 1)
    again = acquirer.ask(1)[0]
    assert (again.name, again.attempt) == (purchase.name, 1)


def test_replay_gives_the_same_state(tmp_path: Path) -> None:
    with Journal(tmp_path / "r.sqlite") as journal:
        run = journal.create({"name": "r"}, {"": {}})
        acquirer = Acquirer(ring(), settings=settings(batch=2), journal=journal, run=run)
        play(acquirer)
        acquirer.end("done")
        folded = RunState([""])
        for event in journal.events(run):
            folded.apply(event)
    assert folded.items == acquirer.state.items
    assert folded.__dict__ == acquirer.state.__dict__


@pytest.mark.parametrize(
    ("terms", "doubt", "lost", "asked_again"),
    [
        (Terms(local=True), None, 0, True),
        (Terms(), None, 1, True),
        (Terms(), Doubt.SKIP, 0, False),
    ],
)
def test_intents_without_an_outcome_are_in_doubt(
    tmp_path: Path, terms: Terms, doubt: Doubt | None, lost: int, asked_again: bool
) -> None:
    problem = rrf.Problem(
        k=1,
        nodes=[{"id": "a", "prompt": "?"}, {"id": "b", "prompt": "?"}],
        relations=[{"id": "ab", "tail": "a", "head": "b"}],
        anchors=[
            {"id": "A", "node": "a", "value": 1.0, "cost": 1.0},
            {"id": "B", "node": "b", "value": 1.0, "cost": 1.0},
        ],
    )
    with Journal(tmp_path / "r.sqlite") as journal:
        run = journal.create({"name": "r"}, {"": {}})
        options: dict[str, Any] = {"journal": journal, "run": run, "terms": lambda item, name: terms}
        given = settings(budget=3.0, doubt=doubt)
        before = Acquirer(problem, settings=given, **options)
        for purchase in before.ask(2):
            before.tell(answer(purchase))
        (doubtful,) = before.ask(1)
        assert doubtful.price == 1.0  # … and here the process dies
        after = Acquirer(problem, settings=given, **options)
        assert after.state.lost_price == lost
        again = after.ask(1)
        assert (doubtful.name in {p.name for p in again}) == asked_again
        assert after.state.committed <= 3
        if doubt is Doubt.SKIP:
            assert after.state.items[""].settled[doubtful.name].outcome == "in doubt"
            assert after.state.settled_price == 1


def test_reviews_by_people_do_not_hold_up_the_rest() -> None:
    terms = lambda item, name: Terms(deferred=name.startswith("a"))  # noqa: E731
    acquirer = Acquirer(ring(), settings=settings(), terms=terms)
    while purchases := [p for p in acquirer.ask(5) if not p.deferred]:
        acquirer.tell(*(answer(p) for p in purchases))
    stop = acquirer.stops[""]
    assert acquirer.finished
    assert stop is not None
    assert acquirer.state.pending
    assert all(p.deferred for p in acquirer.state.pending)


def test_a_journal_that_fails_kills_the_object_not_the_run(tmp_path: Path) -> None:
    class Failing(Journal):
        broken = False

        def _doing(self, what: str) -> None:
            if self.broken and what == "written":
                raise OSError(28, "No space left on device")

    with Failing(tmp_path / "r.sqlite") as journal:
        run = journal.create({"name": "r"}, {"": {}})
        acquirer = Acquirer(ring(), settings=settings(), journal=journal, run=run)
        (purchase,) = acquirer.ask(1)
        journal.broken = True
        with pytest.raises(OSError, match="No space"):
            acquirer.tell(answer(purchase))
        with pytest.raises(Refused, match="resume it instead"):
            acquirer.ask(1)
        journal.broken = False
        resumed = Acquirer(ring(), settings=settings(), journal=journal, run=run)
        assert resumed.ask(1)[0].name == purchase.name


@pytest.mark.parametrize("mode", list(Mode))
def test_a_run_buys_for_what_is_delivered_and_stops_there(mode: Mode) -> None:
    whole = Acquirer(pairs(target=0.5), settings=settings(budget=20.0, mode=mode))
    play(whole)
    wanted = Acquirer(pairs(target=0.5, deliver=["x1"]), settings=settings(budget=20.0, mode=mode))
    play(wanted)
    assert sorted(bought(whole)) == ["a0", "a1", "a2"]
    assert bought(wanted) == ["a1"]
    assert wanted.margin().lower >= 0.5


@pytest.mark.parametrize("mode", [Mode.AGNOSTIC, Mode.ADAPTIVE])
def test_a_run_buys_against_checks_that_may_be_wrong(mode: Mode) -> None:
    sure = Acquirer(ring(target=0.5, budget=None, deliver=["n3"]), settings=settings(budget=40.0, mode=mode))
    play(sure)
    doubtful = Acquirer(
        ring(target=0.5, budget=None, deliver=["n3"], wrong_checks=1), settings=settings(budget=40.0, mode=mode)
    )
    play(doubtful)
    assert doubtful.margin().lower >= 0.5
    assert doubtful.state.spent > sure.state.spent


def test_the_first_busy_one_comes_first_and_stays() -> None:
    line = _ItemQueue("abcd")
    for name in "dbcbd":
        line.join(name)
    assert line.first(lambda name: name != "b") == "c"
    assert line.first(lambda name: True) == "c"  # b has left
    line.join("b")
    assert line.first(lambda name: True) == "b"


def test_nobody_is_busy() -> None:
    line = _ItemQueue("ab")
    line.join("a")
    assert line.first(lambda name: False) is None
    assert line.first(lambda name: True) is None
    assert line.sorted("ba") == ["a", "b"]
