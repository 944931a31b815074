"""Problems from other things people have: a networkx graph, a raw matrix with groups, an .npz file with B."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from rrf_design.errors import InputError
from rrf_design.problem import Problem

if TYPE_CHECKING:
    import networkx as nx

    from rrf_design.operator import Operator

_EDGE_KEYS = ("id", "transport", "offset", "weight", "family", "sigma", "covariance", "uncertainty", "cost")


def from_graph(graph: nx.Graph, *, anchors: Sequence[Any] = (), **settings: Any) -> Problem:
    """A problem from a networkx graph (directed or not, multi or not).

    Node attributes `dim`, `cost`, `metric`, `prompt`, `system`, `parser` and edge attributes with the keys of a
    relation are used; other attributes are refused, so that nothing is dropped in silence. An undirected edge is
    oriented as networkx iterates it. `anchors` are node names or anchor tables.
    """
    nodes = [{"id": str(name), **attributes} for name, attributes in graph.nodes(data=True)]
    relations = []
    for number, (tail, head, attributes) in enumerate(graph.edges(data=True), start=1):
        unknown = set(attributes) - set(_EDGE_KEYS)
        if unknown:
            raise InputError(f"edge {tail!r} - {head!r}: unknown attribute {sorted(unknown)[0]!r}")
        relations.append({"id": f"r{number}", "tail": str(tail), "head": str(head), **attributes})
    tables = [a if isinstance(a, dict) else {"id": f"a-{a}", "node": str(a)} for a in anchors]
    return Problem(nodes=nodes, relations=relations, anchors=tables, **settings)


def from_matrix(
    matrix: Any, groups: Sequence[Any] | None = None, *, names: Sequence[str] | None = None, **settings: Any
) -> Problem:
    """A problem whose B is the given matrix: one anchor per row, over the nodes that the row touches.

    `groups` gives the columns of each node (lists of indices, or sizes of consecutive runs); default one each.
    """
    from solvers import column_groups

    rows = sparse.csr_array(matrix, dtype=np.float64)
    if not np.isfinite(rows.data).all():
        raise InputError("matrix: holds a NaN or an infinity")
    try:
        columns = column_groups(groups, rows.shape[1])
    except ValueError as error:
        raise InputError(str(error)) from None
    ids = [f"n{i}" for i in range(len(columns))] if names is None else [str(name) for name in names]
    if len(ids) != len(columns):
        raise InputError(f"names: {len(ids)} given for {len(columns)} nodes")
    owner = np.empty(rows.shape[1], dtype=np.int64)
    for node, indices in enumerate(columns):
        owner[indices] = node
    anchors = []
    for r in range(rows.shape[0]):
        touched = np.unique(owner[rows.indices[rows.indptr[r] : rows.indptr[r + 1]]])
        if not len(touched):
            continue  # a zero row says nothing and has no node to stand on
        dense = rows[[r]].toarray()[0]
        part = np.concatenate([dense[columns[i]] for i in touched])
        anchors.append({"id": f"row{r}", "nodes": [ids[i] for i in touched], "rows": [part.tolist()]})
    nodes = [{"id": name, "dim": len(indices)} for name, indices in zip(ids, columns, strict=True)]
    return Problem(nodes=nodes, anchors=anchors, **settings)


def save_operator(operator: Operator, path: str | os.PathLike[str]) -> None:
    """Write B, its groups and target as .npz (plain arrays, no pickles)."""
    matrix = operator.matrix.tocsr()
    np.savez_compressed(
        Path(path),
        format=np.array("rrf-operator/1"),
        data=matrix.data,
        indices=matrix.indices,
        indptr=matrix.indptr,
        shape=np.array(matrix.shape),
        node_offsets=operator.node_offsets,
        node_ids=np.array(operator.node_ids),
        target=operator.target,
    )


def load_operator(path: str | os.PathLike[str], **settings: Any) -> Problem:
    """A problem from an .npz written by `save_operator`, or by hand with arrays `B` and (optionally) `groups` as sizes."""
    try:
        with np.load(Path(path), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a readable .npz of plain arrays ({error})") from None
    if "B" in arrays:
        sizes = arrays["groups"].tolist() if "groups" in arrays else None
        return from_matrix(arrays["B"], sizes, **settings)
    missing = {"data", "indices", "indptr", "shape", "node_offsets"} - set(arrays)
    if missing:
        raise InputError(f"{path}: no array {sorted(missing)[0]!r}; expected an operator file or an array B")
    matrix = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))
    names = [str(name) for name in arrays["node_ids"]] if "node_ids" in arrays else None
    return from_matrix(matrix, np.diff(arrays["node_offsets"]).tolist(), names=names, **settings)
