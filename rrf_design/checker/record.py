"""The operator as a certificate carries it: exact doubles, the nodes, the row blocks and their
radii, one digest.

Small operators stand inside the document; large ones in an .npz beside it, named by the digest of
their content.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.errors import Refused

INLINE_ENTRIES = 5_000
"""Operators with more nonzeros than this go to a file."""
FILE_FORMAT = "rrf-certificate-operator/2"
_INTEGERS = ("node_sizes", "block_sizes", "touch_starts", "touch_nodes", "indptr", "indices")
_NAMES = ("node_ids", "block_ids", "block_kinds")
ARRAYS = (*_NAMES, *_INTEGERS, "radii", "data")
MOST_COLUMNS = (
    8_000_000  # coordinates of all nodes: a few numbers say how many, so they are bounded before they are believed
)
LARGEST_INDEX = MOST_COLUMNS * 2**20
LARGEST_ENTRY = 1e308
RANGE = 2.0**200  # the largest entry of a calm operator lies between one over this and this
COLUMN_SPREAD = 2.0**100  # between the largest entries of two of its columns
MOST_BYTES = 1 << 30  # of an operator's file, unpacked


def calm_columns(tops: NDArray[np.float64]) -> bool:
    """Do products of entries stay in the range of doubles, where these are the largest entries of
    the columns?
    """
    tops = tops[tops > 0.0]
    largest, smallest = float(tops.max(initial=0.0)), float(tops.min(initial=np.inf))
    return not len(tops) or (1.0 / RANGE <= largest <= RANGE and largest <= COLUMN_SPREAD * smallest)


@dataclass(frozen=True)
class OperatorRecord:
    """B in compressed rows. The columns of node i are consecutive, and so are the rows of
    block j.
    """

    node_ids: tuple[str, ...]
    node_sizes: NDArray[np.int64]
    block_ids: tuple[str, ...]
    block_kinds: tuple[str, ...]  # "relation" or "anchor"
    block_sizes: NDArray[np.int64]
    radii: NDArray[np.float64]
    touch_starts: NDArray[np.int64]
    """(blocks + 1,): the nodes that block j names are touch_nodes[touch_starts[j]:touch_starts[j +
    1]]; listed for blocks with a radius, which are uncertain on all of them, also where their
    coefficient is 0.
    """
    touch_nodes: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    data: NDArray[np.float64]

    def __post_init__(self) -> None:
        """Refused when the arrays are no operator: everything later relies on this."""
        nodes, blocks = len(self.node_ids), len(self.block_ids)
        if not len(self.indptr) or not len(self.touch_starts):
            raise Refused("operator: it has no row pointers")
        if not 0 <= float(self.node_sizes.sum(dtype=np.float64)) <= MOST_COLUMNS:
            raise Refused(f"operator: its nodes have more than {MOST_COLUMNS} coordinates")
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
            "block sizes do not add up to the rows": bool(((self.block_sizes < 0) | (self.block_sizes > rows)).any())
            or int(self.block_sizes.sum()) != rows,
            "a radius is negative or not finite": not bool((np.isfinite(self.radii) & (self.radii >= 0)).all()),
            "the nodes that blocks name are out of order": len(self.touch_starts) != blocks + 1
            or int(self.touch_starts[0]) != 0
            or int(self.touch_starts[-1]) != len(self.touch_nodes)
            or bool((np.diff(self.touch_starts) < 0).any()),
            "a block names a node that is not there": bool(
                ((self.touch_nodes < 0) | (self.touch_nodes >= nodes)).any()
            ),
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
        places = np.sort(row_of * max(columns, 1) + self.indices)
        if (places[1:] == places[:-1]).any():
            raise Refused("operator: a place in the matrix is given twice")
        for name in (*_INTEGERS, "radii", "data"):
            getattr(self, name).setflags(write=False)

    @property
    def rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def columns(self) -> int:
        return int(self.node_sizes.sum())

    @property
    def counts(self) -> dict[str, int]:
        """What a document says of it beside its digest."""
        sizes = {"rows": self.rows, "columns": self.columns}
        return {**sizes, "nodes": len(self.node_ids), "blocks": len(self.block_ids)}

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
    def incidence(self) -> Any:
        """(blocks, nodes): 1 where a block has an entry or names a node."""
        from scipy import sparse

        named = np.repeat(np.arange(len(self.block_ids)), np.diff(self.touch_starts))
        blocks = np.concatenate([self.block_of_row[self.row_of_entry], named])
        nodes = np.concatenate([self.node_of_column[self.indices], self.touch_nodes])
        shape = (len(self.block_ids), len(self.node_ids))
        result = sparse.csr_array((np.ones(len(nodes), dtype=np.int64), (blocks, nodes)), shape=shape)
        result.sum_duplicates()
        result.sort_indices()
        result.data = np.ones(len(result.data), dtype=np.int64)
        return result

    @cached_property
    def calm(self) -> bool:
        """Do products of entries, and what is left of them after eliminations, stay in the range of
        doubles?
        """
        sizes = np.abs(self.data)
        tops = np.zeros(self.columns)
        np.maximum.at(tops, self.indices, sizes)
        return calm_columns(tops)

    @cached_property
    def matrix(self) -> Any:
        """B as a scipy.sparse array in compressed rows."""
        from scipy import sparse

        made = sparse.csr_array((self.data, self.indices, self.indptr), shape=(self.rows, self.columns))
        return (
            made if made.has_sorted_indices else made.sorted_indices()
        )  # scipy would sort the arrays of the record itself

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
            **self.counts,
        }
        if file is not None:
            return {**head, "file": file}
        return {
            **head,
            **{name: list(getattr(self, name)) for name in _NAMES},
            **{name: getattr(self, name).tolist() for name in (*_INTEGERS, "radii", "data")},
        }


def record_from_lists(fields: dict[str, Any]) -> OperatorRecord:
    """From the lists of a document; Refused when a list holds something else."""
    values: dict[str, Any] = {}
    for name in ARRAYS:
        items = fields[name]
        if not isinstance(items, list):
            raise Refused(f"operator.{name}: must be a list")
        if name in _NAMES:
            if not set(map(type, items)) <= {str} and not all(isinstance(item, str) for item in items):
                raise Refused(f"operator.{name}: must hold strings")
            values[name] = tuple(items)
        elif name in _INTEGERS:
            values[name] = _whole_numbers(items)
            if values[name] is None:
                raise Refused(f"operator.{name}: must hold whole numbers")
        else:
            values[name] = _doubles(items)
            if values[name] is None:
                raise Refused(f"operator.{name}: must hold numbers")
    return OperatorRecord(**values)


def _whole_numbers(items: list[Any]) -> NDArray[np.int64] | None:
    """As an array; None where one is something else, or larger than any operator's."""
    if not set(map(type, items)) <= {int}:
        return None
    if max(items, default=0) >= LARGEST_INDEX or min(items, default=0) <= -LARGEST_INDEX:
        return None
    return np.array(items, dtype=np.int64)


def _doubles(items: list[Any]) -> NDArray[np.float64] | None:
    """As an array; None where one is something else, or not below the largest double."""
    if not set(map(type, items)) <= {int, float}:
        return None
    try:
        numbers = np.array(items, dtype=np.float64)
    except OverflowError:  # a whole number that no double comes near
        return None
    return numbers if bool((np.abs(numbers) < LARGEST_ENTRY).all()) else None


def load_record(path: Path) -> OperatorRecord:
    """From the .npz beside a certificate; Refused when it isn't one.

    An .npz is a zip of .npy files. Each is unpacked only when its stated size is bounded, and read
    only when its header describes exactly the bytes that follow: no pickles, no sizes on trust.
    """
    import zipfile

    values: dict[str, Any] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename: info for info in archive.infolist()}
            if set(members) != {f"{name}.npy" for name in ("format", *ARRAYS)} or len(archive.infolist()) != len(
                members
            ):
                raise Refused(f"operator file {path.name}: not in the format {FILE_FORMAT}")
            if sum(info.file_size for info in members.values()) > MOST_BYTES:
                raise Refused(f"operator file {path.name}: is larger than {MOST_BYTES} bytes")
            if _npy(archive.read("format.npy"), path.name).tolist() != [FILE_FORMAT]:
                raise Refused(f"operator file {path.name}: not in the format {FILE_FORMAT}")
            for name in ARRAYS:
                values[name] = _typed(_npy(archive.read(f"{name}.npy"), path.name), name, path.name)
    except FileNotFoundError:
        raise Refused(f"operator file {path.name}: not found beside the certificate") from None
    except Refused:
        raise
    except Exception as error:  # zipfile and zlib raise half a dozen kinds for damaged archives
        raise Refused(f"operator file {path.name}: not readable ({type(error).__name__})") from None
    return OperatorRecord(**values)


def _npy(content: bytes, file: str) -> NDArray[Any]:
    """A flat array from the bytes of an .npy file."""
    import io

    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        raise Refused(f"operator file {file}: an array is in another form")
    shape, _, kind = np.lib.format.read_array_header_1_0(stream)
    count = shape[0] if shape else 1
    start = stream.tell()
    if len(shape) > 1 or kind.kind not in "Uif" or count * kind.itemsize != len(content) - start:
        raise Refused(f"operator file {file}: an array is not a plain list")
    if kind.itemsize == 0 or count == 0:
        return np.zeros(count, dtype=kind)
    return np.frombuffer(content, dtype=kind, offset=start)


def _typed(array: NDArray[Any], name: str, file: str) -> Any:
    kind = "U" if name in _NAMES else "i" if name in _INTEGERS else "f"
    # an empty list of names is stored with a float type
    if array.dtype.kind != kind and array.size:
        raise Refused(f"operator file {file}: array {name} has the wrong type")
    if kind == "U":
        return tuple(str(item) for item in array)
    return array.astype(np.int64 if kind == "i" else np.float64)
