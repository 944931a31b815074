"""Problems from other things people have: a networkx graph, a raw matrix with groups, an .npz file
with B.
"""

from __future__ import annotations

import os
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rrf_design.blocks import Anchor, Relation
from rrf_design.documents import write_bytes
from rrf_design.errors import InputError
from rrf_design.field import Node
from rrf_design.files import suggestion
from rrf_design.problem import Problem

if TYPE_CHECKING:
    import networkx as nx

    from rrf_design.operators import Operator
    from solvers import NodeColumns


class ProblemSettings(TypedDict, total=False):
    """What [problem] of a problem file may say, as keywords; see `Problem` for each."""

    name: str
    k: int
    budget: float | None
    target: float | None
    epsilon: float | None
    sigma: float | None
    confidence: float
    delta: float | None
    amplitude: float | None
    tail: float
    deliver: Sequence[str] | None
    wrong_checks: int
    variance_floor: float
    shrinkage: float
    rules: Sequence[Any]
    tiers: Sequence[Any]
    noise: Sequence[Any]


FORMAT = "rrf-operator/1"
_NODE_KEYS = tuple(Node.model_fields)
_EDGE_KEYS = tuple(name for name in Relation.model_fields if name not in ("tail", "head", "sum", "difference", "rows"))


def from_graph(
    graph: nx.Graph, *, anchors: Sequence[Any] = (), relations: Sequence[Any] = (), **settings: Unpack[ProblemSettings]
) -> Problem:
    """A problem from a networkx graph.

    Parameters
    ----------
    graph
        Directed or not, multi or not. Node attributes with the keys of a node and edge attributes
        with the keys of a relation are used. Others are ignored, and one warning names them; what
        looks like a misspelt key is refused. An undirected edge is oriented as networkx iterates
        it.
    anchors
        Names of nodes, tables as in a problem file, or `Anchor`s.
    relations
        More relations than edges can say: sums, differences, rows.
    settings
        What [problem] may say: `k`, `budget`, `target`, `epsilon` ... (`ProblemSettings`).

    Returns
    -------
    The `Problem`, with a node for each of the graph's and a relation for each edge.

    >>> import networkx as nx
    >>> import rrf_design as rrf
    >>> rrf.from_graph(nx.path_graph(4), anchors=[0], k=1).margin().support
    ('2', '3')
    """
    try:
        listed, edges = list(graph.nodes(data=True)), list(graph.edges(data=True))
    except (AttributeError, TypeError):
        raise InputError(f"graph: must be a networkx graph, not {type(graph).__name__}") from None
    ignored: dict[str, None] = {}
    nodes = [{"id": str(name), **_meant(own, _NODE_KEYS, f"node {str(name)!r}", ignored)} for name, own in listed]
    edge_relations = [
        {"id": f"r{number}", "tail": str(tail), "head": str(head)}
        | _meant(own, _EDGE_KEYS, f"edge {tail!r} - {head!r}", ignored)
        for number, (tail, head, own) in enumerate(edges, start=1)
    ]
    if ignored:
        warnings.warn(f"graph: ignored, as it means nothing here: {', '.join(ignored)}", stacklevel=2)
    tables = [a if isinstance(a, dict | Anchor) else {"id": f"a-{a}", "node": str(a)} for a in anchors]
    return Problem(nodes=nodes, relations=[*edge_relations, *relations], anchors=tables, **settings)


def from_matrix(
    matrix: Any,
    groups: Sequence[Any] | None = None,
    *,
    names: Sequence[str] | None = None,
    **settings: Unpack[ProblemSettings],
) -> Problem:
    """A problem whose B is the given matrix: one anchor per row, over the nodes that it touches.

    γ_k(B) = min over |S| ≤ 2k of σ_min(B_S), with the columns of B grouped by node.

    Parameters
    ----------
    matrix
        Rows × coordinates, dense or of scipy.sparse; rows of zeros say nothing and are left out.
    groups
        The columns of each node (lists of indices, or sizes of consecutive runs); by default each
        column is a node.
    names
        Ids of the nodes; by default n0, n1 ...
    settings
        What [problem] may say: `k`, `budget`, `target`, `epsilon` ... (`ProblemSettings`).

    Returns
    -------
    The `Problem`.

    >>> import rrf_design as rrf
    >>> rrf.from_matrix([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], k=1).margin().status.value
    'exact'
    """
    rows = _csr(matrix)
    columns, ids = _nodes(rows, groups, names)
    cuts = np.arange(rows.shape[0] + 1)
    blocks = [{"id": f"row{r}"} for r in range(rows.shape[0])]
    return _rows_as_anchors(rows, columns, ids, cuts, blocks, settings)


def save_operator(operator: Operator, path: str | os.PathLike[str]) -> None:
    """Write B, its nodes and blocks, and its target as plain arrays, without pickles.

    Parameters
    ----------
    operator
        Of a design: `problem.operator(select)`.
    path
        The .npz to write.

    >>> import pathlib, tempfile
    >>> import rrf_design as rrf
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "operator.npz"
    >>> rrf.save_operator(rrf.from_matrix([[2.0]]).operator(), path)
    >>> rrf.load_operator(path).margin().value
    2.0
    """
    matrix = operator.matrix.tocsr()
    stream = BytesIO()
    np.savez_compressed(
        stream,
        format=np.array(FORMAT),
        data=matrix.data,
        indices=matrix.indices,
        indptr=matrix.indptr,
        shape=np.array(matrix.shape),
        node_offsets=operator.node_offsets,
        node_ids=np.array(operator.node_ids),
        block_offsets=operator.block_offsets,
        block_ids=np.array(operator.block_ids),
        radii=operator.radii,
        target=operator.target,
    )
    write_bytes(path, stream.getvalue())


def load_operator(path: str | os.PathLike[str], **settings: Unpack[ProblemSettings]) -> Problem:
    """A problem from the matrix in a file of numpy.

    Parameters
    ----------
    path
        An .npz of `save_operator`, of `scipy.sparse.save_npz`, or with arrays `B` and perhaps
        `groups` (sizes).
    settings
        What [problem] may say: `k`, `budget`, `target`, `epsilon` ... (`ProblemSettings`).

    Returns
    -------
    The `Problem`; every block of a saved operator is one anchor with its rows, value and
    uncertainty.

    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import rrf_design as rrf
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "plain.npz"
    >>> np.savez(path, B=np.eye(3), groups=[1, 2])
    >>> rrf.load_operator(path).margin().value
    1.0
    """
    arrays = _read(Path(path))
    try:
        if "B" in arrays:
            sizes = np.atleast_1d(arrays["groups"]).tolist() if "groups" in arrays else None
            return from_matrix(arrays["B"], sizes, **settings)
        return _from_arrays(arrays, settings)
    except KeyError as error:
        raise InputError(f"{path}: no array {error}; expected an operator file or an array B") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise InputError(f"{path}: the arrays don't fit together ({error})") from None


def _from_arrays(arrays: dict[str, Any], settings: ProblemSettings) -> Problem:
    """`save_operator`'s arrays, or `scipy.sparse.save_npz`'s, which has neither nodes nor
    blocks.
    """
    kind = arrays["format"].item() if "format" in arrays else FORMAT
    form = {FORMAT: sparse.csr_array, b"csr": sparse.csr_array, b"csc": sparse.csc_array}.get(kind)
    if form is None:
        raise InputError(f"format {kind!r} is not one that can be read here; use {FORMAT}, csr or csc")
    matrix = form((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"].tolist()))
    matrix.check_format(full_check=True)
    rows = _csr(matrix)
    sizes = np.diff(arrays["node_offsets"]).tolist() if "node_offsets" in arrays else None
    if "block_offsets" not in arrays:
        return from_matrix(rows, sizes, names=arrays.get("node_ids"), **settings)
    columns, ids = _nodes(rows, sizes, arrays.get("node_ids"))
    cuts, target = arrays["block_offsets"], arrays["target"]
    if cuts[0] != 0 or cuts[-1] != rows.shape[0] or (np.diff(cuts) < 1).any() or len(target) != rows.shape[0]:
        raise InputError("block_offsets and target must cover the rows")
    blocks = []
    for name, first, last, radius in zip(arrays["block_ids"], cuts[:-1], cuts[1:], arrays["radii"], strict=True):
        block: dict[str, Any] = {"id": str(name), "uncertainty": float(radius)}
        if not np.isnan(target[first:last]).any():
            block["value"] = target[first:last].tolist()
        blocks.append(block)
    return _rows_as_anchors(rows, columns, ids, cuts, blocks, settings)


def _rows_as_anchors(
    rows: sparse.csr_array,
    columns: NodeColumns,
    ids: list[str],
    cuts: NDArray[np.int64],
    blocks: list[dict[str, Any]],
    settings: ProblemSettings,
) -> Problem:
    """One anchor per block of rows, over the nodes that its rows touch."""
    owner = np.empty(rows.shape[1], dtype=np.int64)
    owner[columns.order] = np.repeat(np.arange(len(columns)), columns.sizes)
    place = np.empty(rows.shape[1], dtype=np.int64)
    anchors = []
    for block, first, last in zip(blocks, cuts[:-1], cuts[1:], strict=True):
        entries = slice(rows.indptr[first], rows.indptr[last])
        touched = np.unique(owner[rows.indices[entries]]).tolist()
        if not touched:
            continue  # rows of zeros say nothing and have no node to stand on
        local = np.concatenate([columns[i] for i in touched])
        place[local] = np.arange(len(local))
        dense = np.zeros((last - first, len(local)))
        height = np.repeat(np.arange(last - first), np.diff(rows.indptr[first : last + 1]))
        dense[height, place[rows.indices[entries]]] = rows.data[entries]
        anchors.append({**block, "nodes": [ids[i] for i in touched], "rows": dense.tolist()})
    nodes = [{"id": name, "dim": int(size)} for name, size in zip(ids, columns.sizes, strict=True)]
    return Problem(nodes=nodes, anchors=anchors, **settings)


def _csr(matrix: Any) -> sparse.csr_array:
    """A sparse copy with real finite entries, or InputError."""
    try:
        given = matrix if sparse.issparse(matrix) else np.asarray(matrix)
    except ValueError:
        raise InputError("matrix: the rows differ in length") from None
    if given.ndim != 2 or given.dtype.kind not in "biuf":
        raise InputError(f"matrix: must be a rows × coordinates matrix of real numbers, not {type(matrix).__name__}")
    rows = sparse.csr_array(given, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    if not np.isfinite(rows.data).all():
        raise InputError("matrix: holds a NaN or an infinity")
    rows.eliminate_zeros()
    return rows


def _nodes(
    rows: sparse.csr_array, groups: Sequence[Any] | None, names: Sequence[Any] | None
) -> tuple[NodeColumns, list[str]]:
    from solvers import column_groups

    try:
        columns = column_groups(groups, rows.shape[1])
    except (ValueError, TypeError) as error:
        raise InputError(str(error)) from None
    ids = [f"n{i}" for i in range(len(columns))] if names is None else [str(name) for name in names]
    if len(ids) != len(columns):
        raise InputError(f"names: {len(ids)} given for {len(columns)} nodes")
    return columns, ids


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            stored = np.load(stream, allow_pickle=False)
            return {name: stored[name] for name in stored.files}
    except OSError as error:
        raise InputError(f"{path}: can't be read ({(error.strerror or str(error)).lower()})") from None
    except (ValueError, EOFError, KeyError, AttributeError, zipfile.BadZipFile, zlib.error, NotImplementedError):
        raise InputError(f"{path}: not a readable .npz of plain arrays") from None


def _meant(attributes: dict[str, Any], known: Sequence[str], where: str, ignored: dict[str, None]) -> dict[str, Any]:
    """The attributes that mean something here; the others are added to `ignored`.

    Numpy's numbers and arrays, common on graphs, become Python's. InputError for a misspelt key,
    and for one that only a relation written out can have.
    """
    found = {}
    for key, value in attributes.items():
        if key in known:
            found[key] = value.tolist() if hasattr(value, "tolist") else value
        elif (near := suggestion(str(key), known)) or key in Relation.model_fields:
            raise InputError(f"{where}: unknown attribute {key!r}{near}")
        else:
            ignored[f"{where.split()[0]} attribute {key!r}"] = None
    return found
