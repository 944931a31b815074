"""Which columns belong to which node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Columns = tuple[NDArray[np.int64], ...]


def column_groups(groups: Sequence[Any] | None, columns: int) -> Columns:
    """Column indices of every node.

    `groups` is a list of index lists, one per node (they must part the columns), or a list of sizes of consecutive
    runs; None gives every column a node of its own. ValueError says which entry doesn't fit.
    """
    if groups is None:
        groups = [1] * columns
    items = list(groups)
    if not items:
        raise ValueError("groups: the field is empty; there must be at least one node")
    if all(isinstance(item, int | np.integer) and not isinstance(item, bool) for item in items):
        sizes = np.array(items, dtype=np.int64)
        if (sizes < 1).any():
            raise ValueError(
                f"groups: node {int(np.argmax(sizes < 1))} has size {int(sizes.min())}; every node needs a column"
            )
        if sizes.sum() != columns:
            raise ValueError(f"groups: the sizes add up to {int(sizes.sum())}, but the matrix has {columns} columns")
        return tuple(np.split(np.arange(columns), np.cumsum(sizes)[:-1]))
    result = []
    for node, item in enumerate(items):
        indices = np.atleast_1d(np.asarray(item))
        if indices.ndim != 1 or not len(indices) or not np.issubdtype(indices.dtype, np.integer):
            raise ValueError(f"groups: entry {node} must be a non-empty list of column numbers, not {item!r}")
        result.append(indices.astype(np.int64))
    merged = np.concatenate(result)
    if len(merged) != columns or not np.array_equal(np.sort(merged), np.arange(columns)):
        raise ValueError(f"groups: the lists must name each of the {columns} columns exactly once")
    return tuple(result)
