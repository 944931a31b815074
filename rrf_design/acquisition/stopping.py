"""When to stop (paper, "Stopping rules"): a proof that the goal is met, or an honest "can't".

Rules compose with `&` and `|`. There is deliberately no rule on the relation defect: answers that
agree with each other have defect zero also when all of them are wrong together, as long as the
margin is zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from rrf_design.design import standing_of
from rrf_design.errors import InputError
from rrf_design.goal import CERTAIN, Goal

if TYPE_CHECKING:
    from rrf_design._margin import DesignMargin
    from rrf_design.problem import Problem


class Because(StrEnum):
    """Why a field or a run stopped; `stopped_because` of the results."""

    TARGET = "target reached"
    VALIDITY = "parser validity is the bottleneck"
    RECALL = "candidate recall is the bottleneck"
    GAIN = "gain per cost is below the threshold"
    EXHAUSTED = "no affordable purchase can raise the margin"
    SCHEDULE = "schedule complete"
    BUDGET = "budget used up"
    MONEY = "money used up"
    CALLS = "calls used up"
    TIME = "time used up"
    WAITING = "waiting for review"
    PAUSED = "paused"
    PENDING = "pending"
    UNREADABLE = "no answer could be read"


@dataclass(frozen=True, slots=True)
class Stop:
    """A rule that fired, with its figures.

    `again`: going on later may make sense (time, calls, money).
    """

    because: Because
    detail: str
    again: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """What a rule may look at, when an item has nothing under way.

    Functions are computed when they are called.
    """

    problem: Problem
    margin: Callable[[], DesignMargin | None]
    """γ of the field as it is; None while it is empty, so that nothing is promised about
    anything.
    """
    ceiling: Callable[[], float]
    """No affordable purchase lifts the margin above this; see `Design.ceiling`."""
    left: Callable[[], tuple[int, int]]
    """What could still be bought with the money that is left, and with all the money in the
    world.
    """
    planned: bool
    """Whether the schedule has purchases left; then proving that nothing helps is not worth its
    time.
    """
    history: tuple[tuple[float, float], ...]
    """(committed cost, certified lower bound) at the start of each round so far, and now."""
    read: tuple[int, int]
    """Answers that could be read, and answers, over the whole run."""
    recalled: tuple[int, int]
    """Directly anchored answers that agree with their anchor, and all of them, over the whole
    run.
    """
    committed_money: float
    calls: int
    seconds: float
    settled: Callable[[], str | None] = lambda: None
    """The verdict of a repair that reaches the goal although the margin alone does not promise it,
    and what it assumes; None where none does.
    """


class StoppingRule(ABC):
    """One reason to stop. `check` returns it, or None to go on."""

    @abstractmethod
    def check(self, view: View) -> Stop | None: ...

    @abstractmethod
    def describe(self) -> str:
        """How the rule is recorded in the run's header."""

    def __and__(self, other: StoppingRule) -> StoppingRule:
        return AllOf(self, other)

    def __or__(self, other: StoppingRule) -> StoppingRule:
        return AnyOf(self, other)


class AllOf(StoppingRule):
    def __init__(self, *rules: StoppingRule) -> None:
        self.rules = rules

    def check(self, view: View) -> Stop | None:
        found = []
        for rule in self.rules:
            stop = rule.check(view)
            if stop is None:
                return None
            found.append(stop)
        return Stop(found[0].because, "; and ".join(s.detail for s in found), again=any(s.again for s in found))

    def describe(self) -> str:
        return "(" + " and ".join(rule.describe() for rule in self.rules) + ")"


class AnyOf(StoppingRule):
    def __init__(self, *rules: StoppingRule) -> None:
        self.rules = rules

    def check(self, view: View) -> Stop | None:
        return next((stop for rule in self.rules if (stop := rule.check(view)) is not None), None)

    def describe(self) -> str:
        return "(" + " or ".join(rule.describe() for rule in self.rules) + ")"


class Target(StoppingRule):
    """The goal is reached: by default the problem's own (`rrf_design.goal`).

    By the margin, before any answer is looked at; for the problem's own goal also where a repair
    reaches it without.
    """

    def __init__(self, margin: float | None = None) -> None:
        self.wanted = margin

    def check(self, view: View) -> Stop | None:
        goal = Goal.of(view.problem) if self.wanted is None else Goal(self.wanted)
        if not goal.named:
            return None
        margin = view.margin()
        standing = None if margin is None else standing_of(view.problem, margin, goal=goal)
        if standing is None or not standing.reached:
            settled = view.settled() if self.wanted is None else None
            return None if settled is None else Stop(Because.TARGET, settled)
        figure = "certified margin" + (f", {CERTAIN}," if standing.robust_lower < standing.lower else "")
        what = f"{figure} {standing.robust_lower:.6g} is at least {goal.target or 0.0:.6g}"
        if goal.delta is not None and standing.error_bound is not None:
            what = f"certified error bound {standing.error_bound:.6g} is at most {goal.delta:.6g}"
        return Stop(Because.TARGET, what)

    def describe(self) -> str:
        return "margin certified" if self.wanted is None else f"margin {self.wanted:g} certified"


class Validity(StoppingRule):
    """Too few answers can be read: more rows would not help, a better prompt or parser would."""

    def __init__(self, at_least: float = 0.25, *, after: int = 12) -> None:
        self.at_least, self.after = at_least, after

    def check(self, view: View) -> Stop | None:
        read, asked = view.read
        if asked < self.after or read >= self.at_least * asked:
            return None
        return Stop(Because.VALIDITY, f"only {read} of {asked} answers could be read")

    def describe(self) -> str:
        return f"fewer than {self.at_least:g} of at least {self.after} answers readable"


class Recall(StoppingRule):
    """Too few anchored answers are right: the model does not produce the truth often enough to be
    repaired.
    """

    def __init__(self, at_least: float = 0.05, *, after: int = 20) -> None:
        self.at_least, self.after = at_least, after

    def check(self, view: View) -> Stop | None:
        right, anchored = view.recalled
        if anchored < self.after or right >= self.at_least * anchored:
            return None
        return Stop(Because.RECALL, f"only {right} of {anchored} anchored answers agree with their anchor")

    def describe(self) -> str:
        return f"fewer than {self.at_least:g} of at least {self.after} anchored answers right"


class Gain(StoppingRule):
    """The last round raised the certified margin by less than this per unit of cost.

    It waits while the margin is zero: there two purchases can be worth nothing alone and everything
    together.
    """

    def __init__(self, below: float) -> None:
        self.below = below

    def check(self, view: View) -> Stop | None:
        if len(view.history) < 2:
            return None
        (before, low), (after, high) = view.history[-2:]
        if high <= 0.0 or after <= before:
            return None
        gain = (high - low) / (after - before)
        if gain >= self.below:
            return None
        return Stop(Because.GAIN, f"the last round gained {gain:.4g} per unit of cost, less than {self.below:g}")

    def describe(self) -> str:
        return f"gain per cost below {self.below:g}"


class Exhausted(StoppingRule):
    """No affordable purchase can raise the margin: nothing is left to buy, or a bound over all of
    it proves it.
    """

    def check(self, view: View) -> Stop | None:
        if view.planned:
            return None
        affordable, left = view.left()
        if left == 0 and not view.problem.structure.market.items:
            return Stop(Because.SCHEDULE, "all that there was to ask was asked; nothing was on sale")
        if left == 0:
            return Stop(Because.EXHAUSTED, "everything that could help has been bought")
        if affordable == 0:
            return Stop(Because.BUDGET, f"{left} purchases are left, and none of them is affordable", again=True)
        if len(view.history) >= 2 and view.history[-1][1] > view.history[-2][1]:
            return None  # the last round helped, so a proof that nothing helps is not worth its time yet
        margin = view.margin()
        if margin is None:
            return None  # the first answer may still come
        ceiling = view.ceiling()
        # The two sides are bounds of nearly the same matrix; their rounding errors are no gain.
        if ceiling > margin.lower * (1 + 1e-9) + 1e-12:
            return None
        return Stop(
            Because.EXHAUSTED,
            f"with everything affordable the margin is at most {ceiling:.6g}, and it is at least {margin.lower:.6g}",
        )

    def describe(self) -> str:
        return "nothing affordable can raise the margin"


class Calls(StoppingRule):
    """So many model calls have been made."""

    def __init__(self, most: int) -> None:
        self.most = most

    def check(self, view: View) -> Stop | None:
        if view.calls < self.most:
            return None
        return Stop(Because.CALLS, f"{view.calls} calls were made, {self.most} are allowed", again=True)

    def describe(self) -> str:
        return f"{self.most} calls made"


class Seconds(StoppingRule):
    """So much working time has passed, pauses between sessions not counted."""

    def __init__(self, most: float) -> None:
        self.most = most

    def check(self, view: View) -> Stop | None:
        if view.seconds < self.most:
            return None
        return Stop(Because.TIME, f"{view.seconds:.1f} s have passed, {self.most:g} s are allowed", again=True)

    def describe(self) -> str:
        return f"{self.most:g} seconds passed"


def default() -> StoppingRule:
    """A proof that the goal is met, or that the bottleneck is elsewhere, or that nothing affordable
    helps.
    """
    return Target() | Validity() | Recall() | Exhausted()


def hard_limits(rule: StoppingRule) -> tuple[int | None, float | None]:
    """The calls and seconds that no run under this rule may exceed, whatever else happens: those
    that end it alone.
    """
    parts = rule.rules if isinstance(rule, AnyOf) else (rule,)
    calls: list[int] = []
    seconds: list[float] = []
    for part in parts:
        if isinstance(part, Calls):
            calls.append(part.most)
        elif isinstance(part, Seconds):
            seconds.append(part.most)
        elif isinstance(part, AnyOf):
            inner = hard_limits(part)
            calls.extend(x for x in inner[:1] if x is not None)
            seconds.extend(x for x in inner[1:] if x is not None)
    return min(calls, default=None), min(seconds, default=None)


def limited(
    rule: StoppingRule, *, calls: int | None = None, seconds: float | None = None, gain: float | None = None
) -> StoppingRule:
    """The rule with a user's limits; each replaces a limit of its kind, and the others stay."""
    if calls is not None:
        rule = _without(rule, Calls) | Calls(calls)
    if seconds is not None:
        rule = _without(rule, Seconds) | Seconds(seconds)
    return rule if gain is None else _without(rule, Gain) | Gain(gain)


def between_rounds(rule: StoppingRule) -> StoppingRule:
    """The rule without its hard limit on calls, which counts where a call is reserved: what needs
    no call may still be bought.
    """
    return _without(rule, Calls)


def for_triage(rule: StoppingRule) -> StoppingRule:
    """The rule where verdicts decide: limits and readability stay, what looks at margins alone or
    at chosen checks goes.
    """
    for kind in (Target, Recall, Exhausted, Gain, Calls):
        rule = _without(rule, kind)
    return rule


def _without(rule: StoppingRule, kind: type[StoppingRule]) -> StoppingRule:
    """The rule without parts of this kind that could fire alone; `AnyOf()` never fires."""
    parts = rule.rules if isinstance(rule, AnyOf) else (rule,)
    kept = [_without(part, kind) if isinstance(part, AnyOf) else part for part in parts if not isinstance(part, kind)]
    return kept[0] if len(kept) == 1 else AnyOf(*kept)


_KINDS: Mapping[str, type[StoppingRule]] = {
    "target": Target,
    "validity": Validity,
    "recall": Recall,
    "gain": Gain,
    "exhausted": Exhausted,
    "calls": Calls,
    "seconds": Seconds,
}


def record(rule: StoppingRule) -> dict[str, Any]:
    """A rule as the journal keeps it, so that a resumed run stops where the run would have; see
    `restore`.
    """
    if isinstance(rule, AllOf | AnyOf):
        return {"all" if isinstance(rule, AllOf) else "any": [record(part) for part in rule.rules]}
    name = next((name for name, kind in _KINDS.items() if type(rule) is kind), None)
    return {"own": rule.describe()} if name is None else {name: vars(rule)}


def restore(document: Mapping[str, Any]) -> StoppingRule:
    """The rule that `record` wrote down; InputError where it was a class of the caller's own."""
    ((name, content),) = document.items()
    if name in ("all", "any"):
        parts = [restore(part) for part in content]
        return AllOf(*parts) if name == "all" else AnyOf(*parts)
    if name not in _KINDS:
        raise InputError(f"the run was begun with a stopping rule of its own ({content}); give `stop` again")
    rule = _KINDS[name].__new__(_KINDS[name])
    vars(rule).update(content)
    return rule


def summary(stops: Mapping[str, Stop | None]) -> str:
    """Why a run with these items stopped, in one line: the common reason, or how many for which."""
    counts: dict[str, int] = {}
    for stop in stops.values():
        name = "unfinished" if stop is None else stop.because.value
        counts[name] = counts.get(name, 0) + 1
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{name}: {count}" for name, count in sorted(counts.items(), key=lambda e: (-e[1], e[0])))
