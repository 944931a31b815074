"""Many policies, one error probability: sequences, Holm's method, and both side by side (docs/algorithms.md, facts 23 and 33).

A procedure is a list of streams, each with a share of the error probability. A chain gives its level to the first of its names that is not rejected
yet; a pool (Holm) divides it equally among those of its names. A stream with nothing left gives its level to the first that has something. A name is
tested at the sum of what points at it.

Why this is valid: for a name that is not rejected, its level can only grow while others are rejected (a chain that points at it stays there, a pool
gets smaller, the first live stream stays the first), and levels never sum to more than α. These are the two conditions of the sequential rejection
principle (Goeman and Solari 2010). Holm is one pool; a fixed sequence is one chain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from rrf_design.errors import InputError
from rrf_design.risk.statements import ClaimAndGate


@dataclass(frozen=True, slots=True)
class Stream:
    """A share of the error probability and the names it is for: in this order (a chain), or all at once (a pool)."""

    share: Fraction
    names: tuple[str, ...]
    pooled: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one name: the level at which it was last looked at (0: never), and whether it was proven."""

    level: Fraction
    proven: bool


def holm(names: Sequence[str]) -> tuple[Stream, ...]:
    return (Stream(Fraction(1), tuple(names), pooled=True),)


def fixed_sequence(names: Sequence[str]) -> tuple[Stream, ...]:
    return (Stream(Fraction(1), tuple(names)),)


def check_streams(streams: Sequence[Stream], names: Sequence[str]) -> None:
    """InputError for an unknown or repeated name, or shares that are no division of one error probability."""
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


def decide(evidence: Mapping[str, ClaimAndGate], streams: Sequence[Stream], alpha: Fraction) -> dict[str, Decision]:
    """Run the procedure on the gates, then claim what its own level allows where it stopped."""
    state = _State(evidence, streams, alpha)
    found: dict[str, Decision] = {}
    while True:
        levels = {name: state.level(name) for name in state.heads()}
        passed = [name for name, level in levels.items() if evidence[name].gate.at_most(level)]
        if not passed:
            break
        for name in passed:
            found[name] = Decision(levels[name], evidence[name].claim.at_most(levels[name]))
            state.reject(name)
    for name in evidence.keys() - found.keys():
        level = state.level(name)
        found[name] = Decision(level, level > 0 and evidence[name].claim.at_most(level))
    return {name: found[name] for name in evidence}


class _State:
    """Where every stream stands, for the names rejected so far."""

    def __init__(self, evidence: Mapping[str, ClaimAndGate], streams: Sequence[Stream], alpha: Fraction) -> None:
        self.pooled = [stream.pooled for stream in streams]
        # In a pool the smallest p-value is looked at first; a float's last digits are harmless, because a later name has at least an earlier one's level.
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
