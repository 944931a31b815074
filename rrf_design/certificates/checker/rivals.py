"""The `rivals` of a certificate: two explanations of one measurement that nobody can tell apart, checked in rational arithmetic.

Each has at most k wrong units (and at most a wrong suspects, whose rows it disturbs by u). The measurement is the mean of what
the two predict, so either misses it by ½‖B(e₁ − e₂) + u₁ − u₂‖, which must be at most ε, and nothing where a row carries no noise.
They differ by ‖(e₁ − e₂)_D‖ in what is delivered: no method can promise an error of less than half of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from rrf_design.certificates.checker.exact import squared_image, squared_norm
from rrf_design.certificates.checker.premises import Premises
from rrf_design.certificates.checker.record import OperatorRecord
from rrf_design.errors import Refused

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Apart:
    """What two explanations differ by, exactly."""

    image2: Fraction
    """‖B(e₁ − e₂) + u₁ − u₂‖²."""
    quiet2: Fraction
    """The same over the rows that carry no noise."""
    delivered2: Fraction
    """‖(e₁ − e₂)_D‖²."""


def measure(claim: Document, record: OperatorRecord, premises: Premises | None, noisy: list[str] | None) -> Apart:
    """Of a section that fits the operator; `noisy` names the blocks that carry noise, None for all."""
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
    return Apart(
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
