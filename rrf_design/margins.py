"""The margin of a design, in the user's names: γ_k, its bounds, and the witness by node id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.operators import Operator
    from rrf_design.premise import Protected
    from solvers import Margin, Status


@dataclass(frozen=True, slots=True)
class DesignMargin:
    """γ_k of one design. `lower` and `upper` hold in exact arithmetic for the assembled operator."""

    k: int
    value: float
    lower: float
    upper: float
    status: Status
    support: tuple[str, ...]
    witness: Mapping[str, tuple[float, ...]]
    """Node id to coordinates; unit norm over what is delivered (in the fiber metrics where the problem declares some)."""
    method: str
    selected: tuple[str, ...]
    solved: Margin
    """The same result over coordinates of `operator`, with units for nodes where units are declared."""
    operator: Operator
    units: tuple[str, ...] = ()
    """What the support counts as: k counts these. The nodes themselves where no unit is declared."""
    wrong: tuple[str, ...] = ()
    """Checks that hide the witness because they may be wrong."""
    unread: tuple[str, ...] = ()
    """Nodes that were asked and whose answer could not be read: the margin is that of `rrf_design.unread`."""

    @property
    def gamma(self) -> float:
        return self.value

    def seen_by(self) -> dict[str, float]:
        """‖C_j h‖² of the witness for every block of the design: which blocks see it, and how well."""
        sums = self.operator.block_energies(self.solved.direction)
        return dict(zip(self.operator.block_ids, sums.tolist(), strict=True))

    @property
    def shares(self) -> dict[str, float]:
        """How much of the witness's squared length lies on each node of the support; adds up to 1."""
        groups, place = self.operator.groups, self.operator.node_index
        parts = {name: self.solved.direction[groups[place[name]]] for name in self.support}
        total = float(self.solved.direction @ self.solved.direction) or 1.0
        return {name: float(part @ part) / total for name, part in parts.items()}

    def to_json(self) -> dict[str, Any]:
        return {
            "k": self.k,
            "gamma": self.value,
            "lower": self.lower,
            "upper": self.upper,
            "status": str(self.status),
            "support": list(self.support),
            "witness": {name: list(part) for name, part in self.witness.items()},
            "method": self.method,
            "lower_from": str(self.solved.lower_from),
            "selected": list(self.selected),
            "units": list(self.units),
            "wrong": list(self.wrong),
        }


def check_k(k: Any, default: int) -> int:
    """A usable corruption budget, or InputError."""
    if k is None:
        return default
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"k must be a whole number of at least 1, not {k!r}")
    return int(k)


def name_margin(
    operator: Operator, found: Protected, *, selected: tuple[str, ...] = (), unread: tuple[str, ...] = ()
) -> DesignMargin:
    """A solver's result in the user's names."""
    solved = found.solved
    return DesignMargin(
        k=solved.k,
        value=solved.value,
        lower=solved.lower,
        upper=solved.upper,
        status=solved.status,
        support=tuple(operator.node_ids[i] for i in found.nodes),
        witness=operator.unstack(solved.direction, only=found.nodes),
        method=solved.method,
        selected=selected,
        solved=solved,
        operator=operator,
        units=found.units,
        wrong=found.wrong,
        unread=unread,
    )
