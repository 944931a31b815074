"""Following a field through purchases gives what solving it afresh gives."""

from __future__ import annotations

import numpy as np
import pytest
from random_fields import graph_field
from scipy import sparse

from solvers import MarginTracker, support_margin


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("dims", [1, 2])
def test_after_every_purchase_the_margin_is_that_of_all_rows(seed, dims):
    rng = np.random.default_rng([seed, dims])
    n = 9
    width = n * dims
    rows = graph_field(n, rng, sizes=[dims], degree=1.5) if seed % 2 else rng.standard_normal((3, width))
    size = 1 + seed % 4
    tracker = MarginTracker(rows, [dims] * n, size=size)
    for _ in range(8):
        block = np.zeros((1 + seed % 2, width))
        touched = rng.choice(width, 2, replace=False)
        block[:, touched] = rng.standard_normal((len(block), 2))
        tracker.add_rows(block)
        rows = np.vstack([rows, block])
        followed, fresh = tracker.margin(), support_margin(rows, [dims] * n, size=size)
        assert followed.value == pytest.approx(fresh.value, rel=1e-9, abs=1e-10)
        assert followed.status is fresh.status
        assert followed.lower <= fresh.upper
        assert fresh.lower <= followed.upper


def test_local_purchases_do_not_search_the_field_again():
    n = 3000
    rng = np.random.default_rng(0)
    ring = sparse.csr_array(np.roll(np.eye(n), 1, axis=1) - np.eye(n))
    tracker = MarginTracker(ring, size=2)
    for node in rng.choice(n, 40, replace=False):
        tracker.add_rows(sparse.csr_array(([1.0], ([0], [node])), shape=(1, n)))
        tracker.margin()
    assert tracker.refreshes <= 2


def test_rows_must_fit():
    tracker = MarginTracker(np.eye(3), size=2)
    with pytest.raises(ValueError, match="rows: 2 columns given, but the field has 3"):
        tracker.add_rows(np.ones((1, 2)))
    with pytest.raises(ValueError, match="rows: hold a NaN"):
        tracker.add_rows(np.array([[np.nan, 0, 0]]))


def test_supports_at_the_minimum_are_named_in_a_fixed_order():
    rows = np.zeros((3, 6))
    for pair in range(3):
        rows[pair, 2 * pair : 2 * pair + 2] = [1.0, -1.0]
    tracker = MarginTracker(rows, size=2)
    assert tracker.supports_at(0.0, limit=10) == ((0, 1), (2, 3), (4, 5))
    assert tracker.supports_at(0.0, limit=2) == ((0, 1), (2, 3))
    tracker.add_rows(np.eye(6)[:1])
    assert tracker.supports_at(0.0, limit=10) == ((2, 3), (4, 5))


def test_rows_of_any_form_and_size_are_taken() -> None:
    """Explicit zeros, entries given twice, and rows far larger than the field: the tracker agrees
    with a fresh solve.
    """
    base = np.vstack([np.eye(4), [[1.0, -1.0, 0.0, 0.0]]])
    twice = sparse.csr_array((np.array([1.0, 1.0, 0.0]), np.array([2, 2, 3]), np.array([0, 3])), shape=(1, 4))
    assert twice.nnz == 3
    rows = [twice, np.array([[0.0, 0.0, 1e100, 1e100]]), np.array([[1e-20, 0.0, 0.0, 1e-20]])]
    tracker, held = MarginTracker(base, size=2), base
    for row in rows:
        before = row.copy()
        tracker.add_rows(row)
        assert np.array_equal(
            np.asarray(before.todense() if sparse.issparse(before) else before),
            np.asarray(row.todense() if sparse.issparse(row) else row),
        )
        held = np.vstack([held, row.toarray() if sparse.issparse(row) else row])
        fresh, followed = support_margin(held, size=2), tracker.margin()
        assert followed.lower == pytest.approx(fresh.lower, rel=1e-8)
        assert followed.upper == pytest.approx(fresh.upper, rel=1e-8)
    with pytest.raises(ValueError, match="150 orders of magnitude"):
        tracker.add_rows(np.array([[1e-60, 0.0, 0.0, 0.0]]))
