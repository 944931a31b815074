"""γ as one asks for it: validate, minimise (`solvers._minimiser`), translate; and the supports
below a threshold or near the least.

Also what a field can't see, structurally: its group spark, and the gauge directions of every
component.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers._all_supports import small_margin
from solvers._exact import smallest_singular_pair, witness_of
from solvers._gram import Field, NodeColumns, make_field
from solvers._minimiser import Minimiser
from solvers._search import LIMIT, Search, Support
from solvers.result import ZERO, Bounds, Margin, Progress, SupportValue

METHODS = ("auto", "search", "completion", "enumerate")


def margin(
    B: Any,
    groups: Any = None,
    *,
    k: int,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    method: str = "auto",
    progress: Progress | None = None,
    warm: Iterable[Support] = (),
) -> Margin:
    """γ_k(B) = min over |S| ≤ 2k of σ_min(B_S), exactly, with the witness.

    B is an (rows, coordinates) array or scipy.sparse matrix; groups the columns of every node
    (lists of indices, or sizes of consecutive runs; default one column each). `time_limit` seconds
    after which the bounds proven so far are returned with status "bounded". `n_jobs` processes
    through joblib; every number gives the same answer. `warm` are supports worth looking at first.
    method="search" goes through supports one by one whatever their size, "completion" bounds all
    completions at once wherever it can (auto: where supports have more than six nodes and are too
    many); "enumerate" is the paper's loop over all supports.

    >>> import numpy as np
    >>> from solvers import margin
    >>> path = np.array([[1.0, 0, 0], [-1, 1, 0], [0, -1, 1]])  # an anchor and two equalities
    >>> found = margin(path, k=1)
    >>> round(found.value, 6), found.support, found.status.value
    (0.618034, (1, 2), 'exact')
    """
    return support_margin(
        B, groups, size=doubled(k), n_jobs=n_jobs, time_limit=time_limit, method=method, progress=progress, warm=warm
    )


def support_margin(
    B: Any,
    groups: Any = None,
    *,
    size: int,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    method: str = "auto",
    progress: Progress | None = None,
    warm: Iterable[Support] = (),
) -> Margin:
    """min σ_min(B_S) over supports S of at most `size` nodes, odd sizes included: γ_k is that of
    size 2k.

    Parameters and result as for `margin`.

    >>> import numpy as np
    >>> from solvers import support_margin
    >>> B = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]])
    >>> support_margin(B, size=1).value
    1.0
    """
    check_call(size, n_jobs, time_limit=time_limit, method=method)
    if method == "auto":
        found = small_margin(B, groups, int(size))
        if found is not None:
            if progress is not None:
                progress(1.0, (found.lower, found.upper), "")
            return found
    field = make_field(B, groups)
    if method == "enumerate":
        return _enumerated(field, int(size))
    solver = Minimiser(field, int(size), n_jobs=n_jobs, time_limit=time_limit, progress=progress)
    return solver.solve(warm, method=method)


def margins(B: Any, groups: Any = None, *, k: int, **options: Any) -> tuple[Margin, ...]:
    """γ_1, …, γ_k in one call, each started from the witness of the one before; `options` are those
    of `margin`.

    >>> import numpy as np
    >>> from solvers import margins
    >>> B = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]])
    >>> [round(found.value, 4) for found in margins(B, k=2)]
    [0.618, 0.445]
    """
    results: list[Margin] = []
    for budget in range(1, k + 1):
        if results and results[-1].zero:  # γ never rises with k
            results.append(replace(results[-1], support_size=2 * budget))
            continue
        warm = [results[-1].support] if results else ()
        results.append(margin(B, groups, k=budget, warm=warm, **options))
    return tuple(results)


def worst_supports(
    B: Any, groups: Any = None, *, size: int, count: int = 32, n_jobs: int | None = None
) -> tuple[SupportValue, ...]:
    """The `count` supports of `size` nodes (connected ones, and whole smaller components) with the
    least σ_min, worst first.

    Each has its `support`, its `value` σ_min(B_S) and the `direction` that attains it.

    >>> import numpy as np
    >>> from solvers import worst_supports
    >>> B = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]])
    >>> [(found.support, round(found.value, 4)) for found in worst_supports(B, size=2, count=2)]
    [((1, 2), 0.618), ((0, 1), 1.0)]
    """
    check_call(size, n_jobs)
    field = make_field(B, groups)
    search = Search(field, size)
    solver = Minimiser(field, size, n_jobs=n_jobs)
    best = solver.solve(())
    top = float(np.max(field.diagonal, initial=0.0))
    return lowest_supports(search, best, lambda s: evaluate(field, s), count, top, limit=64 * count, n_jobs=n_jobs)


def lowest_supports(
    search: Search,
    best: Margin,
    value: Callable[[Support], SupportValue],
    count: int,
    top: float,
    *,
    limit: int,
    n_jobs: int | None,
) -> tuple[SupportValue, ...]:
    """The `count` supports of least value, worst first: those below a threshold that rises from
    just above the minimum until there are enough, or to `top`, the largest square of a column.
    """
    theta = max(math.ldexp(best.upper, -search.field.exponent) ** 2 * 1.1, top * 1e-6)
    values: list[SupportValue] = []
    for _ in range(40):
        found = search.below(theta, limit=limit, n_jobs=n_jobs)
        values = sorted(map(value, found.supports), key=lambda v: (v.value, v.support))
        if len(values) >= count or theta >= 1.01 * top:
            break
        theta = min(theta * 1.5, 1.01 * top)
    if best.support and all(v.value > best.value * (1 + 1e-12) for v in values[:1]):
        values.insert(0, SupportValue(support=best.support, value=best.value, direction=best.direction.copy()))
    return tuple(values[:count])


def supports_below(
    B: Any,
    groups: Any = None,
    *,
    size: int,
    threshold: float,
    limit: int = LIMIT,
    joined: Iterable[Iterable[int]] = (),
    n_jobs: int | None = None,
) -> SupportsBelow:
    """Every support of `size` nodes (connected, or a whole smaller component) whose σ_min is below
    `threshold`.

    `joined` are sets of nodes that count as adjacent, beside those that share a row. Returns them
    with whether the list is complete: at most `limit` are listed.

    >>> import numpy as np
    >>> from solvers import supports_below
    >>> B = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]])
    >>> [found.support for found in supports_below(B, size=2, threshold=0.7).supports]
    [(1, 2)]
    """
    check_call(size, n_jobs)
    if not 0 <= threshold < math.inf:
        raise ValueError(f"threshold: must be a finite number of at least 0, not {threshold!r}")
    field = make_field(B, groups)
    field = replace(field, joined=tuple(tuple(int(i) for i in nodes) for nodes in joined))
    scaled = math.ldexp(threshold, -field.exponent)
    found = Search(field, size).below(scaled * scaled, limit=limit, n_jobs=n_jobs)
    values = [value for value in (evaluate(field, s) for s in found.supports) if value.value < threshold]
    values.sort(key=lambda v: (v.value, v.support))
    return SupportsBelow(supports=tuple(values[:limit]), complete=found.complete and len(values) <= limit)


def doubled(k: Any) -> int:
    """2k, the size of the supports that k wrong nodes are about; ValueError for what is no k."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"k: must be a whole number of at least 1, not {k!r}")
    return 2 * int(k)


def check_call(
    size: Any,
    n_jobs: Any = None,
    *,
    time_limit: Any = None,
    method: str = "auto",
    methods: Sequence[str] = METHODS,
) -> None:
    """ValueError names the first argument that is none, and what it must be."""
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        raise ValueError(f"size: must be a whole number of at least 1, not {size!r}")
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0):
        raise ValueError(f"n_jobs: must be a number of processes, or -1 for all cores, not {n_jobs!r}")
    if method not in methods:
        raise ValueError(f"method: {method!r} is not one of {', '.join(methods)}")
    if time_limit is not None and not time_limit >= 0:
        raise ValueError(f"time_limit: must be a number of seconds, not {time_limit!r}")


@dataclass(frozen=True, slots=True)
class SupportsBelow:
    """Supports below a threshold, worst first.

    Incomplete: there are more than the limit, and these are some of them.
    """

    supports: tuple[SupportValue, ...]
    complete: bool


def evaluate(field: Field, support: Support) -> SupportValue:
    """σ_min(B_S) from B itself, in the caller's units."""
    sigma, vector = smallest_singular_pair(field.restrict(support))
    return SupportValue(
        support=support, value=math.ldexp(sigma, field.exponent), direction=field.embed(support, vector)
    )


def enumerate_supports(matrix: NDArray[np.float64], groups: NodeColumns, size: int) -> SupportValue:
    """The definition, computed as it is written (paper, Algorithm "Exact group-sparse margin and
    witness"), slow and obvious: smallest σ_min(B_S) over all 1 ≤ |S| ≤ size, the first support that
    attains it, and its direction.
    """
    best = np.inf
    best_support: tuple[int, ...] = ()
    best_vector = np.zeros(0)
    for s in range(1, min(size, len(groups)) + 1):
        for support in combinations(range(len(groups)), s):
            columns = np.concatenate([groups[i] for i in support])
            sigma, vector = smallest_singular_pair(matrix[:, columns])
            if sigma < best:
                best, best_support, best_vector = sigma, support, vector
    direction = np.zeros(matrix.shape[1])
    direction[np.concatenate([groups[i] for i in best_support])] = best_vector
    return SupportValue(support=best_support, value=float(best), direction=direction)


def _enumerated(field: Field, size: int) -> Margin:
    """The oracle, with bounds that hold: σ_min of a dense SVD is accurate to a few ulps of ‖B‖."""
    found = enumerate_supports(field.matrix.toarray(), NodeColumns.of_sizes(field.dims), size)
    vector = found.direction[field.columns_of(found.support)]
    block = field.restrict(found.support)
    error = 100.0 * max(field.matrix.shape) * 2.0**-53 * float(np.linalg.norm(field.column_norms))
    zero = found.value <= ZERO and math.ldexp(found.value, field.exponent) <= ZERO
    vector, upper = witness_of(block, vector, zero=zero)
    told = Bounds.settled(
        found.value,
        max(0.0, found.value - error),
        upper,
        zero=zero,
        scale=field.longest,
        exponent=field.exponent,
    )
    return Margin(
        **asdict(told),
        support=found.support,
        direction=field.embed(found.support, vector),
        method="enumerate",
        support_size=size,
        groups=field.groups,
    )


LARGEST_COMPONENT = 4000  # coordinates of a component whose null space is computed densely


@dataclass(frozen=True, slots=True)
class Spark:
    """The least number of nodes that carry a null vector of B (infinite: B is injective).

    `value` None means: more than `searched`, the largest size that was looked at.
    """

    value: float | None
    searched: int
    support: tuple[int, ...]
    direction: NDArray[np.float64] | None


def group_spark(B: Any, groups: Any = None, *, at_most: int | None = None, n_jobs: int | None = None) -> Spark:
    """Group spark of B: the fewest nodes whose columns are dependent, searched up to `at_most`
    (default: all).

    γ_k > 0 exactly when it exceeds 2k. `value` is infinite where all columns are independent, None
    where the search ended before.

    >>> import numpy as np
    >>> from solvers import group_spark
    >>> B = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]])
    >>> group_spark(B).value, group_spark(B[:2]).value
    (inf, 3.0)
    """
    field = make_field(B, groups)
    top = field.n if at_most is None else min(at_most, field.n)
    if _injective(field):
        return Spark(value=math.inf, searched=field.n, support=(), direction=None)
    for size in range(1, top + 1):
        found = Minimiser(field, size, n_jobs=n_jobs).solve(())
        if found.zero:
            return Spark(value=float(size), searched=size, support=found.support, direction=found.direction)
    return Spark(value=None, searched=top, support=(), direction=None)


def _injective(field: Any) -> bool:
    for nodes in field.components:
        block = field.restrict(nodes)
        if block.shape[1] > LARGEST_COMPONENT:
            return False  # not decided here: the search by size decides
        sigma, _ = smallest_singular_pair(block)
        if sigma <= 1e-10 * float(np.max(field.column_norms, initial=0.0)):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Gauge:
    """A basis of the null space of one component: (coordinates, dimension), orthonormal columns
    over all coordinates.
    """

    nodes: tuple[int, ...]
    basis: NDArray[np.float64]

    @property
    def dimension(self) -> int:
        return int(self.basis.shape[1])


def gauge_directions(D: Any, groups: Any = None, *, tolerance: float = 1e-10) -> tuple[Gauge, ...]:
    """ker D by connected component: the fields that no relation can tell from zero.

    Transports that don't close around a cycle (holonomy) shrink the null space; it is computed from
    D itself, so that is taken into account. A node without any row is a component of its own and
    free. Components with more than 4,000 coordinates are refused.

    >>> import numpy as np
    >>> from solvers import gauge_directions
    >>> B = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])
    >>> len(gauge_directions(B))  # all three may be off by the same
    1
    """
    field = make_field(D, groups)
    scale = float(np.max(field.column_norms, initial=0.0))
    result = []
    for nodes in field.components:
        block = field.restrict(nodes)
        if block.shape[1] > LARGEST_COMPONENT:
            raise ValueError(
                f"D: a component has {block.shape[1]} coordinates; gauges are computed up to {LARGEST_COMPONENT}"
            )
        if block.shape[0] == 0:
            local = np.eye(block.shape[1])
        else:
            _, values, right = np.linalg.svd(block, full_matrices=block.shape[0] < block.shape[1])
            rank = int((values > tolerance * max(scale, 1e-300)).sum())
            local = right[rank:].T
        basis = np.zeros((len(field.groups.order), local.shape[1]))
        basis[field.groups.order[field.columns_of(nodes)]] = local
        result.append(Gauge(nodes=tuple(int(i) for i in nodes), basis=basis))
    return tuple(result)
