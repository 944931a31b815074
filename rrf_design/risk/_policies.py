"""Learn, then test: which of many policies is proven to keep its risk, and which of those is
cheapest (docs/algorithms.md, facts 23 and 32 to 34).

All policies are replayed on one pilot of random items with known truth. `assess` tests each and
returns a record from which anybody can redo every test: what was counted, in which order or pool,
at which level. `choose` is its answer alone.

Many policies, one error probability: sequences, Holm's method, and both side by side
(docs/algorithms.md, facts 23 and 33).

A procedure is a list of streams, each with a share of the error probability. A chain gives its
level to the first of its names that is not rejected yet; a pool (Holm) divides it equally among
those of its names. A stream with nothing left gives its level to the first that has something. A
name is tested at the sum of what points at it.

Why this is valid: for a name that is not rejected, its level can only grow while others are
rejected (a chain that points at it stays there, a pool gets smaller, the first live stream stays
the first), and levels never sum to more than α. These are the two conditions of the sequential
rejection principle (Goeman and Solari 2010). Holm is one pool; a fixed sequence is one chain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rrf_design.errors import InputError
from rrf_design.risk._arguments import Number, choice, share, whole
from rrf_design.risk._sequences import sequential_tail
from rrf_design.risk._statements import (
    Among,
    ClaimAndGate,
    Limit,
    Scope,
    Sighting,
    Statement,
    Stream,
    evidences,
    together,
)


@dataclass(frozen=True, slots=True)
class _Decision:
    """What became of one name: the level at which it was last looked at (0: never), and whether it
    was proven.
    """

    level: Fraction
    proven: bool


def holm(names: Sequence[str]) -> tuple[Stream, ...]:
    return (Stream(Fraction(1), tuple(names), pooled=True),)


def fixed_sequence(names: Sequence[str]) -> tuple[Stream, ...]:
    return (Stream(Fraction(1), tuple(names)),)


def _check_streams(streams: Sequence[Stream], names: Sequence[str]) -> None:
    """InputError for an unknown or repeated name, or shares that are no division of one error
    probability.
    """
    known = set(names)
    for number, stream in enumerate(streams, start=1):
        unknown = [name for name in stream.names if name not in known]
        if unknown:
            raise InputError(f"order {number}: there is no policy {unknown[0]!r}")
        if len(set(stream.names)) != len(stream.names):
            twice = next(name for name in stream.names if stream.names.count(name) > 1)
            raise InputError(f"order {number}: policy {twice!r} stands in it twice")
        if stream.share < 0:
            raise InputError(f"order {number}: its share {stream.share} of the error probability is negative")
    if sum(stream.share for stream in streams) > 1:
        raise InputError("the shares of the error probability sum to more than 1")


def decide(evidence: Mapping[str, ClaimAndGate], streams: Sequence[Stream], alpha: Fraction) -> dict[str, _Decision]:
    """Run the procedure on the gates, then claim what its own level allows where it stopped."""
    state = _State(evidence, streams, alpha)
    found: dict[str, _Decision] = {}
    while True:
        levels = {name: state.level(name) for name in state.heads()}
        passed = [name for name, level in levels.items() if evidence[name].gate.at_most(level)]
        if not passed:
            break
        for name in passed:
            found[name] = _Decision(levels[name], evidence[name].claim.at_most(levels[name]))
            state.reject(name)
    for name in evidence.keys() - found.keys():
        level = state.level(name)
        found[name] = _Decision(level, level > 0 and evidence[name].claim.at_most(level))
    return {name: found[name] for name in evidence}


class _State:
    """Where every stream stands, for the names rejected so far."""

    def __init__(self, evidence: Mapping[str, ClaimAndGate], streams: Sequence[Stream], alpha: Fraction) -> None:
        self.pooled = [stream.pooled for stream in streams]
        # In a pool the smallest p-value is looked at first; a float's last digits are harmless,
        # because a later name has at least an earlier one's level.
        self.names = [
            sorted(s.names, key=lambda name: evidence[name].gate.value) if s.pooled else list(s.names) for s in streams
        ]
        self.levels = [stream.share * alpha for stream in streams]
        self.left = [set(names) for names in self.names]
        self.places = [0] * len(self.names)
        self._settle()

    def heads(self) -> list[str]:
        """What could be rejected next: the first of every stream that is left."""
        return list(dict.fromkeys(self.names[i][self.places[i]] for i in range(len(self.names)) if self.left[i]))

    def level(self, name: str) -> Fraction:
        total = Fraction(0)
        for i, left in enumerate(self.left):
            if name in left and self.pooled[i]:
                total += self.levels[i] / len(left)
            elif name in left and self.names[i][self.places[i]] == name:
                total += self.levels[i]
        return total

    def reject(self, name: str) -> None:
        for left in self.left:
            left.discard(name)
        self._settle()

    def _settle(self) -> None:
        """Streams step over what is rejected; those with nothing left hand their level on."""
        live = [i for i, left in enumerate(self.left) if left]
        for i in live:
            while self.names[i][self.places[i]] not in self.left[i]:
                self.places[i] += 1
        for i in range(len(self.left)) if live else ():
            if not self.left[i]:
                self.levels[live[0]] += self.levels[i]
                self.levels[i] = Fraction(0)


Order = Sequence[str] | Sequence[Stream]


class Policy(Protocol):
    """What a policy did on the pilot's items, in the order of their draw.

    It may say two more things: `checked_share`, the random share of its deliveries that is checked,
    and `delivers`, how many of all items it delivers, where that is known without gold.
    """

    @property
    def name(self) -> str: ...
    @property
    def cost(self) -> ArrayLike: ...
    @property
    def delivered(self) -> ArrayLike: ...
    @property
    def wrong(self) -> ArrayLike: ...


@dataclass(frozen=True, slots=True)
class Tally:
    """What was counted for one limit: `marked` of `counted` items in its denominator."""

    column: str
    counted: int
    marked: int
    places: tuple[int, ...] | None = None
    """Where the marked ones stand among the counted, in the order of the draw; only for sequential
    tests, which depend on it.
    """


@dataclass(frozen=True, slots=True)
class AssessedPolicy:
    """One policy with its counts, its p-value, the level it was last tested at (0: never reached)
    and the outcome.
    """

    name: str
    cost: float
    counts: tuple[Tally, ...]
    p: float
    level: Fraction
    proven: bool
    checked_share: Fraction = Fraction(0)
    delivers: int | None = None


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """Everything a verifier needs; `chosen` is the cheapest proven policy, or None."""

    chosen: str | None
    policies: tuple[AssessedPolicy, ...]
    limits: tuple[Limit, ...]
    scope: Scope
    confidence: Fraction
    streams: tuple[Stream, ...]
    ordered_by: str
    sequential: bool = False


def choose(
    policies: Sequence[Policy],
    risk: Number | Limit | Sequence[Limit],
    confidence: Number,
    *,
    order: Order | None = None,
    population: int | None = None,
    statement: Statement | Scope | str | None = None,
    sequential: bool = False,
) -> str | None:
    """The name of the cheapest policy that is proven to keep the risk among what it delivers, or
    None.

    Holm's method over all policies, or the given order of names, fixed beforehand: from cautious to
    cheap, until one fails. Without `population` the promise is about fresh items; with it, about
    the policy over these items unless `statement` says otherwise.
    """
    return assess(
        policies,
        risk,
        confidence,
        order=order,
        population=population,
        statement=statement,
        sequential=sequential,
    ).chosen


def assess(
    policies: Sequence[Policy],
    risk: Number | Limit | Sequence[Limit],
    confidence: Number,
    *,
    order: Order | None = None,
    population: int | None = None,
    statement: Statement | Scope | str | None = None,
    sequential: bool = False,
    ordered_by: str = "",
) -> PolicyChoice:
    """Test every policy that the procedure reaches, and keep the record.

    `order`: names (a fixed sequence) or `Stream`s; None for Holm. `ordered_by`: in words, how the
    order was made; it goes into the record. `statement`: its name, or a `Scope` with everything it
    needs. `sequential`: p-values that hold at every moment, for a pilot that is looked at while it
    grows (fresh items only).
    """
    limits = _limits(risk)
    sure = share(confidence, "confidence")
    tables = [_Table.of(policy, limits) for policy in policies]
    if not tables:
        raise InputError("there are no policies to choose from")
    lengths = {len(table.cost) for table in tables}
    if len(lengths) > 1:
        raise InputError(f"the policies were replayed on different numbers of items: {sorted(lengths)}")
    names = [table.name for table in tables]
    if len(set(names)) != len(names):
        raise InputError(f"two policies are called {next(n for n in names if names.count(n) > 1)!r}")
    scope = _scope(statement, population, lengths.pop())
    streams = _streams(order, names)
    _check_streams(streams, names)
    if sequential and scope.statement is not Statement.FRESH:
        raise InputError("a sequential test speaks of fresh items; leave population and statement out")
    counts = {t.name: t.counts(places=sequential) for t in tables}
    seen = [Counted(counts[t.name], t.q, t.delivers) for t in tables]
    found = dict(zip(names, weigh(seen, limits, scope, sequential=sequential), strict=True))
    decisions = decide(found, streams, 1 - sure)
    tested = tuple(
        AssessedPolicy(
            t.name,
            float(t.cost.mean()) if len(t.cost) else 0.0,
            counts[t.name],
            found[t.name].claim.value,
            decisions[t.name].level,
            decisions[t.name].proven,
            t.q,
            t.delivers,
        )
        for t in tables
    )
    words = ordered_by or ("Holm's method" if order is None else "given by the caller")
    return PolicyChoice(_cheapest(tested), tested, limits, scope, sure, streams, words, sequential)


@dataclass(frozen=True, slots=True)
class Counted:
    """What a policy showed, one tally for each limit, with its share of random checks and, where
    known, how many items it delivers.
    """

    counts: tuple[Tally, ...]
    q: Fraction
    delivers: int | None = None


def weigh(seen: Sequence[Counted], limits: Sequence[Limit], scope: Scope, *, sequential: bool) -> list[ClaimAndGate]:
    """The p-values behind the counts of every policy.

    Checking a random share q of what is delivered leaves 1 − q of the risk (fact 34); over a finite
    data set that is what is left on average over which deliveries are checked.
    """
    if scope.depth and len(limits) > 1:
        raise InputError("a depth is for one limit; with several of them leave it at 0")
    for one in seen:
        _check_delivers(one, limits, scope)
    eased = [[_eased(limit, one.q, scope) for limit in limits] for one in seen]
    if sequential:
        return [
            together([_at_every_moment(*part) for part in zip(one.counts, tested, strict=True)])
            for one, tested in zip(seen, eased, strict=True)
        ]
    sightings = [
        Sighting(limit, count.counted, count.marked, one.delivers)
        for one, tested in zip(seen, eased, strict=True)
        for count, limit in zip(one.counts, tested, strict=True)
    ]
    found, each = evidences(sightings, scope), len(limits)
    return [together(found[at * each : (at + 1) * each]) for at in range(len(seen))]


def _check_delivers(one: Counted, limits: Sequence[Limit], scope: Scope) -> None:
    """Whatever a pilot item's policy withheld is not among what it delivers."""
    if one.delivers is None or scope.population is None:
        return
    kept = (count.counted for count, limit in zip(one.counts, limits, strict=True) if limit.among is Among.DELIVERED)
    most = scope.population - scope.piloted + min(kept, default=scope.piloted)
    if one.delivers > most:
        raise InputError(
            f"a policy delivers {one.delivers} of {scope.population} items; what it withheld of the {scope.piloted}"
            f" piloted leaves at most {most}"
        )


def _eased(limit: Limit, q: Fraction, scope: Scope) -> Limit:
    """What is tested where a random share q is checked."""
    if q and scope.statement not in (Statement.FRESH, Statement.POLICY):
        raise InputError(
            "random checks change how many rows of a file are wrong by chance; they prove 'fresh' or 'policy', not"
            f" {str(scope.statement)!r}"
        )
    allowed = limit.share / (1 - q) if limit.column == "wrong" else limit.share
    if allowed >= 1:
        raise InputError(f"a checked share of {q} already keeps any risk of {limit.share}; nothing is left to test")
    return Limit(allowed, limit.column, limit.among)


def _at_every_moment(count: Tally, limit: Limit) -> ClaimAndGate:
    marks = np.zeros(count.counted, dtype=bool)
    marks[list(count.places or ())] = True
    tail = sequential_tail(marks, limit.share)
    return ClaimAndGate(tail, tail)


def _cheapest(tested: Sequence[AssessedPolicy]) -> str | None:
    """Of the proven ones; of those that cost the same the one that was wrong least often, then the
    first.
    """
    proven = [policy for policy in tested if policy.proven]
    if not proven:
        return None
    return min(proven, key=lambda policy: (policy.cost, sum(tally.marked for tally in policy.counts))).name


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    cost: NDArray[np.float64]
    delivered: NDArray[np.bool_]
    marks: tuple[tuple[str, NDArray[np.bool_], NDArray[np.bool_]], ...]
    """Per limit: its column, the denominator, and what is marked in it."""
    q: Fraction
    delivers: int | None

    @classmethod
    def of(cls, policy: Policy, limits: Sequence[Limit]) -> _Table:
        name = str(getattr(policy, "name", ""))
        if not name:
            raise InputError("a policy has no name")
        cost = _array(policy, name, "cost")
        delivered = _marks(policy, name, "delivered", len(cost))
        every = np.ones(len(cost), dtype=bool)
        marks = []
        for limit in limits:
            among = delivered if limit.among is Among.DELIVERED else every
            # What is not delivered can't be delivered wrongly, whatever the array says.
            inside = delivered if limit.column == "wrong" else among
            marks.append((limit.column, among, _marks(policy, name, limit.column, len(cost)) & inside))
        q = share(getattr(policy, "checked_share", 0), f"policy {name!r}: checked_share", zero=True)
        delivers = getattr(policy, "delivers", None)
        if delivers is not None:
            delivers = whole(delivers, f"policy {name!r}: delivers", least=int(delivered.sum()))
        return cls(name, cost, delivered, tuple(marks), q, delivers)

    def counts(self, *, places: bool) -> tuple[Tally, ...]:
        found = []
        for column, among, marked in self.marks:
            where = np.flatnonzero(marked[among])
            kept = tuple(int(place) for place in where) if places else None
            found.append(Tally(column, int(among.sum()), len(where), kept))
        return tuple(found)


def _limits(risk: Number | Limit | Sequence[Limit]) -> tuple[Limit, ...]:
    if isinstance(risk, Limit):
        return (risk,)
    if isinstance(risk, Sequence) and not isinstance(risk, str):
        if not risk or not all(isinstance(limit, Limit) for limit in risk):
            raise InputError("risk should be a number or a list of Limit")
        return tuple(risk)
    return (Limit.of(risk),)


def _scope(statement: Statement | Scope | str | None, population: int | None, piloted: int) -> Scope:
    if isinstance(statement, Scope):
        if statement.piloted != piloted or population not in (None, statement.population):
            raise InputError(
                f"the scope speaks of {statement.piloted} piloted items of {statement.population}; the policies were"
                f" replayed on {piloted}"
            )
        return statement
    size = None if population is None else whole(population, "population")
    if statement is None:
        kind = Statement.FRESH if size is None else Statement.POLICY
    else:
        kind = choice(Statement, statement, "statement")
    return Scope(kind, piloted, size)


def _streams(order: Order | None, names: Sequence[str]) -> tuple[Stream, ...]:
    if order is None:
        return holm(names)
    listed: list[Any] = [order] if isinstance(order, str) else list(order)
    if all(isinstance(entry, Stream) for entry in listed) and listed:
        return tuple(listed)
    return fixed_sequence([str(entry) for entry in listed])


def _array(policy: Policy, name: str, column: str) -> NDArray[np.float64]:
    try:
        found = np.asarray(getattr(policy, column), dtype=np.float64)
    except (AttributeError, TypeError, ValueError):
        raise InputError(f"policy {name!r}: {column} should be an array of numbers over the pilot's items") from None
    if found.ndim != 1 or not np.isfinite(found).all():
        raise InputError(f"policy {name!r}: {column} should be one finite number for each item of the pilot")
    return found


def _marks(policy: Policy, name: str, column: str, length: int) -> NDArray[np.bool_]:
    given: Any = getattr(policy, column, None)
    plain = isinstance(given, np.ndarray) and given.dtype == np.bool_ and given.ndim == 1
    found: NDArray[Any] = given if plain else _array(policy, name, column)
    if len(found) != length:
        raise InputError(f"policy {name!r}: {column} has {len(found)} items, cost has {length}")
    if not plain and not np.logical_or(found == 0.0, found == 1.0).all():
        raise InputError(f"policy {name!r}: {column} should hold true or false for each item")
    return np.asarray(found, dtype=np.bool_)
