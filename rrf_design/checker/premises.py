"""The `protection` section of a certificate: what k counts, what is delivered, which checks may be
wrong.

Its lists are checked against the operator, and every claim that depends on them is made from here:
what the witness shows (‖Bh‖ over the rows of the blocks that are not set aside, ‖h‖ over what is
delivered), and what is to be proved of all others.

The `rivals` of a certificate are two explanations of one measurement that nobody can tell apart,
checked in rational arithmetic. Each has at most k wrong units (and at most a wrong suspects, whose
rows it disturbs by u). The measurement is the mean of what the two predict, so either misses it by
½‖B(e₁ − e₂) + u₁ − u₂‖, which must be at most ε, and nothing where a row carries no noise. They
differ by ‖(e₁ − e₂)_D‖ in what is delivered: no method can promise an error of less than half of
that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rrf_design.checker._protection import ProtectionClaim
from rrf_design.checker._tails import at_most, is_drawn, refutes
from rrf_design.checker.exact import squared_image, squared_norm
from rrf_design.checker.promise_words import percent_above, plain_percent
from rrf_design.checker.record import OperatorRecord
from rrf_design.errors import Refused


@dataclass(frozen=True)
class Premises:
    """A section that fits its operator."""

    record: OperatorRecord
    units: tuple[tuple[int, ...], ...]
    deliver: tuple[int, ...]
    wrong_checks: int
    suspects: frozenset[int]
    wrong: tuple[int, ...]
    """Blocks that are set aside for the witness."""

    @classmethod
    def read(cls, section: dict[str, Any], record: OperatorRecord) -> Premises:
        """Refused unless units part the nodes, at least one node is delivered, and only suspects
        are set aside.
        """
        units = tuple(tuple(_places(unit, record.node_index, "protection.units")) for unit in section["units"])
        named = sorted(i for unit in units for i in unit)
        if named != list(range(len(record.node_ids))) or not all(units):
            raise Refused("protection.units: must name every node of the operator exactly once")
        deliver = tuple(_places(section["deliver"], record.node_index, "protection.deliver"))
        if not deliver:
            raise Refused("protection.deliver: is empty")
        blocks = {name: j for j, name in enumerate(record.block_ids)}
        suspects = frozenset(_places(section["suspects"], blocks, "protection.suspects"))
        wrong = tuple(_places(section["wrong"], blocks, "protection.wrong"))
        if section["wrong_checks"] < 0:
            raise Refused("protection.wrong_checks: must be at least 0")
        if len(wrong) > 2 * section["wrong_checks"] or not suspects.issuperset(wrong):
            raise Refused("protection.wrong: must name suspects, and at most twice as many as may be wrong")
        if "rates" in section:
            _check_rates(section["rates"], section["wrong_checks"])
        return cls(record, units, deliver, section["wrong_checks"], suspects, wrong)

    @property
    def whole(self) -> bool:
        """Whether everything is delivered."""
        return len(self.deliver) == len(self.record.node_ids)

    def count(self, nodes: list[int]) -> int:
        """Units that these nodes belong to."""
        chosen = set(nodes)
        return sum(not chosen.isdisjoint(unit) for unit in self.units)

    def claim(self, size: int, floor: float, *, everything: bool = False) -> ProtectionClaim:
        """What is to be proved; `everything`: as if every node were delivered."""
        record = self.record
        inside = range(len(record.node_ids)) if everything else self.deliver
        return ProtectionClaim(
            matrix=record.matrix,
            units=tuple(record.columns_of(list(unit)) for unit in self.units),
            deliver=record.columns_of(list(inside)),
            size=size,
            floor=floor,
            suspect_of=self._block_of_rows(self.suspects),
            removed=2 * self.wrong_checks,
        )

    def quotient(self, nodes: list[int], vector: list[float]) -> tuple[Fraction, Fraction]:
        """‖Bh‖² without the blocks that are set aside, and ‖h_D‖², exactly."""
        record, wanted = self.record, set(self.deliver)
        sizes = [int(record.node_sizes[i]) for i in nodes]
        inside = np.repeat([i in wanted for i in nodes], sizes)
        kept = np.flatnonzero(self._block_of_rows(frozenset(self.wrong)) < 0)
        part = record.by_column[:, record.columns_of(nodes)].tocsr()[kept].tocsc()
        return squared_image(part, vector), squared_norm([x for x, one in zip(vector, inside, strict=True) if one])

    def _block_of_rows(self, blocks: frozenset[int]) -> NDArray[np.int64]:
        """(rows,): the block of each row where it is one of these, else −1."""
        owner = np.repeat(np.arange(len(self.record.block_ids)), self.record.block_sizes)
        return np.where(np.isin(owner, sorted(blocks)), owner, -1)


def _check_rates(entry: dict[str, Any], wrong_checks: int) -> None:
    """That no more checks are wrong than is allowed for, with the stated probability."""
    if not entry["rates"] or not all(0.0 < rate < 1.0 for rate in entry["rates"]):
        raise Refused("protection.rates.rates: must be probabilities")
    if not 0 <= entry["most"] <= min(wrong_checks, len(entry["rates"])):
        raise Refused("protection.rates.most: is more than may be wrong")
    if not 0.0 < entry["confidence"] <= 1.0 or Fraction(entry["confidence"]) > at_most(entry["rates"], entry["most"]):
        raise Refused("protection.rates.confidence: is more than the rates allow")


def _places(names: list[str], known: Any, where: str) -> list[int]:
    found = [known.get(name, -1) for name in names]
    if -1 in found or len(set(found)) != len(found):
        raise Refused(f"{where}: must name different entries of the operator")
    return found


Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Apart:
    """What two explanations differ by, exactly."""

    image2: Fraction
    """‖B(e₁ − e₂) + u₁ − u₂‖²."""
    quiet2: Fraction
    """The same over the rows that carry no noise."""
    delivered2: Fraction
    """‖(e₁ − e₂)_D‖²."""


def measure(claim: Document, record: OperatorRecord, premises: Premises | None, noisy: list[str] | None) -> _Apart:
    """Of a section that fits the operator; `noisy` names the blocks that carry noise, None for
    all.
    """
    blocks = _block_index(record)
    wanted = None if premises is None else {record.node_ids[i] for i in premises.deliver}
    nodes: list[int] = []
    rows: list[int] = []
    delivered: list[float] = []
    errors: list[float] = []
    disturbances: list[float] = []
    starts = np.concatenate([[0], np.cumsum(record.block_sizes)])
    for side, sign in (("first", 1.0), ("second", -1.0)):
        part = claim[side]
        for name, values in zip(part["support"], part["direction"], strict=True):
            nodes.append(record.node_index[name])
            errors.extend(sign * x for x in values)
            delivered.extend(values if wanted is None or name in wanted else [])
        for name, values in zip(part["checks"], part["disturbance"], strict=True):
            rows.extend(range(int(starts[blocks[name]]), int(starts[blocks[name] + 1])))
            disturbances.extend(sign * x for x in values)
    unit = sparse.csc_array((np.ones(len(rows)), (rows, range(len(rows)))), shape=(record.rows, len(rows)))
    columns = sparse.hstack([record.by_column[:, record.columns_of(nodes)], unit]).tocsc()
    loud = set(record.block_ids if noisy is None else noisy)
    quiet = np.flatnonzero(np.repeat([name not in loud for name in record.block_ids], record.block_sizes))
    vector = [*errors, *disturbances]
    return _Apart(
        squared_image(columns, vector),
        squared_image(columns.tocsr()[quiet].tocsc(), vector) if len(quiet) else Fraction(0),
        squared_norm(delivered),
    )


def check_rivals(document: Document, record: OperatorRecord, premises: Premises | None) -> str:
    """Refused unless both explanations are admissible and as far apart as is said."""
    claim = document["rivals"]
    if claim is None:
        return "no claim"
    for side in ("first", "second"):
        _check_side(
            claim[side], record, premises, int(document["k"]), f"rivals.{side}", document["error"]["largest_error"]
        )
    first, second = claim["first"], claim["second"]
    if not (set(first["support"]).isdisjoint(second["support"]) and set(first["checks"]).isdisjoint(second["checks"])):
        raise Refused("rivals: the two must blame different answers and checks")
    noise = document["noise"]
    apart = measure(claim, record, premises, noise["blocks"])
    residual, distance = Fraction(claim["residual"]), Fraction(claim["distance"])
    if residual < 0 or 4 * residual**2 < apart.image2:
        raise Refused("rivals.residual: is smaller than what the two leave unexplained")
    if residual > Fraction(noise["epsilon"] or 0.0):
        raise Refused("rivals.residual: is more than the noise radius, so they are not admissible")
    if apart.quiet2 != 0:
        raise Refused("rivals: they differ in rows that carry no noise")
    if not distance > 0 or distance**2 > apart.delivered2:
        raise Refused("rivals.distance: is more than what the two differ by")
    return f"two explanations within the radius, {claim['distance']!r} apart"


def _check_side(
    part: Document, record: OperatorRecord, premises: Premises | None, k: int, where: str, largest: float | None
) -> None:
    nodes = [record.node_index.get(name, -1) for name in part["support"]]
    if -1 in nodes or len(set(nodes)) != len(nodes):
        raise Refused(f"{where}.support: must name different nodes of the operator")
    if (len(nodes) if premises is None else premises.count(nodes)) > k:
        raise Refused(f"{where}.support: more is wrong than k = {k} allows")
    if [len(x) for x in part["direction"]] != [int(record.node_sizes[i]) for i in nodes]:
        raise Refused(f"{where}.direction: does not fit its nodes")
    if largest is not None and squared_norm([x for one in part["direction"] for x in one]) > Fraction(largest) ** 2:
        raise Refused(f"{where}.direction: is larger than the largest error")
    index = _block_index(record)
    blocks = [index.get(name, -1) for name in part["checks"]]
    allowed = frozenset() if premises is None else premises.suspects
    most = 0 if premises is None else premises.wrong_checks
    if len(set(blocks)) != len(blocks) or len(blocks) > most or not allowed.issuperset(blocks):
        raise Refused(f"{where}.checks: must name at most {most} different suspects")
    if [len(x) for x in part["disturbance"]] != [int(record.block_sizes[j]) for j in blocks]:
        raise Refused(f"{where}.disturbance: does not fit its checks")


def _block_index(record: OperatorRecord) -> dict[str, int]:
    return {name: j for j, name in enumerate(record.block_ids)}


MOST = 2_000_000
OTHER = "-"
"""The mark of a drawn item that is asked something else."""


def failures(wrong: Mapping[str, str], units: Sequence[Sequence[str]], k: int, items: int) -> int:
    """Items in which more than k units have a wrong answer."""
    return sum(sum(any(wrong[node][at] == "1" for node in unit) for unit in units) > k for at in range(items))


def alike(wrong: Mapping[str, str], items: int) -> int:
    """How many of the drawn items are of this kind."""
    first = next(iter(wrong.values()), "")
    return items - first.count(OTHER)


def rate_above(items: int, failed: int, confidence: float) -> float:
    """The smallest rate that the count refutes, with all above it (Clopper and Pearson, one-sided),
    rounded upwards.
    """
    from scipy.special import betaincinv

    if failed >= items:
        return 1.0
    rate, step = float(betaincinv(failed + 1, items - failed, confidence)), 2.0**-52
    level = 1 - Fraction(str(confidence))
    while not refutes(items, failed, Fraction(rate), level):
        rate, step = min(1.0, rate * (1.0 + step) + 2.0**-1000), 2.0 * step
    return rate


def sentence(section: Mapping[str, Any], k: int, units: Sequence[Sequence[str]]) -> str:
    what = "answers" if all(len(unit) == 1 for unit in units) else "units"
    drawn = len(section["places"])
    counted, source = alike(section["wrong"], drawn), f"drawn from {section['table']} ({section['size']:,} items)"
    if not counted:
        return (
            f"None of the {drawn:,} items {source} is asked what this one is: the pilot says nothing about its premise."
        )
    kind = "" if counted == drawn else f" that are asked the same, among {drawn:,}"
    return (
        f"More than {k} of {len(units)} {what} were wrong in {section['more_than_k']:,} of {counted:,} items{kind}"
        f" {source}: with confidence {plain_percent(section['confidence'])}, at most"
        f" {percent_above(Fraction(section['bound']))} of items drawn like them fail the premise."
    )


def check_pilot(section: Mapping[str, Any], nodes: Sequence[str], units: Sequence[Sequence[str]] | None, k: int) -> str:
    """Refused unless draw, count, bound and sentence are what the marks say."""
    places, size, wrong = section["places"], section["size"], section["wrong"]
    if not 0 < len(places) <= size <= MOST or section["seed"] < 0:
        raise Refused(f"pilot: {len(places)} items drawn from {size}")
    if not is_drawn(places, size, section["seed"], section["population"]):
        raise Refused("pilot.places: seed and digest draw other items")
    if set(wrong) != set(nodes):
        raise Refused("pilot.wrong: must have the marks of every node of the operator, and of no other")
    for name, marks in wrong.items():
        if type(marks) is not str or len(marks) != len(places) or set(marks) - {"0", "1", OTHER}:
            raise Refused(f"pilot.wrong: {name!r:.60} should have a 0, 1 or {OTHER} for each item drawn")
    if len({tuple(mark == OTHER for mark in marks) for marks in wrong.values()}) > 1:
        raise Refused("pilot.wrong: an item that is asked something else is so at every node")
    counted = alike(wrong, len(places))
    groups = [[name] for name in nodes] if units is None else units
    failed = failures(wrong, groups, k, len(places))
    if section["more_than_k"] != failed:
        raise Refused(f"pilot.more_than_k: the marks say {failed}")
    sure, bound = section["confidence"], section["bound"]
    if not 0 < sure < 1 or not 0 <= bound <= 1 or not math.isfinite(bound):
        raise Refused("pilot: confidence and bound must be shares")
    if not refutes(counted, failed, Fraction(bound), 1 - Fraction(str(sure))):
        raise Refused(f"pilot.bound: {bound!r} is claimed, {failed} of {counted} do not prove it")
    if section["sentence"] != sentence(section, k, groups):
        raise Refused("pilot.sentence: is not what the figures say")
    return f"{failed} of {counted} drawn items recounted: at most {bound:.4g} fail the premise, confidence {sure:g}"
