"""Large supports root by root; components and gauge directions."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from random_fields import brute, graph_field, lower_bound_holds
from scipy import sparse

from solvers import gauge_directions, group_spark, margin, support_margin
from solvers._gram import make_field
from solvers._root_batches import SAMPLES, Growth, Peeling, large_fronts
from solvers._search import TASKS, Search, _dense_part, _sparse_part, _whole_field, parts_of


def dense_front(B, size: int) -> tuple[float, Peeling]:
    """(γ² in the field's scale, a fresh front)."""
    field = make_field(B, None)
    nodes = np.arange(field.n)
    least = support_margin(B, size=size, method="search").value ** 2 * 4.0**-field.exponent
    return least, Peeling(_dense_part(field, nodes, size, field.shrink(size)))


def test_what_was_proved_stays_proved_when_the_threshold_falls():
    least, front = dense_front(np.random.default_rng(5).standard_normal((18, 16)), 7)
    theta = least * (1.0 - 1e-9)
    assert not front.run(theta)
    before = front.visited
    assert not front.run(theta * 0.9)
    assert front.visited == before
    assert front.floor == theta


def test_no_time_proves_nothing_and_some_time_loses_nothing():
    least, front = dense_front(np.random.default_rng(6).standard_normal((18, 16)), 7)
    theta = least * (1.0 - 1e-9)
    assert not front.run(theta, deadline=time.time() - 1.0)
    assert front.floor < theta
    assert not front.run(theta, deadline=time.time() + 600.0)
    assert front.floor == theta


def test_a_field_without_centres_needs_no_search():
    least, front = dense_front(np.eye(10) + 1e-3, 7)
    assert not front.run(0.5 * least)
    assert front.visited == 0
    assert front.floor >= 0.5 * least


def test_every_fraction_is_foretold_by_roots_of_its_own():
    """Roots that are done at θ say nothing about a lower one: no task is in two samples, and each
    sample is done at its own θ.
    """
    tasks = [task for sample in SAMPLES for task in sample]
    assert len(set(tasks)) == len(tasks)
    assert max(tasks) < TASKS
    least, front = dense_front(np.random.default_rng(1).standard_normal((18, 16)), 7)
    later = time.time() + 1e6
    for sample, theta in zip(SAMPLES, (0.9 * least, 0.5 * least), strict=False):
        found, fits = front._sample(theta, later, sample)
        assert not found
        assert fits
        assert front.proven is not None
        assert all(np.all(front.proven[task::TASKS] == theta) for task in sample)


FAMILIES = ("identity", "gaussian", "ternary", "half-empty", "dense", "integer", "disconnected", "cancelling")


def random_rows(family: str, seed: int, *, low: int = 8, high: int = 13):
    """A field of one of the families, with anchors on some nodes."""
    rng = np.random.default_rng([seed, FAMILIES.index(family)])
    n = int(rng.integers(low, high))
    if family == "dense":
        return rng.standard_normal((int(rng.integers(n - 1, 2 * n)), n))
    if family == "half-empty":
        return rng.standard_normal((2 * n, n)) * (rng.random((2 * n, n)) < 0.5)
    rows = []
    for _ in range(int(n * rng.choice([1.0, 1.4, 2.0]))):
        inside = rng.integers(2) * (n // 2) if family == "disconnected" else 0
        pool = np.arange(inside, inside + n // 2) if family == "disconnected" else np.arange(n)
        chosen = rng.choice(pool, 3 if family == "ternary" else 2, replace=False)
        row = np.zeros(n)
        if family in ("identity", "disconnected"):
            row[chosen] = 1.0, -1.0
        elif family == "integer":
            row[chosen] = rng.integers(-2, 3, len(chosen))
        else:
            row[chosen] = rng.standard_normal(len(chosen))
        rows.append(row)
        if family == "cancelling":  # adjacent, though their entry of BᵀB is zero
            rows.append(row * np.where(np.arange(n) == chosen[0], -1.0, 1.0))
    anchors = [np.eye(n)[i] * rng.choice([1.0, 0.1, 2.0]) for i in range(n) if rng.random() < 0.6]
    return np.array(rows + anchors)


@pytest.mark.parametrize("family", FAMILIES)
def test_they_agree_with_the_kernels_for_small_supports(family):
    used = set()
    for seed in range(24):
        B, size = random_rows(family, seed), 7 + seed % 3
        fast, slow = (support_margin(B, size=size, method=name) for name in ("completion", "search"))
        used.add(fast.method)
        assert fast.value == pytest.approx(slow.value, rel=1e-8, abs=1e-9)
        assert fast.status == slow.status == "exact"
        assert fast.lower <= slow.upper
        assert fast.upper >= slow.lower
    assert used & {"completion", "peeling", "completion and peeling"}


@pytest.mark.parametrize("family", FAMILIES)
def test_their_bounds_hold_in_exact_arithmetic(family):
    for seed in range(100, 102):
        B = random_rows(family, seed, high=10)
        found = support_margin(B, size=7, method="completion")
        oracle = support_margin(B, size=7, method="enumerate")
        assert found.value == pytest.approx(oracle.value, rel=1e-8, abs=1e-9)
        assert lower_bound_holds(B, [1] * B.shape[1], 7, found.lower)


def front_of(B, size: int, *, thin: bool):
    """The front of one connected field, of either kind, for any size."""
    from solvers._search import _dense_part, _sparse_part

    field = make_field(B, None)
    nodes, shrink = np.arange(field.n), field.shrink(size)
    if thin:
        return field, Growth(_sparse_part(field, nodes, [nodes], size, shrink))
    return field, Peeling(_dense_part(field, nodes, size, shrink))


@pytest.mark.parametrize("thin", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_a_threshold_above_the_minimum_is_never_proved_and_one_below_it_is(thin, seed):
    rng = np.random.default_rng(seed)
    B = np.vstack([rng.standard_normal((16, 11)) * (rng.random((16, 11)) < (0.25 if thin else 0.8)), np.eye(11) * 0.5])
    B[np.arange(10), np.arange(10)] = B[np.arange(10), np.arange(1, 11)] = 1.0  # one component
    size = 5 + seed % 4
    field, front = front_of(B, size, thin=thin)
    least = support_margin(B, size=size, method="enumerate").value ** 2 * 4.0**-field.exponent
    above = front.run(least * (1.0 + 1e-6))
    assert above
    for support in above:
        assert front.part.values([support])[0] < least * (1.0 + 1e-6)
    assert front.floor <= least
    _, front = front_of(B, size, thin=thin)
    assert not front.run(least * (1.0 - 1e-8))
    assert front.floor >= least * (1.0 - 1e-8)


def test_the_smaller_sizes_come_along():
    B = random_rows("gaussian", 3, low=12, high=13)
    field, front = front_of(B, 9, thin=True)
    least = support_margin(B, size=9).value ** 2 * 4.0**-field.exponent
    assert not front.run(least * (1.0 - 1e-8))
    smaller = front.smaller
    while smaller is not None:
        exact = support_margin(B, size=smaller.part.size, method="enumerate").value ** 2 * 4.0**-field.exponent
        assert smaller.floor == pytest.approx(exact, rel=1e-6)
        assert smaller.floor <= exact
        smaller = smaller.smaller


@pytest.mark.parametrize("thin", [True, False])
def test_roots_done_at_different_thresholds_add_up_to_a_proof(thin):
    """What was done at a higher threshold and what is done at a lower one must leave no support
    out.
    """
    for seed in range(30):
        rng = np.random.default_rng(seed)
        B = rng.standard_normal((9, 12)) * (rng.random((9, 12)) < (0.4 if thin else 1.0))
        B = np.vstack([B, 0.4 * np.eye(12)])
        field, front = front_of(B, 6 + seed % 3, thin=thin)
        least = support_margin(B, size=6 + seed % 3, method="search").value ** 2 * 4.0**-field.exponent
        for factor in (1.6, 1.3, 1.1, 1.02, 1.0 + 1e-6):
            assert front.run(least * factor), (seed, factor)
            assert front.floor <= least
        assert not front.run(least * (1.0 - 1e-8))


def test_a_time_limit_leaves_bounds_that_hold():
    rng = np.random.default_rng(2)
    dense = rng.standard_normal((30, 40))
    ring = sparse.eye_array(300) - sparse.eye_array(300, k=1) - 0.5 * sparse.eye_array(300, k=7)
    for B in (dense, sparse.csr_array(ring)):
        began = time.time()
        stopped = support_margin(B, size=14, time_limit=0.3, method="completion")
        assert 0.0 <= stopped.lower <= stopped.upper
        assert time.time() - began < 60.0  # a guard against no limit at all, not a measurement
        easier = support_margin(B, size=4)
        assert stopped.upper <= easier.upper * (1.0 + 1e-9)


def test_a_limit_makes_no_table_twice(monkeypatch):
    """The sample that tells whether all will fit is part of the work: what it has made is used."""
    made, make = [], Growth._shared

    def counted(front, theta, deadline):
        made.append((front.part.size, theta))
        return make(front, theta, deadline)

    monkeypatch.setattr(Growth, "_shared", counted)
    B = random_rows("gaussian", 3, low=12, high=13)
    without, (field, front) = front_of(B, 9, thin=True)[1], front_of(B, 9, thin=True)
    theta = support_margin(B, size=9).value ** 2 * 4.0**-field.exponent * (1.0 - 1e-8)
    made.clear()
    assert not without.run(theta)
    unlimited, made[:] = made.copy(), []
    assert not front.run(theta, deadline=time.time() + 3600.0)
    assert made == unlimited
    assert front.floor == without.floor


def test_every_number_of_processes_gives_the_same_bits():
    B = sparse.csr_array(np.kron(np.eye(3), random_rows("identity", 7, low=14, high=15)))
    one, two = (support_margin(B, size=8, n_jobs=jobs, method="completion") for jobs in (1, 2))
    assert (one.value, one.lower, one.upper, one.support, one.tested) == (
        two.value, two.lower, two.upper, two.support, two.tested,
    )  # fmt: skip


def test_blocks_and_hubs_are_left_to_the_other_kernels():
    assert large_fronts(parts_of(make_field(np.eye(20), [2] * 10), 8), always=True) is None
    hub = np.vstack([np.eye(400), np.eye(400)[:1] - np.eye(400)])
    assert large_fronts(parts_of(make_field(sparse.csr_array(hub), None), 8), always=True) is None
    thin = replace(parts_of(make_field(np.eye(20), None), 8)[0], size=6)
    assert large_fronts([thin], always=True) is None


def test_few_supports_are_gone_through_and_many_are_not():
    ring = sparse.csr_array(sparse.eye_array(60) - sparse.eye_array(60, k=1) - sparse.eye_array(60, k=-9))
    few, many = (parts_of(make_field(ring, None), size) for size in (7, 24))
    assert large_fronts(few) is None
    assert large_fronts(few, always=True) is not None
    assert large_fronts(many) is not None


def test_the_whole_field_bounds_every_support_from_below():
    B = np.random.default_rng(4).standard_normal((40, 12))
    bound = _whole_field(Search(make_field(B, None), 7))
    exact = np.linalg.svd(B, compute_uv=False)[-1] ** 2 * 4.0 ** -make_field(B, None).exponent
    assert bound == pytest.approx(exact, rel=1e-6)
    assert bound <= exact
    assert _whole_field(Search(make_field(B[:6], None), 7)) == 0.0


def found_by(part, theta, limit=100_000):
    order, centres = part.centres(theta)
    done, rows = part.scan(theta, order, np.arange(centres), np.zeros(1, np.int64), limit)
    assert done == centres
    return {tuple(sorted(int(i) for i in row if i >= 0)) for row in rows}


@pytest.mark.parametrize("dims", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 1.0])
def test_kernels_name_exactly_the_harmful_supports(dims, size, share):
    rng = np.random.default_rng([dims, size, int(share * 100)])
    n = 8 if dims < 3 else 7
    B = rng.standard_normal((n * dims + 2, n * dims))
    field = make_field(B, [dims] * n)
    values = brute(field, size, 0.0, connected=False)[1]
    ranked = sorted(values.values())
    theta = 0.999 * ranked[0] if share == 0 else ranked[-1] * 1.1 if share == 1 else ranked[int(share * len(ranked))]
    expected = {s for s, value in values.items() if value < theta}
    nodes = np.arange(n)
    shrink = field.shrink(size)
    near = {s for s, value in values.items() if abs(value - theta) < 1e-9}  # rounding may report the boundary itself
    for part in (_dense_part(field, nodes, size, shrink), _sparse_part(field, nodes, [nodes], size, shrink)):
        assert found_by(part, theta) - near == expected - near, part.kind


@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_sparse_kernels_look_at_connected_supports_and_whole_small_components(dims, seed):
    rng = np.random.default_rng(seed)
    size = 3 + seed % 3
    B = graph_field(10, rng, sizes=[dims], degree=1.6, anchors=0.2)
    field = make_field(B, [dims] * 10)
    theta = 0.7
    expected, _ = brute(field, size, theta, connected=True)
    for component in field.components:
        if len(component) < size:
            columns = field.columns_of(component)
            if np.linalg.eigvalsh(field.gram.toarray()[np.ix_(columns, columns)])[0] < theta:
                expected.add(tuple(int(i) for i in component))
    part = _sparse_part(field, np.arange(10), list(field.components), size, field.shrink(size))
    assert found_by(part, theta) == expected


def test_mixed_dimensions_in_every_kernel():
    rng = np.random.default_rng(4)
    sizes = [1, 3, 2, 1, 2]
    field = make_field(rng.standard_normal((12, 9)), sizes)
    nodes = np.arange(5)
    for size in (2, 3, 4):
        values = brute(field, size, 0.0, connected=False)[1]
        theta = sorted(values.values())[len(values) // 3]
        expected = {s for s, value in values.items() if value < theta * (1 - 1e-9)}
        for part in (
            _dense_part(field, nodes, size, field.shrink(size)),
            _sparse_part(field, nodes, [nodes], size, field.shrink(size)),
        ):
            assert found_by(part, theta * (1 - 1e-9)) == expected


def test_spark_decides_the_margin():
    chain = np.diff(np.eye(5), axis=0)
    spark = group_spark(chain)
    assert spark.value == 5
    assert not margin(chain, k=2).zero
    assert margin(chain, k=3).zero
    assert np.allclose(chain @ spark.direction, 0)


def test_spark_of_injective_matrices_is_infinite_and_zero_columns_count():
    assert group_spark(np.eye(4)).value == math.inf
    assert group_spark(np.array([[1.0, 0.0]])).value == 1
    searched = group_spark(np.diff(np.eye(6), axis=0), at_most=3)
    assert searched.value is None
    assert searched.searched == 3


def test_gauges_by_component():
    D = np.array([[-1.0, 1, 0, 0, 0], [0, 0, -2, 1, 0]])
    first, second, free = gauge_directions(D)
    assert (first.nodes, second.nodes, free.nodes) == ((0, 1), (2, 3), (4,))
    assert [g.dimension for g in (first, second, free)] == [1, 1, 1]
    assert np.allclose(D @ np.hstack([g.basis for g in (first, second, free)]), 0)
    assert second.basis[3, 0] == pytest.approx(2 * second.basis[2, 0])


def test_gauges_of_a_tall_component_take_no_more_room_than_it():
    D = np.tile([[1.0, -1.0]], (300_000, 1))  # a full U of so many rows would take 670 GiB
    (gauge,) = gauge_directions(D)
    assert np.allclose(gauge.basis[0], gauge.basis[1])


def test_holonomy_shrinks_the_gauge():
    def triangle(angle):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        eye, zero = np.eye(2), np.zeros((2, 2))
        return np.block([[-eye, eye, zero], [zero, -eye, eye], [turn, zero, -eye]])

    assert gauge_directions(triangle(0.0), [2, 2, 2])[0].dimension == 2
    assert gauge_directions(triangle(0.5), [2, 2, 2])[0].dimension == 0


def test_large_components_are_refused():
    path = sparse.diags_array([-1.0, 1.0], offsets=[0, 1], shape=(4000, 4001))
    with pytest.raises(ValueError, match="a component has 4001 coordinates"):
        gauge_directions(path)
