"""The problem: a field, its row blocks, what they cost, and what is wanted of them.

`Problem` is plain frozen data that has been checked as a whole; every fault is one line naming the entry.
What it means as a matrix is in `operator`, how it is read and written in `files`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from rrf_design.blocks import Anchor, Block, Relation, Rule, Tier
from rrf_design.errors import InputError
from rrf_design.field import Entry, Node, NonNegative, Positive, Text

if TYPE_CHECKING:
    from rrf_design.margins import DesignMargin
    from rrf_design.operator import Operator

Selection = Iterable[str] | str | None
"""Ids of blocks (and nodes) on sale to add to what is owned; None for nothing, "all" for everything."""


class Problem(Entry):
    """A design problem. Build it from keywords, `rrf_design.load`, a networkx graph, or a matrix with groups."""

    name: Text = "unnamed"
    k: Annotated[int, Field(strict=True, ge=1)] = 1
    """Corruption budget: how many responses may be wrong."""
    budget: NonNegative | None = None
    target: NonNegative | None = None
    epsilon: NonNegative | None = None
    """Noise radius; or sigma with confidence."""
    sigma: Positive | None = None
    confidence: Annotated[float, Field(strict=True, gt=0, lt=1)] = 0.95
    delta: Positive | None = None
    """The recovery error that is acceptable."""
    amplitude: Positive | None = None
    """A bound on the norm of the error, where one is known (R in the minimax theorem)."""
    variance_floor: NonNegative = 0.0
    """No direction of a declared covariance counts as less noisy than this variance."""
    shrinkage: Annotated[float, Field(strict=True, ge=0, le=1)] = 0.0
    """tau in (1 - tau) Sigma + tau tr(Sigma)/m I, applied to every declared covariance."""
    nodes: tuple[Node, ...]
    relations: tuple[Relation, ...] = ()
    anchors: tuple[Anchor, ...] = ()
    rules: tuple[Rule, ...] = ()
    tiers: tuple[Tier, ...] = ()

    def __init__(self, /, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            from rrf_design.files import one_line

            raise InputError(one_line(error, data)) from None
        _check(self)

    @cached_property
    def node_by_id(self) -> Mapping[str, Node]:
        return {node.id: node for node in self.nodes}

    @cached_property
    def blocks(self) -> tuple[Relation | Anchor, ...]:
        """All row blocks, relations first, in file order: the order of the rows of B."""
        return (*self.relations, *self.anchors)

    @cached_property
    def block_by_id(self) -> Mapping[str, Relation | Anchor]:
        return {block.id: block for block in self.blocks}

    @cached_property
    def family_size(self) -> Mapping[str, int]:
        return Counter(block.family_name for block in self.blocks)

    @cached_property
    def on_sale(self) -> tuple[str, ...]:
        """Ids of the blocks that can be bought, in file order."""
        return tuple(block.id for block in self.blocks if not block.owned)

    def resolve(self, select: Selection = None) -> tuple[str, ...]:
        """The selected ids in file order (nodes, then blocks); InputError for what is unknown or not on sale."""
        purchasable = [node.id for node in self.nodes if node.cost is not None] + list(self.on_sale)
        if select is None:
            return ()
        if isinstance(select, str):
            if select == "all":
                return tuple(purchasable)
            select = [select]
        wanted = set(select)
        known = set(purchasable)
        for unknown in sorted(wanted - known):
            if unknown in self.node_by_id or unknown in self.block_by_id:
                wanted.discard(unknown)  # owned already: naming it changes nothing
            else:
                from rrf_design.files import suggestion

                raise InputError(f"select: nothing here is called {unknown!r}{suggestion(unknown, known)}")
        return tuple(name for name in purchasable if name in wanted)

    def operator(self, select: Selection = None) -> Operator:
        """B for what is owned plus what is selected; see `rrf_design.operator`."""
        from rrf_design.operator import assemble

        return assemble(self, select)

    def margin(self, select: Selection = None, *, k: int | None = None, **options: Any) -> DesignMargin:
        """γ_k of what is owned plus what is selected, with the witness named by node id."""
        from rrf_design.margins import design_margin

        return design_margin(self, select, k=k, **options)


def _check(problem: Problem) -> None:
    """Everything that needs more than one entry to be seen; InputError with one line."""
    if not problem.nodes:
        raise InputError("nodes: the field is empty; declare at least one node")
    names = [(node.id, "node") for node in problem.nodes]
    names += [(block.id, "relation" if isinstance(block, Relation) else "anchor") for block in problem.blocks]
    seen: dict[str, str] = {}
    for name, kind in names:
        if name in seen:
            raise InputError(f"{kind} {name!r}: the id is already taken by a {seen[name]}; ids must be unique")
        seen[name] = kind
    weights: dict[str, Block] = {}
    for node in problem.nodes:
        if node.metric is not None:
            spd_factor(node.metric, node.dim, f"node {node.id!r}: metric")
    for block in problem.blocks:
        where = f"{seen[block.id]} {block.id!r}"
        for name in block.nodes:
            if name not in problem.node_by_id:
                from rrf_design.files import suggestion

                raise InputError(f"{where}: unknown node {name!r}{suggestion(name, problem.node_by_id)}")
        first = weights.setdefault(block.family_name, block)
        if first.weight != block.weight:
            raise InputError(
                f"{where}: weight {block.weight:g} differs from the weight {first.weight:g} of {first.id!r} in the same"
                f" family {block.family!r}; a family has one weight"
            )
        _check_shapes(problem, block, where)
        for key in ("requires", "excludes"):
            for name in getattr(block, key):
                if name not in problem.block_by_id:
                    from rrf_design.files import suggestion

                    raise InputError(
                        f"{where}: {key} names the unknown block {name!r}{suggestion(name, problem.block_by_id)}"
                    )
    groups: list[Rule | Tier] = [*problem.rules, *problem.tiers]
    for group in groups:
        for name in group.blocks:
            if name not in problem.block_by_id or problem.block_by_id[name].owned:
                raise InputError(f"rule or tier {group.id!r}: {name!r} is not a block on sale")
    if problem.epsilon is not None and problem.sigma is not None:
        raise InputError("problem: give epsilon or sigma, not both")


def _check_shapes(problem: Problem, block: Relation | Anchor, where: str) -> None:
    from rrf_design.operator import block_rows, block_target, whitener

    try:
        rows = sum(part.shape[0] for part in block_rows(problem, block).values()) // len(block.nodes)
        block_target(block, rows)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None
    whitener(problem, block, rows, where)


def spd_factor(metric: float | tuple[tuple[float, ...], ...], dim: int, where: str) -> NDArray[np.float64]:
    """Cholesky factor L of a declared positive definite matrix; InputError when it is not one."""
    if isinstance(metric, float | int):
        return np.eye(dim) * float(np.sqrt(metric))
    try:
        matrix = np.array(metric, dtype=np.float64)
    except ValueError:
        matrix = np.zeros((0, 0))
    if matrix.shape != (dim, dim):
        raise InputError(f"{where} must be {dim}×{dim}")
    if not np.allclose(matrix, matrix.T, rtol=1e-12, atol=0.0):
        raise InputError(f"{where} is not symmetric")
    try:
        return np.asarray(np.linalg.cholesky((matrix + matrix.T) / 2), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise InputError(f"{where} is not positive definite") from None
