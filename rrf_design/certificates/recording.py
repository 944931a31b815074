"""From an assembled operator to the record that a certificate carries, and from the record to its file."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.certificates.checker.record import ARRAYS, FILE_FORMAT, OperatorRecord
from rrf_design.files import write_bytes

if TYPE_CHECKING:
    from rrf_design.operators import Operator


def record_of(operator: Operator) -> OperatorRecord:
    """The record of an assembled operator."""
    matrix = operator.matrix.tocsr()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    named = [[operator.node_index[node] for node in operator.uncertain.get(block, ())] for block in operator.block_ids]
    return OperatorRecord(
        node_ids=operator.node_ids,
        node_sizes=np.diff(operator.node_offsets).astype(np.int64),
        block_ids=operator.block_ids,
        block_kinds=operator.block_kinds,
        block_sizes=np.diff(operator.block_offsets).astype(np.int64),
        radii=np.array(operator.radii, dtype=np.float64),
        touch_starts=np.cumsum([0, *(len(nodes) for nodes in named)]).astype(np.int64),
        touch_nodes=np.array([i for nodes in named for i in nodes], dtype=np.int64),
        indptr=matrix.indptr.astype(np.int64),
        indices=matrix.indices.astype(np.int64),
        data=matrix.data.astype(np.float64),
    )


def save_record(record: OperatorRecord, path: str | os.PathLike[str]) -> None:
    """Write the arrays as .npz without pickles; whole or not at all."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {name: np.asarray(getattr(record, name)) for name in ARRAYS}
    np.savez_compressed(buffer, format=np.array(FILE_FORMAT), **arrays)
    write_bytes(path, buffer.getvalue())
