from __future__ import annotations

import numpy as np
import pytest

from solvers import margin
from solvers.warm import KINDS, _compile_kernels, small_field


@pytest.mark.parametrize(("dim", "thin"), KINDS)
def test_the_fields_are_of_their_kind_and_worth_asking(dim: int, thin: bool) -> None:
    matrix, groups = small_field(dim, thin)
    assert matrix.shape[1] == sum(groups)
    assert hasattr(matrix, "tocsr") == thin
    assert margin(matrix, groups, k=1).lower > 0


def test_every_kernel_of_a_kind_is_met() -> None:
    _compile_kernels(1, True)
    from solvers.kernels import growth, pieces, sparse

    for kernel in (sparse.scan_sparse, growth.grow, pieces.piece_tables):
        assert kernel.signatures
    from solvers.kernels import covers, exchange, support_pairs, support_spans

    assert covers.separate.signatures
    assert exchange.exchange_rows.signatures

    for kernel in (support_pairs.scan_pairs, support_spans.sparse_overlap, support_spans.orthonormal):
        assert kernel.signatures
    assert np.isfinite(small_field(1, True)[0].data).all()
