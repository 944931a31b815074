"""γ of the values that are delivered, and two explanations that differ in them."""

from __future__ import annotations

import numpy as np
import pytest
from delivered_oracle import columns_of, delivered_holds, delivered_value, holds
from random_fields import KINDS, graph_field, random_field
from scipy import sparse

from solvers import (
    Status,
    delivered_margin,
    delivered_supports_below,
    delivered_worst_supports,
    margin,
    rival_pair,
    suspect_margin,
)

PAIR = np.array([[-1.0, 1.0]])
INVOICE = np.array([[1.0, 1.0, -1.0], [0.0, 0.0, 1.0]])  # net + tax = total, and a label on the total


@pytest.mark.parametrize(
    ("deliver", "options", "message"),
    [
        ((), {"k": 1}, "deliver: names no column; at least one value must be delivered"),
        ([2], {"k": 1}, "deliver: there is no column 2; the matrix has 2"),
        ([-1], {"k": 1}, "deliver: there is no column -1"),
        ([0.5], {"k": 1}, "deliver: must be a list of column numbers"),
        (3, {"k": 1}, "deliver: must be a list of column numbers, not 3"),
        ([0], {"k": 0}, "k: must be a whole number of at least 1, not 0"),
        ([0], {"k": 1, "n_jobs": 0}, "n_jobs: must be a number of processes"),
        ([0], {"k": 1, "method": "fast"}, "method: 'fast' is not one of auto, search, completion"),
        ([0], {"k": 1, "time_limit": -1}, "time_limit: must be a number of seconds"),
    ],
)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_wrong_calls_get_one_precise_line(form, deliver, options, message):
    with pytest.raises(ValueError, match=r"^[^\n]*$") as caught:
        delivered_margin(form(PAIR), None, deliver, **options)
    assert message in str(caught.value)


def _groups(sizes):
    ends = np.cumsum(sizes)
    return [list(range(end - size, end)) for size, end in zip(sizes, ends, strict=True)]


def _check(B, groups, deliver, k, found):
    """Value, both bounds and witness against the definition, in exact arithmetic."""
    size, inside = 2 * k, sorted(deliver)
    assert found.lower <= found.value <= found.upper
    assert delivered_holds(B, groups, deliver, size, found.lower)
    columns = columns_of(groups, found.support)
    wanted = np.array([c in deliver for c in columns])
    assert not holds(B[:, columns], wanted, np.nextafter(found.upper, np.inf), strictly=True)
    h = found.direction
    assert np.linalg.norm(h[inside]) == pytest.approx(1.0)
    assert set(np.flatnonzero(h)) <= set(columns)
    assert len(found.support) <= size
    assert not h.flags.writeable


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(10))
def test_agrees_with_enumeration_and_holds_in_exact_arithmetic(kind, seed):
    B, sizes = random_field(kind, seed)
    B, groups = np.asarray(B, dtype=float), _groups(sizes)
    rng = np.random.default_rng([seed, 7])
    count = 1 if seed % 2 else int(rng.integers(1, B.shape[1] + 1))
    deliver = {int(c) for c in rng.choice(B.shape[1], size=count, replace=False)}
    k = 1 + seed % 3
    found = delivered_margin(B, sizes, sorted(deliver), k=k)
    assert found.status is Status.EXACT
    _check(B, groups, deliver, k, found)
    if kind != "ill-scaled":  # there the oracle's floating point is the weaker one
        scale = np.linalg.norm(B, 2)
        assert found.value == pytest.approx(delivered_value(B, groups, deliver, 2 * k), rel=1e-8, abs=1e-9 * scale)
    assert found.upper >= margin(B, sizes, k=k).lower


def blind_field(seed):
    """Small whole-number rows with dependent columns, so that much is invisible outside D."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    B = rng.integers(-1, 2, size=(int(rng.integers(2, n + 3)), n)) * (rng.random((1, n)) < 0.9)
    B = B * (rng.random(B.shape) < 0.6)
    if seed % 3 == 0 and n > 3:
        B[:, 1], B[:, 2] = B[:, 0], B[:, 0] + B[:, 3]
    first = int(rng.integers(n))
    deliver = {first} | ({int(rng.integers(n))} if seed % 4 == 0 else set())
    groups = [[0, 1], *([i] for i in range(2, n))] if seed % 5 == 0 else [[i] for i in range(n)]
    return np.vstack([B, np.eye(n)[first]]).astype(float), groups, deliver


def test_blind_directions_outside_do_no_harm():
    unseen = 0
    for seed in range(120):
        B, groups, deliver = blind_field(seed)
        k = 1 + seed % 3
        found = delivered_margin(B, groups, sorted(deliver), k=k)
        assert found.status is Status.EXACT
        _check(B, groups, deliver, k, found)
        assert found.value == pytest.approx(delivered_value(B, groups, deliver, 2 * k), abs=1e-9)
        unseen += not found.zero and margin(B, groups, k=k).zero
    assert unseen > 40


def test_an_invoice_whose_split_nobody_needs():
    assert margin(INVOICE, k=1).value == 0.0
    total = delivered_margin(INVOICE, None, [2], k=1)
    assert total.value == pytest.approx(1.0)
    net = delivered_margin(INVOICE, None, [0], k=1)
    assert net.value == 0.0
    assert np.linalg.norm(INVOICE @ net.direction) <= net.upper <= 1e-12


def test_zero_exactly_where_an_invisible_vector_meets_what_is_delivered():
    for seed in range(60):
        B, groups, deliver = blind_field(seed)
        found = delivered_margin(B, groups, sorted(deliver), k=1)
        assert found.zero == (not _strictly_positive(B, groups, deliver))


def _strictly_positive(B, groups, deliver):
    """λ > 0 on every support, in exact rationals (a positive λ of these matrices is far above
    1e-6).
    """
    return delivered_holds(B, groups, deliver, 2, 1e-6)


def test_all_or_twins_delivered_is_the_plain_margin() -> None:
    for seed in range(8):
        B = graph_field(9, np.random.default_rng(seed), anchors=0.6)
        plain, all_of_it = margin(B, k=2), delivered_margin(B, None, range(9), k=2)
        assert all_of_it.value == pytest.approx(plain.value, abs=1e-12)
    parts = 60
    B = np.vstack([np.append(np.ones(parts), -1.0), np.eye(parts + 1)[-1]])
    found = delivered_margin(B, None, [parts], k=3)
    assert (found.value, found.status) == (pytest.approx(1.0), Status.EXACT)


@pytest.mark.parametrize(
    ("judges", "ties", "labels", "alone", "together"),
    [
        (2, [(0, 1)], [], 0.6180339887498948, 0.0),
        (3, [(0, 1), (1, 2), (0, 2)], [], 0.7653668647301795, 0.6180339887498948),
        (3, [(0, 1), (1, 2)], [], 0.6180339887498948, 0.4158233816355186),
        (2, [(0, 1)], [0], 0.6180339887498948, 0.4158233816355186),
    ],
)
def test_judges_that_fail_as_a_whole(judges, ties, labels, alone, together):
    """Each judge is asked in both orders, the two orders tied, and first orders tied among
    judges.
    """
    eye = np.eye(2 * judges)
    rows = [eye[2 * j] - eye[2 * j + 1] for j in range(judges)]
    rows += [eye[2 * i] - eye[2 * j] for i, j in ties] + [eye[node] for node in labels]
    B = np.array(rows)
    assert margin(B, k=1).value == pytest.approx(alone, abs=1e-12)
    assert margin(B, [2] * judges, k=1).value == pytest.approx(together, abs=1e-12)


def test_large_fields_are_searched_around_what_is_delivered():
    n = 5000
    ring = sparse.eye_array(n) - sparse.eye_array(n, k=1) - sparse.eye_array(n, k=1 - n)
    B = sparse.vstack([ring, 0.3 * sparse.eye_array(n)])
    for form in ("csr", "csc", "coo"):
        found = delivered_margin(B.asformat(form), None, [2500], k=2)
        assert found.status is Status.EXACT
        assert all(2496 < node < 2504 for node in found.support)
        assert len(found.direction) == n
        assert np.linalg.norm(B @ found.direction) == pytest.approx(found.value)
    near = slice(2490, 2511)
    local = delivered_margin(B.tocsr()[:, near], None, [10], k=2)
    assert local.value == pytest.approx(found.value)


def test_lists_of_supports_are_complete_and_cuts():
    B = graph_field(8, np.random.default_rng(3), anchors=0.7)
    deliver = [0, 5]
    best = delivered_margin(B, None, deliver, k=1)
    below = delivered_supports_below(B, None, deliver, size=2, threshold=2.0 * best.upper)
    worst = delivered_worst_supports(B, None, deliver, size=2, count=3)
    assert below.complete
    assert worst[0].value == pytest.approx(best.value)
    assert [v.value for v in worst] == sorted(v.value for v in worst)
    assert {v.support for v in below.supports} >= {best.support}
    for value in (*below.supports, *worst):
        assert np.linalg.norm(value.direction[deliver]) == pytest.approx(1.0)
        assert np.linalg.norm(B @ value.direction) == pytest.approx(value.value, abs=1e-12)
        assert set(value.support) & set(deliver)


def test_a_time_limit_gives_bounds_and_never_a_guess():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((30, 40))
    found = delivered_margin(B, None, range(0, 40, 2), k=4, time_limit=0.0)
    assert found.status is Status.BOUNDED
    assert found.lower <= found.value <= found.upper
    assert np.linalg.norm(B @ found.direction) <= found.upper


def test_every_number_of_processes_gives_the_same_answer():
    B = graph_field(40, np.random.default_rng(1), anchors=0.5)
    one, two = (delivered_margin(B, None, [0, 7, 9], k=2, n_jobs=jobs) for jobs in (1, 2))
    assert (one.value, one.lower, one.upper, one.support) == (two.value, two.lower, two.upper, two.support)


def test_progress_hears_bounds():
    heard = []
    B = graph_field(30, np.random.default_rng(2), anchors=1.0)
    found = delivered_margin(B, None, range(30), k=2, progress=lambda *args: heard.append(args))
    assert heard
    assert all(lower <= found.upper * (1 + 1e-12) and upper >= found.lower for _, (lower, upper), _ in heard)


def large_field(seed):
    """(matrix, delivered): supports of eight among a dozen nodes and more; crowded, thin, with a
    blind direction beside what is delivered.
    """
    rng = np.random.default_rng([9, seed])
    n = int(rng.integers(12, 19))
    if seed % 2:
        matrix = rng.standard_normal((n + int(rng.integers(-3, 6)), n)) * (rng.random((1, n)) < 0.95)
    else:
        rows = np.zeros((int(1.6 * n), n))
        for row in rows:
            row[rng.choice(n, 2 + seed % 4 // 2, replace=False)] = rng.choice([1.0, -1.0, 0.5], 2 + seed % 4 // 2)
        matrix = np.vstack([rows, np.eye(n)[rng.random(n) < 0.5]])
    deliver = np.flatnonzero(rng.random(n) < rng.choice([0.15, 0.5, 0.9]))
    outside = np.setdiff1d(np.arange(n), deliver)
    if seed % 5 == 0 and len(outside) > 1:
        matrix[:, outside[1]] = matrix[:, outside[0]]
    return matrix, deliver if len(deliver) else np.array([0])


@pytest.mark.parametrize("seed", range(24))
def test_large_supports_root_by_root_say_what_the_search_says(seed):
    matrix, deliver = large_field(seed)
    quick, slow = (delivered_margin(matrix, None, deliver, k=4, method=way) for way in ("completion", "search"))
    assert quick.status == slow.status
    assert quick.value == pytest.approx(slow.value, rel=1e-8, abs=1e-12)
    assert quick.lower <= slow.upper
    assert slow.lower <= quick.upper


@pytest.mark.parametrize("share", [2, 7])
def test_without_time_the_whole_matrix_still_bounds_what_is_delivered(share):
    rng = np.random.default_rng(4)
    matrix = np.vstack([rng.standard_normal((20, 24)), 0.5 * np.eye(24)])
    deliver = np.arange(0, 24, share)
    late = delivered_margin(matrix, None, deliver, k=4, time_limit=0.0)
    exact = delivered_margin(matrix, None, deliver, k=4)
    assert 0.0 < late.lower <= exact.upper
    assert late.lower >= np.linalg.svd(matrix, compute_uv=False)[-1] * (1 - 1e-8)
    assert exact.lower >= late.lower


EPSILON, RADIUS = 0.01, 5.0


def _units(groups, vector):
    return sum(bool(np.any(vector[columns])) for columns in groups)


def _admissible(B, found, pair, epsilon):
    assert pair.residual <= epsilon + 1e-12
    for error, disturbance in ((pair.first, pair.first_disturbance), (pair.second, pair.second_disturbance)):
        assert np.linalg.norm(B @ error + disturbance - pair.measured) <= epsilon + 1e-12
        assert _units(found.groups, error) <= found.k


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("k", [1, 2])
def test_both_explain_the_measurement_and_are_as_far_apart_as_the_margin_says(seed, k):
    B = graph_field(8, np.random.default_rng(seed), anchors=0.8)
    found = margin(B, k=k)
    pair = rival_pair(B, found, epsilon=EPSILON, radius=RADIUS)
    _admissible(B, found, pair, EPSILON)
    promised = RADIUS if found.zero else min(RADIUS, 2 * EPSILON / found.value)
    assert pair.distance == pytest.approx(promised, rel=1e-9)
    assert np.linalg.norm(pair.first - pair.second) == pytest.approx(pair.distance)


def test_what_is_delivered_differs_by_the_distance():
    B = np.array([[1.0, 1.0, -1.0], [0.0, 0.0, 1.0], [0.3, 0.0, 0.0]])
    found = delivered_margin(B, None, [2], k=1)
    pair = rival_pair(B, found, epsilon=EPSILON, radius=RADIUS)
    _admissible(B, found, pair, EPSILON)
    assert abs(pair.first[2] - pair.second[2]) == pytest.approx(2 * EPSILON / found.value)
    assert pair.distance <= 2 * EPSILON / found.lower  # and never further apart than the theorem allows


def test_wrong_checks_are_shared_out_too():
    B = np.vstack([np.eye(2)] * 4 + [np.array([[1.0, -1.0]])])
    found = suspect_margin(B, k=1, suspects=1)
    pair = rival_pair(B, found, epsilon=EPSILON, radius=RADIUS)
    _admissible(B, found, pair, EPSILON)
    for disturbance in (pair.first_disturbance, pair.second_disturbance):
        assert np.count_nonzero(disturbance) <= 1
    assert np.linalg.norm(pair.first - pair.second) == pytest.approx(2 * EPSILON / found.value)


def test_at_zero_only_the_radius_limits():
    B = np.array([[-1.0, 1.0]])
    found = margin(B, k=1)
    pair = rival_pair(B, found, epsilon=0.0, radius=RADIUS)
    assert found.zero
    assert pair.distance == RADIUS
    assert pair.residual <= 1e-12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": -1.0, "radius": 1.0}, "epsilon: must be a finite number"),
        ({"epsilon": 1.0, "radius": 0.0}, "radius: must be a finite number above 0"),
        ({"epsilon": 1.0, "radius": np.inf}, "radius: must be a finite number above 0"),
    ],
)
def test_wrong_calls(options, message):
    B = np.eye(2)
    with pytest.raises(ValueError, match=message):
        rival_pair(B, margin(B, k=1), **options)
