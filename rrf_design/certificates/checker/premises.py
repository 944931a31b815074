"""The `protection` section of a certificate: what k counts, what is delivered, which checks may be wrong.

Its lists are checked against the operator, and every claim that depends on them is made from here: what the witness shows
(‖Bh‖ over the rows of the blocks that are not set aside, ‖h‖ over what is delivered), and what is to be proved of all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.certificates.checker.exact import squared_image, squared_norm
from rrf_design.certificates.checker.protection import ProtectionClaim
from rrf_design.certificates.checker.rates import at_most
from rrf_design.certificates.checker.record import OperatorRecord
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
        """Refused unless units part the nodes, at least one node is delivered, and only suspects are set aside."""
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
