"""Published records, and redoing every figure in them from what was counted.

An audit's record holds the population's digest and size, the seed, the draws in their order, the labels and the claim; a choice's record the counts of every
policy, the limits, the statement and the order of tests. `prove_audit` and `prove_choice` trust none of the derived figures. They are total: whatever they are
given, they return what is proven or raise `Refused` with the reason.

Draws are positions in the population as it was digested, sorted by SHA-256 of digest, seed and position: the same on every machine and in every version, and of
no use for another population.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from hashlib import sha256
from itertools import pairwise
from typing import Any, ParamSpec, TypeVar

import numpy as np

from rrf_design.errors import InputError, Refused
from rrf_design.risk.arguments import choice, share, whole
from rrf_design.risk.counts import bound, guard
from rrf_design.risk.policies import AssessedPolicy, Counted, PolicyChoice, Tally, cheapest, weigh
from rrf_design.risk.procedures import Stream, check_streams, decide
from rrf_design.risk.sequences import AuditSequence
from rrf_design.risk.statements import Among, Limit, Scope, Statement

LARGEST = 10_000_000
"""Items in one record; beyond that redoing the draw is no matter of seconds, and a reader should not be made to wait by a forged figure."""
AUDIT_KEYS = ("population", "digest", "seed", "draws", "labels", "at_any_stop", "confidence", "bound")
CHOICE_KEYS = (
    *("chosen", "confidence", "statement", "piloted", "population", "depth", "sequential", "ordered_by"),
    *("limits", "streams", "policies"),
)
POLICY_KEYS = ("name", "cost", "counts", "checked_share", "delivers", "p", "level", "proven")
_NUMBER = re.compile(r"\d{1,40}(\.\d{1,40})?|\d{1,60}/\d{1,60}")

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ProvenAudit:
    """What an audit's record proves: at most `bound` of `population` items are wrong."""

    population: int
    drawn: int
    wrong: int
    bound: int
    confidence: Fraction


def draw_order(population: int, seed: int, *, digest: str, count: int | None = None) -> list[int]:
    """The first `count` positions of a random order of the population, from its digest and a recorded seed."""
    size = whole(population, "population", most=LARGEST)
    number = whole(seed, "seed")
    wanted = size if count is None else whole(count, "count", most=size)
    head = f"{digest}:{number}:".encode()
    keys = ((sha256(head + str(place).encode()).digest(), place) for place in range(size))
    if wanted < size // 8:
        import heapq

        return [place for _, place in heapq.nsmallest(wanted, keys)]
    return [place for _, place in sorted(keys)][:wanted]


def is_drawn(places: Sequence[Any], population: int, seed: Any, *, digest: str) -> bool:
    """Are these the first positions of the random order? Told without making it: a false draw mostly shows after a few looks, however large the
    population is said to be, and a true one takes no memory."""
    size, number = whole(population, "population", most=LARGEST), whole(seed, "seed")
    if any(type(place) is not int or not 0 <= place < size for place in places):
        return False
    head = f"{digest}:{number}:".encode()
    keys = [sha256(head + b"%d" % place).digest() for place in places]
    if any(first >= second for first, second in pairwise(keys)):
        return False
    drawn, last = set(places), keys[-1] if keys else b""
    return all(place in drawn or sha256(head + b"%d" % place).digest() > last for place in range(size))


def audit_bound(population: int, labels: Sequence[bool], confidence: Fraction, *, at_any_stop: bool, prior: Any) -> int:
    """The bound behind an audit's claim: valid at any stop, or for a number of draws fixed before the first label."""
    if not at_any_stop:
        return bound(population, len(labels), sum(labels), confidence)
    sequence = AuditSequence(population, confidence, prior=prior)
    for wrong in labels:
        sequence.observe(wrong)
    return sequence.bound


def audit_record(sequence: AuditSequence, labels: Sequence[bool], *, digest: str, seed: int) -> dict[str, Any]:
    """The record of an audit that was looked at while it grew; labels in the order of the draws, True for wrong."""
    if [len(labels), sum(map(bool, labels))] != [sequence.drawn, sequence.wrong]:
        raise InputError(f"{len(labels)} labels, but the sequence observed {sequence.drawn} draws")
    return {
        "population": sequence.population,
        "digest": digest,
        "seed": seed,
        "draws": draw_order(sequence.population, seed, digest=digest, count=len(labels)),
        "labels": [bool(wrong) for wrong in labels],
        "at_any_stop": True,
        "prior": list(sequence.prior),
        "confidence": written(sequence.confidence),
        "bound": sequence.bound,
    }


def choice_record(found: PolicyChoice) -> dict[str, Any]:
    """A choice as plain data: everything `prove_choice` needs, and what it will redo."""
    return {
        "chosen": found.chosen,
        "confidence": written(found.confidence),
        "statement": str(found.scope.statement),
        "piloted": found.scope.piloted,
        "population": found.scope.population,
        "depth": found.scope.depth,
        "sequential": found.sequential,
        "ordered_by": found.ordered_by,
        "limits": [
            {"share": written(limit.share), "column": limit.column, "among": str(limit.among)} for limit in found.limits
        ],
        "streams": [
            {"share": written(stream.share), "names": list(stream.names), "pooled": stream.pooled}
            for stream in found.streams
        ],
        "policies": [_policy_record(policy) for policy in found.policies],
    }


def _policy_record(policy: AssessedPolicy) -> dict[str, Any]:
    return {
        "name": policy.name,
        "cost": policy.cost,
        "counts": [
            {
                "column": count.column,
                "counted": count.counted,
                "marked": count.marked,
                **({} if count.places is None else {"places": list(count.places)}),
            }
            for count in policy.counts
        ],
        "checked_share": written(policy.checked_share),
        "delivers": policy.delivers,
        "p": policy.p,
        "level": written(policy.level),
        "proven": policy.proven,
    }


def written(value: Fraction) -> str:
    """A fraction as the decimal it is, or as a quotient where it is none."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    text = format(float(value), "f").rstrip("0").rstrip(".") if rest == 1 else ""
    return text if text and Fraction(text) == value else f"{value.numerator}/{value.denominator}"


def _total(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Malformed input is a refusal with its reason, never another error."""

    @wraps(function)
    def guarded(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except Refused:
            raise
        except InputError as error:
            raise Refused(f"the record is not sound: {error}") from None
        except KeyError as error:
            raise Refused(f"the record has no {error}") from None
        except (TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError) as error:
            raise Refused(f"the record can't be read: {type(error).__name__}, {error}") from None

    return guarded


@_total
def prove_audit(record: Mapping[str, Any]) -> ProvenAudit:
    """Redo the draw and the bound of an audit; Refused where the record says anything else."""
    record = _keyed(record, AUDIT_KEYS, maybe=("planned", "prior"))
    size = whole(record["population"], "population", most=LARGEST)
    labels = [_flag(label, "a label") for label in _list(record["labels"], "labels")]
    draws = _list(record["draws"], "draws")
    if len(draws) != len(labels):
        raise Refused(f"{len(draws)} draws and {len(labels)} labels")
    if len(draws) > size:
        raise Refused(f"{len(draws)} draws without replacement from {size} items")
    digest = record["digest"]
    if not isinstance(digest, str) or not digest:
        raise Refused("the population's digest is missing")
    if not is_drawn(draws, size, record["seed"], digest=digest):
        raise Refused("seed and digest draw other items than the record names")
    confidence = share(_fraction(record["confidence"], "confidence"), "confidence")
    any_stop = _flag(record["at_any_stop"], "at_any_stop")
    if not any_stop and whole(record["planned"], "planned") != len(draws):
        raise Refused(f"a bound for {record['planned']} draws fixed beforehand, but {len(draws)} were made")
    found = audit_bound(size, labels, confidence, at_any_stop=any_stop, prior=record.get("prior"))
    claimed = whole(record["bound"], "bound", most=size)
    if claimed < found:
        raise Refused(f"the record claims at most {claimed} wrong items; its draws prove at most {found}")
    return ProvenAudit(size, len(draws), sum(labels), found, confidence)


@_total
def prove_choice(record: Mapping[str, Any]) -> PolicyChoice:
    """Redo every test of a choice from its counts; Refused where a p-value, a level, a proof or the choice differs."""
    record = _keyed(record, CHOICE_KEYS)
    population = record["population"]
    scope = Scope(
        choice(Statement, record["statement"], "statement"),
        whole(record["piloted"], "piloted", most=LARGEST),
        None if population is None else whole(population, "population", most=10**9),
        whole(record["depth"], "depth"),
    )
    limits = tuple(_limit(entry) for entry in _list(record["limits"], "limits"))
    if not limits:
        raise Refused("the record names no limit")
    sequential = _flag(record["sequential"], "sequential")
    if sequential and scope.statement is not Statement.FRESH:
        raise Refused(f"a sequential test speaks of fresh items, not of {str(scope.statement)!r}")
    confidence = share(_fraction(record["confidence"], "confidence"), "confidence")
    streams = tuple(_stream(entry) for entry in _list(record["streams"], "streams"))
    said = [_policy(entry, limits, scope, sequential) for entry in _list(record["policies"], "policies")]
    names = [policy.name for policy in said]
    if len(set(names)) != len(names):
        raise Refused("two policies of the record have the same name")
    check_streams(streams, names)
    counted = [Counted(policy.counts, policy.checked_share, policy.delivers) for policy in said]
    evidence = dict(zip(names, weigh(counted, limits, scope, sequential=sequential), strict=True))
    decisions = decide(evidence, streams, 1 - confidence)
    for policy in said:
        again = decisions[policy.name]
        p = evidence[policy.name].claim.value
        if not math.isclose(policy.p, p, rel_tol=guard(scope.population or scope.piloted), abs_tol=1e-300):
            raise Refused(f"policy {policy.name!r}: the record says p = {policy.p}, its counts give {p}")
        if (policy.level, policy.proven) != (again.level, again.proven):
            raise Refused(
                f"policy {policy.name!r}: the record says proven = {policy.proven} at level {policy.level}; the procedure gives {again.proven} at {again.level}"
            )
    chosen = cheapest(said)
    if record["chosen"] != chosen:
        raise Refused(f"the record chooses {record['chosen']!r}; the cheapest proven policy is {chosen!r}")
    return PolicyChoice(chosen, tuple(said), limits, scope, confidence, streams, str(record["ordered_by"]), sequential)


def _policy(entry: Any, limits: Sequence[Limit], scope: Scope, sequential: bool) -> AssessedPolicy:
    fields = _keyed(entry, POLICY_KEYS)
    counts = tuple(_count(count, sequential) for count in _list(fields["counts"], "counts"))
    if [count.column for count in counts] != [limit.column for limit in limits]:
        raise Refused(f"policy {fields['name']!r}: its counts are not those of the limits")
    for count, limit in zip(counts, limits, strict=True):
        if count.counted > scope.piloted or (limit.among is Among.ALL and count.counted != scope.piloted):
            raise Refused(f"policy {fields['name']!r}: {count.counted} counted of {scope.piloted} piloted items")
    if any(type(fields[key]) not in (int, float) for key in ("cost", "p")):
        raise Refused(f"policy {fields['name']!r}: cost and p should be numbers")
    cost, p = float(fields["cost"]), float(fields["p"])
    if not math.isfinite(cost):
        raise Refused(f"policy {fields['name']!r}: its cost is {cost}")
    if not isinstance(fields["name"], str):
        raise Refused(f"a policy is called {fields['name']!r}")
    delivers = fields["delivers"]
    if delivers is not None:
        least = max(count.counted for count in counts)
        delivers = whole(delivers, "delivers", least=least, most=scope.population)
    part = share(_fraction(fields["checked_share"], "checked_share"), "checked_share", zero=True)
    level = _fraction(fields["level"], "level")
    return AssessedPolicy(fields["name"], cost, counts, p, level, _flag(fields["proven"], "proven"), part, delivers)


def _count(entry: Any, sequential: bool) -> Tally:
    fields = _keyed(entry, ("column", "counted", "marked", *(("places",) if sequential else ())))
    counted = whole(fields["counted"], "counted", most=LARGEST)
    marked = whole(fields["marked"], "marked", most=counted)
    if not sequential:
        return Tally(str(fields["column"]), counted, marked)
    places = tuple(whole(place, "a place", most=counted - 1) for place in _list(fields["places"], "places"))
    if len(places) != marked or any(np.diff(places) <= 0):
        raise Refused(f"{marked} marked items, but their places are {list(places)[:5]}")
    return Tally(str(fields["column"]), counted, marked, places)


def _limit(entry: Any) -> Limit:
    fields = _keyed(entry, ("share", "column", "among"))
    return Limit.of(
        _fraction(fields["share"], "a limit's share"), column=str(fields["column"]), among=str(fields["among"])
    )


def _stream(entry: Any) -> Stream:
    fields = _keyed(entry, ("share", "names", "pooled"))
    names = tuple(str(name) for name in _list(fields["names"], "names"))
    return Stream(_fraction(fields["share"], "a stream's share"), names, _flag(fields["pooled"], "pooled"))


def _keyed(value: Any, known: Sequence[str], *, maybe: Sequence[str] = ()) -> Mapping[str, Any]:
    """With these keys and no others: what nobody checks is no part of a record."""
    if not isinstance(value, Mapping):
        raise Refused(f"a record should be a mapping, not {type(value).__name__}")
    unknown = next((key for key in value if key not in known and key not in maybe), None)
    if unknown is not None:
        raise Refused(f"{unknown!r:.40} is no part of a record")
    return value


def _list(value: Any, name: str) -> Sequence[Any]:
    if not isinstance(value, (list, tuple)) or len(value) > LARGEST:
        raise Refused(f"{name} should be a list")
    return value


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise Refused(f"{name} should be true or false, not {value!r}")
    return value


def _fraction(value: Any, name: str) -> Fraction:
    """Decimals or a quotient, of bounded length: a forged exponent must not cost the reader's memory."""
    text = str(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else ""
    if not _NUMBER.fullmatch(text):
        raise Refused(f"{name} should be a plain number, not {str(value)[:40]!r}")
    return Fraction(text)
