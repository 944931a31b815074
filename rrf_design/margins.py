"""The margin of a design, in the user's names: γ_k, its bounds, and the witness by node id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.operator import Operator
    from rrf_design.problem import Problem, Selection
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
    """Node id to coordinates; unit norm over all (in the fiber metrics where the problem declares some)."""
    method: str
    selected: tuple[str, ...]
    solved: Margin
    """The same result over coordinates of `operator`."""
    operator: Operator

    @property
    def gamma(self) -> float:
        return self.value

    def seen_by(self) -> dict[str, float]:
        """‖C_j h‖² of the witness for every block of the design: which blocks see it, and how well."""
        energy = np.square(self.operator.matrix @ self.solved.direction)
        block_of_row = np.repeat(np.arange(len(self.operator.block_ids)), np.diff(self.operator.block_offsets))
        sums = np.bincount(block_of_row, weights=energy, minlength=len(self.operator.block_ids))
        return dict(zip(self.operator.block_ids, sums.tolist(), strict=True))

    @property
    def shares(self) -> dict[str, float]:
        """How much of the witness's squared length lies on each node of the support; adds up to 1."""
        parts = (self.solved.direction[self.operator.groups[node]] for node in self.solved.support)
        return {name: float(part @ part) for name, part in zip(self.support, parts, strict=True)}

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
            "selected": list(self.selected),
        }


def check_k(k: Any, default: int) -> int:
    """A usable corruption budget, or InputError."""
    if k is None:
        return default
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"k must be a whole number of at least 1, not {k!r}")
    return int(k)


def design_margin(problem: Problem, select: Selection = None, *, k: int | None = None, **options: Any) -> DesignMargin:
    """Assemble the design and compute its margin; `options` go to `solvers.margin`."""
    from solvers import margin

    budget = check_k(k, problem.k)
    operator = problem.operator(select)
    try:
        solved = margin(operator.matrix, operator.groups, k=budget, **options)
    except ValueError as error:  # a solver option that can't be
        raise InputError(str(error)) from None
    return name_margin(operator, solved, selected=problem.resolve(select))


def name_margin(operator: Operator, solved: Margin, *, selected: tuple[str, ...] = ()) -> DesignMargin:
    """A solver's result in the user's names."""
    return DesignMargin(
        k=solved.k,
        value=solved.value,
        lower=solved.lower,
        upper=solved.upper,
        status=solved.status,
        support=tuple(operator.node_ids[i] for i in solved.support),
        witness=operator.unstack(solved.direction, only=solved.support),
        method=solved.method,
        selected=selected,
        solved=solved,
        operator=operator,
    )
