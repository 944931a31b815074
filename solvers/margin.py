"""margin: validate, call, translate."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from solvers.groups import column_groups
from solvers.oracle import enumerate_supports
from solvers.result import Margin, Status, SupportValue


def margin(
    B: Any,
    groups: Any = None,
    *,
    k: int,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    method: str = "auto",
    **options: Any,
) -> Margin:
    """γ_k(B)."""
    return support_margin(B, groups, size=2 * k, n_jobs=n_jobs, time_limit=time_limit, method=method, **options)


def support_margin(
    B: Any,
    groups: Any = None,
    *,
    size: int,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    method: str = "auto",
    **options: Any,
) -> Margin:
    dense = np.asarray(B.toarray() if sparse.issparse(B) else B, dtype=np.float64)
    columns = column_groups(groups, dense.shape[1])
    found = enumerate_supports(dense, columns, size)
    upper = float(np.linalg.norm(dense @ found.direction))
    value = 0.0 if found.value < 1e-10 else found.value
    return Margin(
        value=value,
        lower=max(0.0, value * (1 - 1e-9)),
        upper=max(upper, value),
        support=found.support,
        direction=found.direction.copy(),
        status=Status.EXACT,
        method="enumerate",
        support_size=size,
        groups=columns,
    )


def margins(B: Any, groups: Any = None, *, k: int, **options: Any) -> tuple[Margin, ...]:
    """γ_1 … γ_k in one call."""
    return tuple(margin(B, groups, k=j, **options) for j in range(1, k + 1))


def worst_supports(
    B: Any, groups: Any = None, *, size: int, count: int = 32, **options: Any
) -> tuple[SupportValue, ...]:
    """The `count` connected supports of `size` nodes with the smallest σ_min, worst first."""
    from itertools import combinations

    from solvers.oracle import smallest_singular_pair

    dense = np.asarray(B.toarray() if sparse.issparse(B) else B, dtype=np.float64)
    columns = column_groups(groups, dense.shape[1])
    found = []
    for support in combinations(range(len(columns)), min(size, len(columns))):
        index = np.concatenate([columns[i] for i in support])
        sigma, vector = smallest_singular_pair(dense[:, index])
        direction = np.zeros(dense.shape[1])
        direction[index] = vector
        found.append(SupportValue(support=support, value=sigma, direction=direction))
    return tuple(sorted(found, key=lambda item: (item.value, item.support))[:count])
