"""The operator as a certificate carries it: exact doubles, the nodes, the row blocks and their radii, one digest.

Small operators stand inside the document; large ones in an .npz beside it, named by the digest of their content.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.errors import Refused

if TYPE_CHECKING:
    from rrf_design.operator import Operator

INLINE_ENTRIES = 5_000
"""Operators with more nonzeros than this go to a file."""
FILE_FORMAT = "rrf-certificate-operator/1"
_INTEGERS = ("node_sizes", "block_sizes", "indptr", "indices")
_NAMES = ("node_ids", "block_ids", "block_kinds")
ARRAYS = (*_NAMES, *_INTEGERS, "radii", "data")


@dataclass(frozen=True)
class OperatorRecord:
    """B in compressed rows. The columns of node i are consecutive, and so are the rows of block j."""

    node_ids: tuple[str, ...]
    node_sizes: NDArray[np.int64]
    block_ids: tuple[str, ...]
    block_kinds: tuple[str, ...]  # "relation" or "anchor"
    block_sizes: NDArray[np.int64]
    radii: NDArray[np.float64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    data: NDArray[np.float64]

    def __post_init__(self) -> None:
        """Refused when the arrays are no operator: everything later relies on this."""
        nodes, blocks = len(self.node_ids), len(self.block_ids)
        rows, columns = len(self.indptr) - 1, int(self.node_sizes.sum())
        faults = {
            "it has no node": nodes == 0,
            "node ids are not unique": len(set(self.node_ids)) != nodes,
            "block ids are not unique": len(set(self.block_ids)) != blocks,
            "the number of node sizes is not that of nodes": len(self.node_sizes) != nodes,
            "a node has no coordinate": bool((self.node_sizes < 1).any()),
            "block arrays differ in length": not (
                len(self.block_sizes) == len(self.block_kinds) == len(self.radii) == blocks
            ),
            "a block is neither relation nor anchor": not set(self.block_kinds) <= {"relation", "anchor"},
            "block sizes do not add up to the rows": bool((self.block_sizes < 0).any())
            or int(self.block_sizes.sum()) != rows,
            "a radius is negative or not finite": not bool((np.isfinite(self.radii) & (self.radii >= 0)).all()),
            "row pointers are out of order": rows < 0
            or int(self.indptr[0]) != 0
            or int(self.indptr[-1]) != len(self.indices)
            or bool((np.diff(self.indptr) < 0).any()),
            "columns and entries differ in number": len(self.indices) != len(self.data),
            "a column is out of range": bool(((self.indices < 0) | (self.indices >= columns)).any()),
            "an entry is not a finite number": not bool(np.isfinite(self.data).all()),
        }
        for fault, present in faults.items():
            if present:
                raise Refused(f"operator: {fault}")
        row_of = np.repeat(np.arange(rows), np.diff(self.indptr))
        places = row_of * max(columns, 1) + self.indices
        if len(np.unique(places)) != len(places):
            raise Refused("operator: a place in the matrix is given twice")
        for name in (*_INTEGERS, "radii", "data"):
            getattr(self, name).setflags(write=False)

    @property
    def rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def columns(self) -> int:
        return int(self.node_sizes.sum())

    @cached_property
    def node_starts(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.node_sizes)]).astype(np.int64)

    @cached_property
    def node_index(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.node_ids)}

    @cached_property
    def node_of_column(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.node_ids)), self.node_sizes)

    @cached_property
    def row_of_entry(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.rows), np.diff(self.indptr))

    @cached_property
    def block_of_row(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.block_ids)), self.block_sizes)

    @cached_property
    def matrix(self) -> Any:
        """B as a scipy.sparse array in compressed rows."""
        from scipy import sparse

        return sparse.csr_array((self.data, self.indices, self.indptr), shape=(self.rows, self.columns))

    @cached_property
    def by_column(self) -> Any:
        return self.matrix.tocsc()

    def columns_of(self, nodes: Any) -> NDArray[np.int64]:
        """Column numbers of some nodes, in their order."""
        return np.concatenate([np.arange(self.node_starts[i], self.node_starts[i + 1]) for i in nodes])

    def dense_part(self, nodes: Any) -> NDArray[np.float64]:
        """B_S without its zero rows, dense."""
        part = self.by_column[:, self.columns_of(nodes)]
        rows, places = np.unique(part.indices, return_inverse=True)
        result = np.zeros((len(rows), part.shape[1]))
        result[places, np.repeat(np.arange(part.shape[1]), np.diff(part.indptr))] = part.data
        return result

    @cached_property
    def digest(self) -> str:
        """SHA-256 over names and arrays in a fixed form (little-endian, 64 bits)."""
        total = hashlib.sha256(FILE_FORMAT.encode())
        for name in ARRAYS:
            value = getattr(self, name)
            if name in _NAMES:
                content = json.dumps(list(value), ensure_ascii=True, separators=(",", ":")).encode()
            else:
                content = value.astype("<i8" if name in _INTEGERS else "<f8").tobytes()
            total.update(f"\n{name} {len(content)}\n".encode())
            total.update(content)
        return total.hexdigest()

    def to_document(self, *, file: str | None = None) -> dict[str, Any]:
        head: dict[str, Any] = {
            "storage": "inline" if file is None else "file",
            "digest": self.digest,
            "rows": self.rows,
            "columns": self.columns,
            "nodes": len(self.node_ids),
            "blocks": len(self.block_ids),
        }
        if file is not None:
            return {**head, "file": file}
        return {**head, **{name: _as_list(getattr(self, name)) for name in ARRAYS}}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the arrays as .npz without pickles; whole or not at all."""
        buffer = io.BytesIO()
        arrays: dict[str, Any] = {name: np.asarray(getattr(self, name)) for name in ARRAYS}
        np.savez_compressed(buffer, format=np.array(FILE_FORMAT), **arrays)
        from rrf_design.files import write_bytes  # not at the top: the verifier only reads

        write_bytes(path, buffer.getvalue())


def record_of(operator: Operator, *, radii: NDArray[np.float64] | None = None) -> OperatorRecord:
    """The record of an assembled operator; `radii` replace the declared ones."""
    matrix = operator.matrix.tocsr()
    matrix.sum_duplicates()
    return OperatorRecord(
        node_ids=operator.node_ids,
        node_sizes=np.diff(operator.node_offsets).astype(np.int64),
        block_ids=operator.block_ids,
        block_kinds=operator.block_kinds,
        block_sizes=np.diff(operator.block_offsets).astype(np.int64),
        radii=np.array(operator.radii if radii is None else radii, dtype=np.float64),
        indptr=matrix.indptr.astype(np.int64),
        indices=matrix.indices.astype(np.int64),
        data=matrix.data.astype(np.float64),
    )


def record_from_lists(fields: dict[str, Any]) -> OperatorRecord:
    """From the lists of a document; Refused when a list holds something else."""
    values: dict[str, Any] = {}
    for name in ARRAYS:
        items = fields[name]
        if not isinstance(items, list):
            raise Refused(f"operator.{name}: must be a list")
        if name in _NAMES:
            if not all(isinstance(item, str) for item in items):
                raise Refused(f"operator.{name}: must hold strings")
            values[name] = tuple(items)
        elif name in _INTEGERS:
            if not all(type(item) is int and abs(item) < 2**53 for item in items):
                raise Refused(f"operator.{name}: must hold whole numbers")
            values[name] = np.array(items, dtype=np.int64)
        else:
            if not all(type(item) in (int, float) and abs(item) < 1e308 for item in items):
                raise Refused(f"operator.{name}: must hold numbers")
            values[name] = np.array(items, dtype=np.float64)
    return OperatorRecord(**values)


def load_record(path: Path) -> OperatorRecord:
    """From the .npz beside a certificate; Refused when it isn't one."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except FileNotFoundError:
        raise Refused(f"operator file {path.name}: not found beside the certificate") from None
    except Exception as error:  # np.load raises half a dozen kinds for damaged archives
        raise Refused(f"operator file {path.name}: not readable ({error})") from None
    if str(arrays.get("format", "")) != FILE_FORMAT or set(arrays) != {"format", *ARRAYS}:
        raise Refused(f"operator file {path.name}: not in the format {FILE_FORMAT}")
    values: dict[str, Any] = {}
    for name in ARRAYS:
        kind = "U" if name in _NAMES else "i" if name in _INTEGERS else "f"
        # an empty list of names is stored with a float type
        if arrays[name].ndim != 1 or (arrays[name].dtype.kind != kind and arrays[name].size):
            raise Refused(f"operator file {path.name}: array {name} has the wrong type")
        if kind == "U":
            values[name] = tuple(str(item) for item in arrays[name])
        else:
            values[name] = arrays[name].astype(np.int64 if kind == "i" else np.float64)
    return OperatorRecord(**values)


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else list(value.tolist())
