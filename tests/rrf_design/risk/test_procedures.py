"""Procedures against MAPIE's Holm and fixed sequences, and against the two conditions that make
them valid.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from mapie.risk_control.fwer_control import control_fwer

from rrf_design.errors import InputError
from rrf_design.risk import Among, Limit, Scope, Statement, Stream, fixed_sequence, holm
from rrf_design.risk._policies import _check_streams, decide
from rrf_design.risk._statements import ClaimAndGate
from rrf_design.risk._statements import evidence as evidence_of

ALPHA = Fraction(1, 20)


@dataclass(frozen=True, slots=True)
class Plain:
    value: float

    def at_most(self, level: Fraction) -> bool:
        return self.value <= float(level)


def evidence(values: list[float]) -> dict[str, ClaimAndGate]:
    return {f"p{i}": ClaimAndGate(Plain(v), Plain(v)) for i, v in enumerate(values)}


def proven(values: list[float], streams: tuple[Stream, ...]) -> list[int]:
    found = decide(evidence(values), streams, ALPHA)
    return [i for i in range(len(values)) if found[f"p{i}"].proven]


def draws(count: int, seed: int) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    return [(rng.random(12) ** 4).tolist() for _ in range(count)]


def test_holm_agrees_with_mapie() -> None:
    for values in draws(200, 1):
        expected = control_fwer(np.array(values), float(ALPHA), "bonferroni_holm").tolist()
        assert proven(values, holm([f"p{i}" for i in range(12)])) == expected


def test_a_fixed_sequence_agrees_with_mapie() -> None:
    for values in draws(200, 2):
        expected = control_fwer(np.array(values), float(ALPHA), "fixed_sequence").tolist()
        assert proven(values, fixed_sequence([f"p{i}" for i in range(12)])) == expected


def test_two_chains_find_at_least_what_two_separate_sequences_find() -> None:
    """A chain that is through hands its level on, so together they find no less, and sometimes
    more.
    """
    names = [f"p{i}" for i in range(12)]
    streams = (Stream(Fraction(1, 2), tuple(names[:1])), Stream(Fraction(1, 2), tuple(names[1:])))
    more = 0
    for values in draws(300, 3):
        separate = {
            *control_fwer(np.array(values[:1]), float(ALPHA / 2), "fixed_sequence").tolist(),
            *(1 + i for i in control_fwer(np.array(values[1:]), float(ALPHA / 2), "fixed_sequence").tolist()),
        }
        ours = set(proven(values, streams))
        assert ours >= separate
        more += ours > separate
    assert more > 0


def plain_decide(found: dict[str, ClaimAndGate], streams: tuple[Stream, ...], alpha: Fraction) -> set[str]:
    """The definition, without state: levels as a function of the rejected set, until nothing more
    is rejected.
    """

    def levels(rejected: set[str]) -> dict[str, Fraction]:
        rest = [[n for n in s.names if n not in rejected] for s in streams]
        live = [i for i, names in enumerate(rest) if names]
        given = dict.fromkeys(found, Fraction(0))
        for i in live:
            amount = streams[i].share * alpha
            if i == live[0]:
                amount += sum((s.share * alpha for j, s in enumerate(streams) if j not in live), Fraction(0))
            for name in rest[i] if streams[i].pooled else rest[i][:1]:
                given[name] += amount / len(rest[i]) if streams[i].pooled else amount
        return given

    rejected: set[str] = set()
    while True:
        more = {n for n, a in levels(rejected).items() if n not in rejected and a > 0 and found[n].gate.at_most(a)}
        if not more:
            return rejected
        rejected |= more


def test_mixed_streams_agree_with_the_definition() -> None:
    names = tuple(f"p{i}" for i in range(12))
    rng = np.random.default_rng(9)
    for values in draws(300, 5):
        cut = sorted(rng.choice(range(1, 10), size=2, replace=False).tolist())
        shares = [Fraction(cut[0], 10), Fraction(cut[1] - cut[0], 10), Fraction(10 - cut[1], 10)]
        streams = tuple(
            Stream(part, tuple(rng.permutation(names)[: rng.integers(1, 13)].tolist()), bool(rng.random() < 0.4))
            for part in shares
        )
        found = decide(evidence(values), streams, ALPHA)
        assert {name for name, d in found.items() if d.proven} == plain_decide(evidence(values), streams, ALPHA)


def test_levels_of_what_is_left_never_sum_to_more_than_alpha() -> None:
    names = tuple(f"p{i}" for i in range(12))
    streams = (
        Stream(Fraction(1, 2), names[:5]),
        Stream(Fraction(1, 4), names[3:9]),
        Stream(Fraction(1, 4), names, pooled=True),
    )
    for values in draws(200, 4):
        found = decide(evidence(values), streams, ALPHA)
        left = [d.level for d in found.values() if not d.proven]
        assert sum(left, Fraction(0)) <= ALPHA


def test_all_true_nulls_are_rejected_rarely_enough() -> None:
    """Uniform p-values, independent: the family-wise error of mixed streams, by simulation (4
    standard errors allowed).
    """
    rng = np.random.default_rng(6)
    names = tuple(f"p{i}" for i in range(6))
    streams = (
        Stream(Fraction(2, 5), names[:3]),
        Stream(Fraction(1, 5), names[::-1]),
        Stream(Fraction(2, 5), names, True),
    )
    wrong = sum(bool(proven(rng.random(6).tolist(), streams)) for _ in range(2000))
    assert wrong / 2000 <= 0.05 + 4 * (0.05 * 0.95 / 2000) ** 0.5


def populations(items: int, kinds: int) -> Iterator[tuple[int, ...]]:
    """Every way to have so many items of so many kinds."""
    for cuts in itertools.combinations(range(items + kinds - 1), kinds - 1):
        edges = (-1, *cuts, items + kinds - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(edges))


def samples(population: tuple[int, ...], drawn: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Every draw, with the number of ways to make it."""
    for sample in itertools.product(*(range(min(drawn, held) + 1) for held in population)):
        if sum(sample) == drawn:
            yield sample, math.prod(map(math.comb, population, sample))


@pytest.mark.parametrize(
    "streams",
    [
        fixed_sequence(["a", "b"]),
        holm(["a", "b"]),
        (
            Stream(Fraction(1, 2), ("a", "b")),
            Stream(Fraction(1, 4), ("b", "a")),
            Stream(Fraction(1, 4), ("a", "b"), True),
        ),
    ],
    ids=["chain", "pool", "mixed"],
)
@pytest.mark.parametrize(("statement", "depth"), [("policy", 0), ("file", 0), ("file", 1), ("rest", 0), ("rest", 1)])
def test_of_every_population_and_every_draw_few_enough_end_in_a_false_claim(
    streams: tuple[Stream, ...], statement: str, depth: int
) -> None:
    """Two policies over eight items, each right or wrong of each: all 165 populations, all draws of
    four, the error summed in rationals.
    """
    population, drawn, alpha = 8, 4, Fraction(1, 4)
    kinds = list(itertools.product((0, 1), repeat=2))
    limit, scope = Limit.of(Fraction(1, 4), among=Among.ALL), Scope(Statement(statement), drawn, population, depth)
    base = population - drawn if statement == "rest" else population
    found = [evidence_of(limit, scope, drawn, x) for x in range(drawn + 1)]
    outcome = {
        seen: [
            d.proven for d in decide({n: found[x] for n, x in zip("ab", seen, strict=True)}, streams, alpha).values()
        ]
        for seen in itertools.product(range(drawn + 1), repeat=2)
    }
    largest = Fraction(0)
    for held in populations(population, len(kinds)):
        truth = np.array(held) @ np.array(kinds)
        false = 0
        for sample, ways in samples(held, drawn):
            seen = np.array(sample) @ np.array(kinds)
            left = truth if statement == "policy" else truth - seen
            claimed = outcome[int(seen[0]), int(seen[1])]
            false += ways * any(said and int(k) > limit.share * base for said, k in zip(claimed, left, strict=True))
        largest = max(largest, Fraction(false, math.comb(population, drawn)))
    assert largest <= alpha
    assert largest > 0 or statement == "rest"


def test_a_closed_gate_stops_the_chain_but_not_the_claim() -> None:
    found = decide(
        {"a": ClaimAndGate(Plain(0.01), Plain(0.2)), "b": ClaimAndGate(Plain(0.0), Plain(0.0))},
        fixed_sequence(["a", "b"]),
        ALPHA,
    )
    assert found["a"].proven
    assert not found["b"].proven
    assert found["b"].level == 0


def test_what_is_in_no_stream_is_never_proven() -> None:
    found = decide(evidence([0.0, 0.0]), fixed_sequence(["p0"]), ALPHA)
    assert found["p0"].proven
    assert not found["p1"].proven


@pytest.mark.parametrize(
    ("streams", "words"),
    [
        ((Stream(Fraction(1), ("x",)),), "there is no policy 'x'"),
        ((Stream(Fraction(1), ("a", "a")),), "policy 'a' stands in it twice"),
        ((Stream(Fraction(2, 3), ("a",)), Stream(Fraction(2, 3), ("b",))), "sum to more than 1"),
        ((Stream(Fraction(-1), ("a",)),), "is negative"),
    ],
)
def test_bad_streams_are_one_line(streams: tuple[Stream, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        _check_streams(streams, ["a", "b"])
