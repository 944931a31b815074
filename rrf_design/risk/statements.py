"""What exactly is promised about a policy, and the test of each promise (docs/algorithms.md, fact 32).

N items, n of them piloted, K wrong under the policy among all N, x of them seen in the pilot (and corrected):

    fresh    R ≤ r              the rate of items drawn like the pilot's              P(Bin(n, r) ≤ x)
    policy   K ≤ r N            the policy's risk over this data set                  P(Hyp(N, ⌊rN⌋ + 1, n) ≤ x)
    file     K − x ≤ r N        wrong rows in the delivered file, pilot rows right    P(Hyp(N, ⌊rN⌋ + 1 + x, n) ≤ x)
    rest     K − x ≤ r (N − n)  the rate among the rows that were not piloted         P(Hyp(N, ⌊r(N − n)⌋ + 1 + x, n) ≤ x)

Why the last two are p-values: whether the statement holds depends on x itself. With t the first forbidden excess, an error means X ≤ min(x, K − t);
one more wrong item and one more allowed sighting can only raise that probability, so K = t + x is the worst case.

Why a sequence of such tests has a gate: its usual proof looks at the first policy whose null is true, and that must not depend on the draw. "K ≥ t" does
not. So a procedure goes on past a policy only where P(Hyp(N, t, n) ≤ x) is small enough as well; both errors are lower sets of X, so together they
are no larger than one of them. For `fresh` and `policy` gate and claim are the same.

That gate is dear where the pilot shows several wrong items. A depth d, fixed before looking, makes it easier: the procedure goes on where P(Hyp(N, t + d, n) ≤ x) is small
enough, and claims only with x ≥ d. A policy with K < t + d is then never claimed falsely, because K − x < t; for the first with K ≥ t + d both errors
are lower sets of X again. Cautious policies, which show fewer than d wrong items, are passed over without a claim.

`rest` among the delivered has one trap more: how many delivered rows lie outside the pilot is itself drawn, and with it t. Its gate takes the t of a pilot that holds
more of them than chance allows (four standard deviations), which depends on sizes alone; where the pilot holds still more, a claim needs as many wrong
items seen as t has fallen below that. So a policy below the gate's t is never claimed falsely, whatever was drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from rrf_design.errors import InputError
from rrf_design.risk.arguments import Number, choice, share, whole
from rrf_design.risk.counts import IMPOSSIBLE, BinomialTail, CertainTail, HypergeometricTail, LargestTail, PValue
from rrf_design.risk.worst_cases import UnknownSize, worst_tails


class Statement(StrEnum):
    """Which items a promise speaks of."""

    FRESH = "fresh"
    POLICY = "policy"
    FILE = "file"
    REST = "rest"


class Among(StrEnum):
    """The denominator: what the policy delivers, or all items."""

    DELIVERED = "delivered"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Limit:
    """At most this share of the denominator may be marked in the policy's array `column`."""

    share: Fraction
    column: str = "wrong"
    among: Among = Among.DELIVERED

    def __post_init__(self) -> None:
        # Nothing exceeds 1: where many are checked at random, a large risk is no limit at all for the others.
        object.__setattr__(self, "share", Fraction(1) if self.share == 1 else share(self.share, "risk", zero=True))
        # A plain text equals a member and is none: what is asked for by identity further on would be passed over in silence.
        object.__setattr__(self, "among", choice(Among, self.among, "among"))

    @classmethod
    def of(cls, value: Number, *, column: str = "wrong", among: Among | str = Among.DELIVERED) -> Limit:
        """The same from a number as its decimals say it, and from the name of the denominator."""
        return cls(share(value, "risk", zero=True), column, choice(Among, among, "among"))


@dataclass(frozen=True, slots=True)
class Scope:
    """The statement with the sizes it needs: all items, and how many were piloted."""

    statement: Statement
    piloted: int
    population: int | None = None
    depth: int = 0
    """For `file` and `rest`: the least number of wrong items in the pilot with which a claim is wanted, fixed before looking (see the module's docstring)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "statement", choice(Statement, self.statement, "statement"))
        whole(self.piloted, "piloted")
        whole(self.depth, "depth", most=self.piloted)
        if self.depth and self.statement not in (Statement.FILE, Statement.REST):
            raise InputError(f"a depth of {self.depth} means nothing for the statement {str(self.statement)!r}")
        if self.statement is not Statement.FRESH and self.population is None:
            raise InputError(f"statement {str(self.statement)!r} speaks of a finite data set; give population=")
        if self.population is not None and whole(self.population, "population") < self.piloted:
            raise InputError(f"population is {self.population}, but {self.piloted} items were piloted")


@dataclass(frozen=True, slots=True)
class ClaimAndGate:
    """Two p-values of one policy and limit: to claim the promise, and to go on to the next policy."""

    claim: PValue
    gate: PValue


@dataclass(frozen=True, slots=True)
class Sighting:
    """`marked` of `counted` items in the denominator of a limit. `delivers`: how many of all items the policy delivers, where that is known (all of
    them for a ladder that ends in a check)."""

    limit: Limit
    counted: int
    marked: int
    delivers: int | None = None


def evidence(limit: Limit, scope: Scope, counted: int, marked: int, delivers: int | None = None) -> ClaimAndGate:
    """The p-values for `marked` of `counted` items in the denominator. An empty denominator proves nothing."""
    return evidences([Sighting(limit, counted, marked, delivers)], scope)[0]


def evidences(seen: Sequence[Sighting], scope: Scope) -> list[ClaimAndGate]:
    """The same for many at once, which is much quicker where a denominator is not known."""
    found = {place: _known_evidence(one, scope) for place, one in enumerate(seen)}
    unknown: dict[Fraction, list[int]] = {}
    for place, known in found.items():
        if known is None:
            unknown.setdefault(seen[place].limit.share, []).append(place)
    for rate, places in unknown.items():
        parts = _unknown(rate, scope, [(seen[place].counted, seen[place].marked) for place in places])
        found.update(zip(places, parts, strict=True))
    return [part for part in found.values() if part is not None]


def _known_evidence(one: Sighting, scope: Scope) -> ClaimAndGate | None:
    """None where the denominator is not known."""
    if one.counted == 0:
        return ClaimAndGate(CertainTail(), CertainTail())
    if scope.statement is Statement.FRESH:
        tail: PValue = BinomialTail(one.counted, one.limit.share, one.marked)
        return ClaimAndGate(tail, tail)
    size = scope.population if one.limit.among is Among.ALL else one.delivers
    return None if size is None else _known(one.limit.share, scope, size, one.counted, one.marked)


def together(parts: Sequence[ClaimAndGate]) -> ClaimAndGate:
    """Several limits at once: a promise about all of them is proven when each is, and needs no correction (intersection-union).

    That argument needs nulls that don't depend on the draw, so with several limits nothing is claimed that does not pass the gates (and a depth, with
    which a gate claims nothing, is refused by whoever calls this); nor what a single limit would not claim for too few wrong items seen.
    """
    if len(parts) == 1:
        return parts[0]
    gates = tuple(part.gate for part in parts)
    return ClaimAndGate(LargestTail((*gates, *(part.claim for part in parts))), LargestTail(gates))


def _known(rate: Fraction, scope: Scope, size: int, drawn: int, seen: int) -> ClaimAndGate:
    """The denominator holds `size` items."""
    first = steady = _forbidden(rate, size)
    if scope.statement is Statement.REST:
        first, steady = _forbidden(rate, size - drawn), _forbidden(rate, size - _most_drawn(scope, size))
    gate = _tail(size, steady + scope.depth, drawn, seen)
    if scope.statement is Statement.POLICY:
        return ClaimAndGate(gate, gate)
    claimable = seen >= scope.depth + max(0, steady - first)
    return ClaimAndGate(_tail(size, first + seen, drawn, seen) if claimable else CertainTail(), gate)


def _most_drawn(scope: Scope, size: int) -> int:
    """How many of `size` items a pilot can be expected to hold at most: known before the draw, and exact where all items count."""
    assert scope.population is not None
    part = scope.piloted / scope.population
    spread = math.sqrt(scope.piloted * (size / scope.population) * (1 - size / scope.population) * (1 - part))
    return min(scope.piloted, size, math.ceil(round(scope.piloted * size / scope.population + 4 * spread, 9)))


def _forbidden(rate: Fraction, size: int) -> int:
    return int(rate * size) + 1


def _tail(size: int, wrong: int, drawn: int, seen: int) -> PValue:
    """A number of wrong items that can't be (more than there are items, or than the right ones seen leave room for) is refuted by itself."""
    if wrong > size - (drawn - seen):
        return IMPOSSIBLE
    return HypergeometricTail(size, wrong, drawn, seen)


def _unknown(rate: Fraction, scope: Scope, counts: Sequence[tuple[int, int]]) -> list[ClaimAndGate]:
    """How many of all items the policies deliver is not known: the worst case over every number that the pilot allows (`worst_cases`)."""
    assert scope.population is not None
    if scope.statement is Statement.REST:
        raise InputError(
            "a rate among the delivered rows outside the pilot can't be proven while their number is unknown; say `delivers` for each policy, or among='all'"
        )
    most = scope.population - scope.piloted
    gates = [UnknownSize(drawn, seen, most + drawn, scope.depth) for drawn, seen in counts]
    if scope.statement is Statement.POLICY:
        return [ClaimAndGate(tail, tail) for tail in worst_tails(rate, gates)]
    claims = [UnknownSize(drawn, seen, most + drawn, seen) for drawn, seen in counts]
    found = worst_tails(rate, [*gates, *claims])
    return [
        ClaimAndGate(claim if seen >= scope.depth else CertainTail(), gate)
        for (_, seen), gate, claim in zip(counts, found[: len(counts)], found[len(counts) :], strict=True)
    ]
