"""The margin of a design, in the user's names: γ_k, its bounds, and the witness by node id.

For fields of identity relations no matrix is needed to see whether γ_k is zero: it is exactly when
some component without an anchor has at most 2k nodes (paper, "Null space and sparse anchor
coverage").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from rrf_design._shown import ShownRows, bars_on
from rrf_design.blocks import Anchor, Relation
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.operators import Operator
    from rrf_design.premise import Protected
    from rrf_design.problem import Problem, Selection
    from rrf_design.questions import Dataset
    from rrf_design.tables import ByStructure
    from solvers import Margin, Status
    from solvers.result import Progress


class Sparse(Protocol):
    """A matrix of scipy.sparse."""

    def tocsr(self) -> Any: ...


Matrix = NDArray[Any] | Sparse | Sequence[Sequence[float]]
Groups = Sequence[int] | Sequence[Sequence[int]]
"""The columns of each node, or how many each node has, one after the other."""


class _Search(TypedDict, total=False):
    """What `margin` takes beside the design and k, for its overloads."""

    method: str
    n_jobs: int | None
    time_limit: float | None
    progress: Progress | None


@overload
def margin(
    problem: Problem, select: Selection = None, *, k: int | None = None, **search: Unpack[_Search]
) -> DesignMargin: ...


@overload
def margin(
    problem: Dataset, select: Selection = None, *, k: int | None = None, **search: Unpack[_Search]
) -> ByStructure[DesignMargin]: ...


@overload
def margin(problem: Matrix, select: Groups | None = None, *, k: int, **search: Unpack[_Search]) -> Margin: ...


def margin(
    problem: Problem | Dataset | Matrix,
    select: Selection | Groups = None,
    *,
    k: int | None = None,
    method: str = "auto",
    n_jobs: int | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Any:
    """How observable a design is: its margin, and the error that is hardest to see.

    γ_k = min ‖B h‖ / ‖h‖ over all errors h ≠ 0 on at most 2k nodes. Two explanations of the same
    measurements with at most k wrong answers each differ by such an h, so where γ_k > 0 the wrong
    answers can be found, and noise of size ε moves what is found by at most 2ε/γ_k.

    Parameters
    ----------
    problem
        A problem; a data set, for the margin of each structure that its items have; or a matrix B,
        dense or of scipy.sparse.
    select
        Of a problem, the ids on sale that are added to what is owned ("all": every one). Of a
        matrix, its groups: the columns of each node, or their number; by default a column each.
    k
        How many answers (or units) may be wrong; None: as the problem says. A matrix needs it.
    method
        "auto", "search", "completion" or "enumerate": see `solvers.margin`.
    n_jobs
        Processes, as joblib counts them; the result does not depend on it.
    time_limit
        Seconds after which the bounds proven so far are returned, with status "bounded".
    progress
        Called now and then with the share that is done, the bounds so far and words.

    Returns
    -------
    A `DesignMargin`: `value` between `lower` and `upper`, which hold in exact arithmetic, `support`
    and `witness` by node id. Of a data set a `ByStructure` of them, of a matrix a `solvers.Margin`
    with node indices.

    >>> import rrf_design as rrf
    >>> problem = rrf.Problem(
    ...     nodes=[{"id": "plain"}, {"id": "reworded"}],
    ...     relations=[{"id": "same", "tail": "plain", "head": "reworded"}],
    ...     anchors=[{"id": "calculator", "node": "plain", "value": 42.0, "cost": 1.0}],
    ... )
    >>> rrf.margin(problem).value, round(rrf.margin(problem, "all").value, 3)
    (0.0, 0.618)
    >>> round(rrf.margin([[1.0, 0.0], [-1.0, 1.0]], [1, 1], k=1).value, 3)
    0.618
    """
    from rrf_design.arguments import is_dataset
    from rrf_design.problem import Problem

    given: Any = problem
    options: dict[str, Any] = {"n_jobs": n_jobs, "time_limit": time_limit, "progress": progress}
    options |= {"k": k, "method": method}
    if isinstance(given, Problem):
        return given.margin(select, **options)  # type: ignore[arg-type]
    if is_dataset(given):
        from rrf_design.tables import by_structure

        return by_structure(given, lambda one: one.margin(select, **options), lambda found: found.value)  # type: ignore[arg-type]
    if k is None:
        raise InputError("margin: a matrix does not say how many answers may be wrong; give k")
    from solvers import margin as solve

    try:
        return solve(given, select, **options)
    except ValueError as error:
        raise InputError(f"margin: {error}") from None


@dataclass(frozen=True, slots=True, repr=False)
class DesignMargin(ShownRows):
    """γ_k of one design. `lower` and `upper` hold in exact arithmetic for the assembled
    operator.
    """

    k: int
    value: float
    lower: float
    upper: float
    status: Status
    support: tuple[str, ...]
    witness: Mapping[str, tuple[float, ...]]
    """Node id to coordinates; unit norm over what is delivered (in the fiber metrics where the
    problem declares some).
    """
    method: str
    selected: tuple[str, ...]
    solved: Margin
    """The same result over coordinates of `operator`, with units for nodes where units are
    declared.
    """
    operator: Operator
    units: tuple[str, ...] = ()
    """What the support counts as: k counts these. The nodes themselves where no unit is
    declared.
    """
    wrong: tuple[str, ...] = ()
    """Checks that hide the witness because they may be wrong."""
    unread: tuple[str, ...] = ()
    """Nodes that were asked and whose answer could not be read: the margin is that of
    `rrf_design.premise`.
    """

    @property
    def gamma(self) -> float:
        return self.value

    def seen_by(self) -> dict[str, float]:
        """‖C_j h‖² of the witness for every block of the design: which blocks see it, and how
        well.
        """
        sums = self.operator.block_energies(self.solved.direction)
        return dict(zip(self.operator.block_ids, sums.tolist(), strict=True))

    @property
    def shares(self) -> dict[str, float]:
        """How much of the witness's squared length lies on each node of the support; adds up
        to 1.
        """
        groups, place = self.operator.groups, self.operator.node_index
        parts = {name: self.solved.direction[groups[place[name]]] for name in self.support}
        total = float(self.solved.direction @ self.solved.direction) or 1.0
        return {name: float(part @ part) / total for name, part in parts.items()}

    def _line(self) -> str:
        found = f"{self.value:.6g}" if self.status == "exact" else f"between {self.lower:.6g} and {self.upper:.6g}"
        return f"γ_{self.k} = {found}, {self.status}, hardest on {', '.join(self.support)}"

    def _records(self) -> Iterator[dict[str, Any]]:
        shares = self.shares
        for name in self.support:
            yield {"node": name, "share": shares[name], "direction": list(self.witness[name])}

    def plot(self, axes: Any = None) -> Any:
        """How much of the error that is hardest to see lies on each node, on matplotlib axes."""
        return bars_on(axes, self.shares, across="share of the hardest error")

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


@dataclass(frozen=True, slots=True, repr=False)
class ComponentCriterion(ShownRows):
    """Components of a design, smallest unanchored one first to matter."""

    k: int
    components: tuple[tuple[str, ...], ...]
    anchored: tuple[bool, ...]

    def _line(self) -> str:
        words = "γ = 0" if self.zero else "γ > 0"
        return f"k = {self.k}: {words}, {len(self.components)} components, {len(self.unanchored)} without an anchor"

    def _records(self) -> Iterator[dict[str, Any]]:
        for nodes, held in zip(self.components, self.anchored, strict=True):
            yield {"nodes": list(nodes), "anchored": held}

    def to_json(self) -> dict[str, Any]:
        return {"k": self.k, "zero": self.zero, "injective": self.injective, "components": list(self._records())}

    @property
    def unanchored(self) -> tuple[tuple[str, ...], ...]:
        """Components without an anchor, smallest first: each carries a shared error that no
        relation can see.
        """
        free = [c for c, held in zip(self.components, self.anchored, strict=True) if not held]
        return tuple(sorted(free, key=len))

    @property
    def zero(self) -> bool:
        """Whether γ_k = 0."""
        return bool(self.unanchored) and len(self.unanchored[0]) <= 2 * self.k

    @property
    def injective(self) -> bool:
        """Whether even dense errors are visible: every component is anchored."""
        return not self.unanchored


def component_criterion(problem: Problem, select: Selection = None, *, k: int | None = None) -> ComponentCriterion:
    """Whether the margin is zero, from the connected parts of the field alone.

    With identity transports everywhere, and anchors that fix their whole node, γ_k = 0 exactly
    where a component without an anchor has at most 2k nodes.

    Parameters
    ----------
    problem
        A problem whose relations are identities; InputError for others.
    select
        Ids on sale that are added to what is owned; "all": every one.
    k
        How many answers may be wrong; None: as the problem says.

    Returns
    -------
    A `ComponentCriterion`: whether γ_k is `zero`, the components, and which are `unanchored`.

    >>> import networkx as nx
    >>> import rrf_design as rrf
    >>> found = rrf.component_criterion(rrf.from_graph(nx.path_graph(3), k=1))
    >>> found.zero, found.unanchored
    (False, (('0', '1', '2'),))
    """
    import networkx as nx

    operator = problem.operator(select)
    if not operator.premise.plain:
        raise InputError(
            "components: the criterion is for answers that fail one by one, all delivered, with checks that hold"
        )
    graph = nx.Graph()
    graph.add_nodes_from(operator.node_ids)
    anchored: set[str] = set()
    for name in operator.block_ids:
        block = problem.block_by_id[name]
        if isinstance(block, Relation):
            if block.pair is None:
                raise InputError(
                    f"relation {name!r}: among several nodes; the criterion is for identity relations of two"
                )
            if block.transport.kind != "identity":
                raise InputError(
                    f"relation {name!r}: transport {block.transport.kind}; the criterion is for identity relations"
                )
            if len(block.nodes) == 2:
                graph.add_edge(*block.nodes)
        elif isinstance(block, Anchor):
            if block.rows is not None:
                raise InputError(f"anchor {name!r}: partial rows; the criterion is for anchors that fix a whole node")
            anchored.update(block.nodes)
    order = {name: i for i, name in enumerate(operator.node_ids)}
    parts = sorted(
        (tuple(sorted(part, key=order.__getitem__)) for part in nx.connected_components(graph)),
        key=lambda p: order[p[0]],
    )
    return ComponentCriterion(
        k=check_k(k, problem.k),
        components=tuple(parts),
        anchored=tuple(any(name in anchored for name in part) for part in parts),
    )
