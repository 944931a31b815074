"""Which columns belong to which node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class NodeColumns(Sequence[NDArray[np.int64]]):
    """The columns of node i are order[offsets[i]:offsets[i + 1]]; reads like a list of index
    arrays.
    """

    order: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @classmethod
    def of_sizes(cls, sizes: Any) -> NodeColumns:
        offsets = np.concatenate([[0], np.cumsum(np.asarray(sizes, dtype=np.int64))]).astype(np.int64)
        return cls(order=np.arange(offsets[-1]), offsets=offsets)

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, node: Any) -> Any:
        if isinstance(node, slice):
            return [self[i] for i in range(*node.indices(len(self)))]
        if not -len(self) <= node < len(self):
            raise IndexError(node)
        node = node % len(self)
        return self.order[self.offsets[node] : self.offsets[node + 1]]

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, NodeColumns)
            and np.array_equal(self.order, other.order)
            and np.array_equal(self.offsets, other.offsets)
        )

    __hash__ = None  # type: ignore[assignment]


def column_groups(groups: Sequence[Any] | None, columns: int) -> NodeColumns:
    """Column indices of every node.

    `groups` is a list of index lists, one per node (they must part the columns), or a list of sizes
    of consecutive runs; None gives every column a node of its own. ValueError says which entry
    doesn't fit.

    >>> from solvers import column_groups
    >>> [own.tolist() for own in column_groups([1, 2], 3)]
    [[0], [1, 2]]
    """
    if groups is None:
        if columns == 0:
            raise ValueError("groups: the field is empty; there must be at least one node")
        return NodeColumns.of_sizes(np.ones(columns, np.int64))
    if isinstance(groups, NodeColumns):
        return _checked(groups, columns)
    items = list(groups)
    if not items:
        raise ValueError("groups: the field is empty; there must be at least one node")
    if all(isinstance(item, int | np.integer) and not isinstance(item, bool) for item in items):
        sizes = np.array(items, dtype=np.int64)
        if (sizes < 1).any():
            node = int(np.argmax(sizes < 1))
            raise ValueError(f"groups: node {node} has size {sizes[node]}; every node needs a column")
        if sizes.sum() != columns:
            raise ValueError(f"groups: the sizes add up to {int(sizes.sum())}, but the matrix has {columns} columns")
        return NodeColumns.of_sizes(sizes)
    parts = []
    for node, item in enumerate(items):
        indices = np.atleast_1d(np.asarray(item))
        if indices.ndim != 1 or not len(indices) or not np.issubdtype(indices.dtype, np.integer):
            raise ValueError(f"groups: entry {node} must be a non-empty list of column numbers, not {item!r}")
        parts.append(indices.astype(np.int64))
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return _checked(NodeColumns(order=np.concatenate(parts), offsets=offsets), columns)


def _checked(groups: NodeColumns, columns: int) -> NodeColumns:
    if len(groups.order) != columns or not np.array_equal(np.sort(groups.order), np.arange(columns)):
        raise ValueError(f"groups: the lists must name each of the {columns} columns exactly once")
    return groups
