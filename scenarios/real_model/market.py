"""A market of recorded answers for one item, and the acquisition loop buying in it until a margin
is certified.

Nine answers at one call each; relations that are free once both answers are there; checks of an
answer by an external evaluator at the price of eight calls. Every decision is that of
`rrf_design.acquisition.Acquirer`: this module only hands it recorded answers (ask and tell), and
begins a new session while answers that could not be read leave it short of the target. Nothing is
asked of a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from rrf_design.acquisition import Acquirer, Buys, Mode, Purchase, Settings, Settlement
from rrf_design.noise import Noise
from rrf_design.problem import Problem
from rrf_design.repairing import repair
from scenarios.kit import planner_baselines as planner_baselines  # its planners are policies here

Values = Sequence[float] | None

QUERIES = ("original", "second", "third", "fourth", "sample0", "sample1", "sample2", "sample3", "reflection")
SAMPLES = QUERIES[4:8]
PRICES = {Buys.ANSWER: 1.0, Buys.ANCHOR: 8.0}
"""In calls.

The first answer belongs to the field from the start, so the loop books no price for it; it is a
call all the same.
"""
ADAPTIVE = "adaptive"
RANDOM = "random"


def market_of(
    dim: int,
    k: int,
    target: float | None,
    *,
    owned: Sequence[str],
    lost: Sequence[str] = (),
    checks: Mapping[str, Values] | None = None,
    sale: bool = True,
) -> Problem:
    """The field of an item: `owned` answers and `checks` (None: still to be fetched), the rest on
    sale unless `sale` is false.

    Answers that could not be read are gone.
    """
    known = checks or {}
    there = [name for name in QUERIES if name not in lost and (sale or name in owned)]
    nodes = [{"id": name, "dim": dim, **({} if name in owned else {"cost": PRICES[Buys.ANSWER]})} for name in there]
    anchors = [{"id": f"check {name}", "node": name, **_terms(name, known)} for name in there if sale or name in known]
    return Problem(name="market", k=k, target=target, nodes=nodes, relations=_relations(there), anchors=anchors)


def _terms(name: str, checks: Mapping[str, Values]) -> dict[str, object]:
    if name not in checks:
        return {"cost": PRICES[Buys.ANCHOR]}
    value = checks[name]
    return {} if value is None else {"value": list(value)}


def _relations(there: Sequence[str]) -> list[dict[str, object]]:
    """Typed answers are compared pairwise, the others with the first that is there."""
    typed = [name for name in there if name in QUERIES[:4]]
    found: list[dict[str, object]] = [
        {"id": f"{a}~{b}", "tail": a, "head": b} for place, a in enumerate(typed) for b in typed[place + 1 :]
    ]
    first = there[0]
    copies = [name for name in there if name in SAMPLES and name != first]
    # Samples repeat one prompt: four copies of one comparison share one weight, so asking again
    # adds no information. Each keeps its
    # quarter when others are missing: a row does not change because another answer could not be
    # read.
    shared = {"family": "samples", "weight": len(copies) / len(SAMPLES)}
    found += [{"id": f"{first}~{name}", "tail": first, "head": name, **shared} for name in copies]
    if "reflection" in there and first != "reflection":
        found.append({"id": f"{first}~reflection", "tail": first, "head": "reflection"})
    return found


@dataclass(frozen=True, slots=True)
class Play:
    """What one policy asked and checked, what it paid in calls, and the margin that this
    certifies.
    """

    asked: Mapping[str, Values]
    checked: tuple[str, ...]
    cost: float
    gamma: float
    gone: tuple[str, ...] = ()
    """Answers that were unread before the last session began: its field, and so its margin, is
    without them.
    """


class Player:
    """Sessions of the acquisition loop on one item; remembers what was bought, and what it cost."""

    def __init__(self, recorded: Mapping[str, Values], truth: Sequence[float], *, k: int, target: float | None) -> None:
        self.recorded, self.truth, self.k, self.target = recorded, truth, k, target
        self.asked: dict[str, Values] = {}
        self.checked: list[str] = []
        self.cost = 0.0
        self.gamma = 0.0
        self.gone: tuple[str, ...] = ()

    @property
    def lost(self) -> tuple[str, ...]:
        return tuple(name for name in QUERIES if name in self.asked and self.asked[name] is None)

    @property
    def readable(self) -> tuple[str, ...]:
        return tuple(name for name in QUERIES if self.asked.get(name) is not None)

    def session(self, settings: Settings, *, more: Sequence[str] = (), check: str | None = None, sale: bool) -> bool:
        """One run of the loop, with answers and a check that are bought in any case; whether it
        reached the target.
        """
        owned, self.gone = [*self.readable, *more], self.lost
        checks: dict[str, Values] = dict.fromkeys(self.checked, self.truth)
        if check is not None:
            checks[check] = None
        problem = market_of(len(self.truth), self.k, self.target, owned=owned, lost=self.lost, checks=checks, sale=sale)
        loop = Acquirer(problem, settings=settings)
        loop.give({name: self.asked[name] for name in self.readable})
        while purchases := loop.ask():
            loop.tell(*map(self._settle, purchases))
        self.gamma = loop.margin().lower if self.readable else 0.0
        return self.target is not None and self.gamma >= self.target

    def _settle(self, purchase: Purchase) -> Settlement:
        self.cost += PRICES[purchase.buys]
        if purchase.buys is Buys.ANCHOR:
            self.checked.append(purchase.name.removeprefix("check "))
            return Settlement(purchase, "checked", tuple(self.truth))
        value = self.asked[purchase.name] = self.recorded[purchase.name]
        if value is None:
            return Settlement(purchase, "parse failure", ok=False, calls=1)
        return Settlement(purchase, "answered", tuple(value), calls=1)

    def play(self) -> Play:
        return Play(dict(self.asked), tuple(self.checked), self.cost, self.gamma, self.gone)


def buy(
    recorded: Mapping[str, Values], policy: str, *, k: int, target: float, truth: Sequence[float], seed: int
) -> Play:
    """Play one policy to its end: a method of the planner, `adaptive`, or `random` in the order
    that the seed gives.
    """
    if policy == ADAPTIVE:
        return _play(recorded, truth, policy, k, target, seed)
    # Without residuals the operator alone decides: items whose readable answers are the same are
    # bought alike.
    lost = tuple(name for name in QUERIES if recorded[name] is None)
    alike = _alike(policy, k, target, lost, seed if policy == RANDOM else 0)
    return Play({name: recorded[name] for name in alike.asked}, alike.checked, alike.cost, alike.gamma, alike.gone)


@cache
def _alike(policy: str, k: int, target: float, lost: tuple[str, ...], seed: int) -> Play:
    """Margins of identity fields don't depend on the dimension, nor do prices."""
    recorded = {name: None if name in lost else (0.0,) for name in QUERIES}
    return _play(recorded, (0.0,), policy, k, target, seed)


def _play(
    recorded: Mapping[str, Values], truth: Sequence[float], policy: str, k: int, target: float, seed: int
) -> Play:
    player = Player(recorded, truth, k=k, target=target)
    if policy == RANDOM:
        for name, check in _shuffled(seed):
            more = [] if name in player.asked else [name]
            if more and player.session(Settings(method="witness"), more=more, sale=False):
                break
            if check and name in player.readable and player.session(Settings(method="witness"), check=name, sale=False):
                break
        return player.play()
    mode = Mode.ADAPTIVE if policy == ADAPTIVE else Mode.AGNOSTIC
    settings = Settings(mode=mode, method="auto" if policy == ADAPTIVE else policy, time_limit=10.0)
    while len(player.lost) < len(QUERIES):
        missing = len(player.lost)
        # Something has to be there to begin with: the first answer that has not turned out to be
        # unreadable.
        first = [] if player.readable else [next(name for name in QUERIES if name not in player.lost)]
        if player.session(settings, more=first, sale=True) or len(player.lost) == missing:
            break
    return player.play()


def _shuffled(seed: int) -> Iterator[tuple[str, bool]]:
    """The first question, then all wares in a random order: (name, whether it is checked)."""
    wares = [*((name, False) for name in QUERIES[1:]), *((name, True) for name in QUERIES)]
    yield QUERIES[0], False
    for place in np.random.default_rng(seed).permutation(len(wares)):
        yield wares[int(place)]


def answer(play: Play, truth: Sequence[float], *, k: int, epsilon: float) -> list[float] | None:
    """Repair what was bought; the checks say the truth, also of answers that could not be read.

    None when nothing could be read.
    """
    values = {name: tuple(value) for name, value in play.asked.items() if value is not None}
    if not values:
        return None
    there = [name for name in QUERIES if name in play.asked and name not in play.gone]
    problem = market_of(len(truth), k, None, owned=there, checks=dict.fromkeys(play.checked, truth), sale=False)
    fixed = repair(problem, values, method="exact", noise=Noise(epsilon))
    known = [value for value in fixed.nearest.values() if value is not None]
    return [float(v) for v in np.round(np.median(np.array(known), axis=0))]  # answers are integers


def vote(samples: Sequence[Values]) -> Values:
    """The most frequent readable answer; among equals the first."""
    readable = [tuple(value) for value in samples if value is not None]
    return max(readable, key=readable.count, default=None)


def vote_play(recorded: Mapping[str, Values], *, k: int) -> Play:
    """Self-consistency: four samples, no plan, whatever margin that happens to give."""
    stand_in = {name: None if recorded[name] is None else (0.0,) for name in QUERIES}
    player = Player(stand_in, (0.0,), k=k, target=None)
    player.session(Settings(method="witness"), more=SAMPLES, sale=False)
    return Play({name: recorded[name] for name in player.asked}, (), player.cost, player.gamma)
