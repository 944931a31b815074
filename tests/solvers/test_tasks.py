"""Work shared out, compiled once, and margins followed through purchases."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import CancelledError

import joblib
import numpy as np
import pytest
from random_fields import graph_field
from scipy import sparse

from solvers import MarginTracker, margin, support_margin
from solvers.kernels.kernel import all_compiled
from solvers.tasks import run_tasks, stopping_at
from solvers.warm import KINDS, _ask_everything, _small_field


def square(x, *, stop=None):
    return x * x


def broken(x, *, stop=None):
    raise RuntimeError(f"task {x}")


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
@pytest.mark.parametrize("work", [0.0, np.inf])
def test_results_come_in_the_order_of_the_jobs(n_jobs, work):
    heard = []
    assert run_tasks(square, [(i,) for i in range(5)], n_jobs=n_jobs, work=work, progress=heard.append) == [
        0, 1, 4, 9, 16,
    ]  # fmt: skip
    assert heard == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])


def test_futile_work_is_left_out():
    assert run_tasks(square, [(i,) for i in range(5)], n_jobs=None, work=0.0, futile=lambda x: x >= 4) == [0, 1, 4]


@pytest.mark.parametrize("work", [0.0, np.inf])
def test_a_fault_in_a_task_is_the_callers(work):
    with pytest.raises(RuntimeError, match="task 0"):
        run_tasks(broken, [(0,), (1,)], n_jobs=None, work=work)


def test_the_clock_is_heard():
    with stopping_at(time.time() - 1.0) as stop:
        began = time.time()
        while not stop[0] and time.time() - began < 30.0:
            pass
        assert stop[0]
    with stopping_at(None) as stop:
        assert not stop[0]


distributed = pytest.importorskip("distributed", reason="the cluster extra is not installed")


def _solve_while_a_worker_dies(B):
    killed = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", silence_logs="CRITICAL"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        workers = client.run(os.getpid)

        def kill_one(*_):
            if not killed:
                killed.append(next(iter(workers.values())))
                os.kill(killed[0], signal.SIGKILL)

        with joblib.parallel_config(backend="dask"):
            return support_margin(B, size=5, progress=kill_one), killed


@pytest.mark.filterwarnings("default")
def test_a_cluster_gives_the_same_answer_though_a_worker_dies():
    B = np.random.default_rng(21).standard_normal((90, 130))
    alone = support_margin(B, size=5)
    for attempt in range(2):  # a cluster that does not come up, or goes away whole, says nothing about the answer
        try:
            together, killed = _solve_while_a_worker_dies(B)
            break
        except (OSError, TimeoutError, CancelledError):
            if attempt:
                raise
    assert killed
    assert (together.value, together.lower, together.upper, together.support) == (
        alone.value,
        alone.lower,
        alone.upper,
        alone.support,
    )


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


@pytest.mark.parametrize(("dim", "thin"), KINDS)
def test_the_fields_are_of_their_kind_and_worth_asking(dim: int, thin: bool) -> None:
    matrix, groups = _small_field(dim, thin)
    assert matrix.shape[1] == sum(groups)
    assert hasattr(matrix, "tocsr") == thin
    assert margin(matrix, groups, k=1).lower > 0


def test_every_kernel_of_a_kind_is_met() -> None:
    with all_compiled():
        _ask_everything(1, True)
    from solvers.kernels import growth, pieces, sparse

    for kernel in (sparse.scan_sparse, growth.grow, pieces.piece_tables):
        assert kernel.dispatcher.signatures
    from solvers.kernels import covers, exchange, support_pairs, support_spans

    assert covers.separate.dispatcher.signatures
    assert exchange.exchange_rows.dispatcher.signatures

    for kernel in (support_pairs.scan_pairs, support_spans.sparse_overlap, support_spans.orthonormal):
        assert kernel.dispatcher.signatures
    assert np.isfinite(_small_field(1, True)[0].data).all()
