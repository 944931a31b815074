"""γ against enumeration, closed forms and exact rationals; its result and its search."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from random_fields import KINDS, brute, graph_field, lower_bound_holds, random_field, upper_bound_holds
from scipy import sparse

from solvers import (
    Interrupted,
    Margin,
    Status,
    delivered_margin,
    margin,
    margins,
    support_margin,
    supports_below,
    suspect_margin,
    worst_supports,
)
from solvers._gram import NodeColumns, make_field
from solvers._minimiser import Minimiser, is_interrupt
from solvers._search import Search, _gershgorin, _sparse_part
from solvers._tracker import MarginTracker
from solvers.decoding import erasure_margin
from solvers.result import RESIDUAL, SupportValue

PAIR = np.array([[-1.0, 1.0]])


@pytest.mark.parametrize(
    ("B", "groups", "options", "message"),
    [
        (np.zeros(3), None, {"k": 1}, "B: must be a matrix, not an array of 1 dimensions"),
        (np.array([["a"]]), None, {"k": 1}, "B: must hold numbers"),
        (np.array([[1j]]), None, {"k": 1}, "B: must be real"),
        (np.array([[np.nan]]), None, {"k": 1}, "B: holds a NaN or an infinity"),
        (sparse.csr_array([[np.inf]]), None, {"k": 1}, "B: holds a NaN or an infinity"),
        (np.zeros((2, 0)), None, {"k": 1}, "B: has no columns"),
        (np.array([[2**60 + 1]]), None, {"k": 1}, "B: holds integers beyond 2"),
        (np.array([[1e-200, 1.0]]), None, {"k": 1}, "150 orders of magnitude"),
        (PAIR, [1], {"k": 1}, "groups: the sizes add up to 1, but the matrix has 2 columns"),
        (PAIR, [2, 0], {"k": 1}, "groups: node 1 has size 0"),
        (PAIR, [], {"k": 1}, "groups: the field is empty"),
        (PAIR, [[0], [0]], {"k": 1}, "groups: the lists must name each of the 2 columns exactly once"),
        (PAIR, [[0], ["x"]], {"k": 1}, "groups: entry 1 must be a non-empty list of column numbers"),
        (PAIR, None, {"k": 0}, "k: must be a whole number of at least 1, not 0"),
        (PAIR, None, {"k": True}, "k: must be a whole number"),
        (PAIR, None, {"k": 1.5}, "k: must be a whole number"),
        (PAIR, None, {"k": 1, "method": "guess"}, "method: 'guess' is not one of"),
        (PAIR, None, {"k": 1, "n_jobs": 0}, "n_jobs: must be a number of processes"),
        (PAIR, None, {"k": 1, "time_limit": -1}, "time_limit: must be a number of seconds"),
    ],
)
def test_wrong_calls_get_one_precise_line(B, groups, options, message):
    with pytest.raises(ValueError, match=r"^[^\n]*$") as caught:
        margin(B, groups, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_the_oracle_and_holds_in_exact_arithmetic(kind, seed):
    B, sizes = random_field(kind, seed)
    size = 1 + seed % 6
    fast = support_margin(B, sizes, size=size)
    slow = support_margin(B, sizes, size=size, method="enumerate")
    scale = np.linalg.norm(np.asarray(B, dtype=float), 2)
    assert fast.value == pytest.approx(slow.value, rel=1e-8, abs=1e-9 * scale if kind != "ill-scaled" else 1e-9)
    assert fast.lower <= fast.value <= fast.upper
    assert lower_bound_holds(B, sizes, size, fast.lower)
    assert upper_bound_holds(B, fast.direction, fast.upper)
    _check_witness(B, sizes, fast, size)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dims", ["1", "2"])
def test_larger_fields_agree_with_the_oracle(seed, dims):
    rng = np.random.default_rng(seed)
    n = 13
    B = graph_field(n, rng, sizes=[int(dims)]) if seed % 2 else rng.standard_normal((n * int(dims), n * int(dims)))
    sizes = [int(dims)] * n
    for size in (2, 3, 4) if dims == "2" else (2, 3, 4, 5):
        fast = support_margin(B, sizes, size=size)
        slow = support_margin(B, sizes, size=size, method="enumerate")
        assert fast.value == pytest.approx(slow.value, rel=1e-8, abs=1e-9)
        assert fast.status is Status.EXACT


def _check_witness(B, sizes, found: Margin, size: int) -> None:
    assert np.linalg.norm(found.direction) == pytest.approx(1.0, abs=1e-12)
    assert 1 <= len(found.support) <= size
    owner = np.repeat(np.arange(len(sizes)), sizes)
    assert set(owner[np.flatnonzero(found.direction)]) <= set(found.support)
    image = np.linalg.norm(np.asarray(B, dtype=float) @ found.direction)
    assert image == pytest.approx(found.upper, rel=1e-6, abs=1e-9 * max(1.0, np.abs(B).max()))


@pytest.mark.parametrize("strength", [0.0, 1e-3, 0.5, 1.0, 3.0, 100.0])
def test_two_nodes_in_closed_form(strength):
    B = np.array([[-1.0, 1.0], [strength, 0.0]])
    a = strength
    # (2 + a² − sqrt(a⁴ + 4)) / 2, without its cancellation at small a
    expected = np.sqrt(2.0 * a * a / (2.0 + a * a + np.sqrt(a**4 + 4.0)))
    assert margin(B, k=1).value == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_four_node_chain_separates_budget_from_rank():
    chain = np.array([[-1.0, 1, 0, 0], [0, -1, 1, 0], [0, 0, -1, 1]])
    one, two = margins(chain, k=2)
    assert one.value > 0
    assert two.zero
    assert two.lower == 0.0
    first, second = two.indistinguishable_pair()
    assert np.allclose(chain @ first, chain @ second)
    assert max(np.count_nonzero(first), np.count_nonzero(second)) <= 2
    assert not np.allclose(first, second)
    anchored = np.vstack([chain, [1, 0, 0, 0]])
    assert margin(anchored, k=1).value == pytest.approx(np.sqrt((3 - np.sqrt(5)) / 2), rel=1e-9)


def test_clique_and_pair_are_limited_by_the_pair():
    rows = [np.eye(12)[j] - np.eye(12)[i] for i in range(10) for j in range(i + 1, 10)] + [
        np.eye(12)[11] - np.eye(12)[10]
    ]
    field = np.array(rows)
    assert margin(field, k=1).support == (10, 11)
    assert margin(field, k=1).zero
    assert margin(np.vstack([field, np.eye(12)[0]]), k=1).zero  # anchoring the clique does not help
    assert margin(np.vstack([field, np.eye(12)[10]]), k=1).value == pytest.approx(np.sqrt((3 - np.sqrt(5)) / 2))


def test_complementary_anchors_help_only_together():
    gauge = np.array([[-1.0, 0, 1, 0], [0, -1, 0, 1]])  # two nodes of dimension two, equal
    first, second = [1.0, 0, 0, 0], [0, 1.0, 0, 0]
    for rows in ([first], [second]):
        assert margin(np.vstack([gauge, rows]), [2, 2], k=1).zero
    assert margin(np.vstack([gauge, [first, second]]), [2, 2], k=1).value > 0.6


def test_positive_margin_with_a_dense_null_vector():
    h = np.array([1.0, 0.4, 0.4])
    basis = np.linalg.svd(h[None, :])[2][1:]
    assert margin(basis, k=1).value > 0.1
    assert support_margin(basis, size=3).zero


def test_path_bound_holds():
    for n, a in ((6, 1.0), (9, 0.3)):
        path = np.diff(np.eye(n), axis=0)
        anchored = np.vstack([path, a * np.eye(n)[0]])
        everything = support_margin(anchored, size=n)
        assert everything.value >= max(2 * n / a**2, 2 * n**2) ** -0.5
        assert margin(anchored, k=1).value > everything.value


def test_duplicates_with_shared_weight_change_nothing():
    rng = np.random.default_rng(3)
    R = rng.standard_normal((9, 6))
    copies = np.vstack([R] * 16) / 4.0
    assert margin(copies, k=2).value == pytest.approx(margin(R, k=2).value, rel=1e-10)


def test_budget_larger_than_the_field_and_fields_without_rows():
    assert margin(np.eye(3), k=5).value == pytest.approx(1.0)
    assert margin(np.zeros((0, 3)), k=1).zero
    assert margin(np.zeros((2, 3)), k=1).zero


def test_columns_in_any_order_and_sparse_input_give_the_same():
    rng = np.random.default_rng(5)
    B = rng.standard_normal((9, 8))
    order = rng.permutation(8)
    groups = [order[2 * i : 2 * i + 2].tolist() for i in range(4)]
    direct = margin(B[:, order], [2] * 4, k=1)
    mixed = margin(sparse.coo_array(B), groups, k=1)
    assert mixed.value == pytest.approx(direct.value, rel=1e-12)
    assert mixed.support == direct.support
    assert np.allclose(np.abs(mixed.direction[order]), np.abs(direct.direction), atol=1e-9)


def test_gaps_are_tiny_and_scales_exact() -> None:
    B = np.random.default_rng(6).standard_normal((9, 7))
    plain, scaled = margin(B, k=2), margin(B * 2.0**-40, k=2)
    assert (scaled.value, scaled.lower, scaled.upper) == tuple(
        x * 2.0**-40 for x in (plain.value, plain.lower, plain.upper)
    )
    B = np.random.default_rng(7).standard_normal((60, 40))
    found = margin(B, k=2)
    assert found.status is Status.EXACT
    assert found.upper - found.lower <= 1e-9 * found.upper


def test_a_time_limit_returns_bounds_and_says_so():
    B = np.random.default_rng(8).standard_normal((120, 180))
    stopped = margin(B, k=4, time_limit=0.0)
    assert stopped.status is Status.BOUNDED
    assert 0.0 <= stopped.lower < stopped.upper
    truth = margin(B[:, :24], k=2)
    limited = margin(B[:, :24], k=2, time_limit=60.0)
    assert limited.status is Status.EXACT
    assert limited.value == truth.value


def test_all_budgets_in_one_call():
    B = np.random.default_rng(10).standard_normal((14, 12))
    values = [m.value for m in margins(B, k=3)]
    assert values == [margin(B, k=k).value for k in (1, 2, 3)]
    assert values == sorted(values, reverse=True)


def test_worst_supports_are_the_worst():
    from itertools import combinations

    B = np.random.default_rng(11).standard_normal((12, 9))
    found = worst_supports(B, size=3, count=10)
    truth = sorted(np.linalg.svd(B[:, list(s)])[1][-1] for s in combinations(range(9), 3))[:10]
    assert [f.value for f in found] == pytest.approx(truth, rel=1e-9)


def test_supports_below_are_all_below():
    from itertools import combinations

    B = np.random.default_rng(12).standard_normal((12, 9))
    values = {s: np.linalg.svd(B[:, list(s)])[1][-1] for s in combinations(range(9), 4)}
    threshold = sorted(values.values())[20]
    found = supports_below(B, size=4, threshold=threshold)
    assert found.complete
    assert {f.support for f in found.supports} == {s for s, v in values.items() if v < threshold}
    few = supports_below(B, size=4, threshold=threshold, limit=5)
    assert not few.complete
    assert len(few.supports) <= 5


def test_every_number_of_processes_gives_the_same_answer():
    B = np.random.default_rng(13).standard_normal((60, 90))
    alone = support_margin(B, size=5)
    together = support_margin(B, size=5, n_jobs=2)
    assert (alone.value, alone.lower, alone.upper, alone.support) == (
        together.value,
        together.lower,
        together.upper,
        together.support,
    )
    assert np.array_equal(alone.direction, together.direction)


def test_results_are_frozen():
    found = margin(PAIR, k=1)
    with pytest.raises(AttributeError):
        found.value = 1.0
    with pytest.raises(ValueError, match="read-only"):
        found.direction[0] = 2.0
    with pytest.raises(ValueError, match="read-only"):
        SupportValue((0,), 1.0, np.ones(1)).direction[0] = 2.0


def test_a_task_that_overflows_keeps_the_support_it_lowered_its_threshold_for() -> None:
    """A field whose local search ends early and whose first roots hold more supports than a task
    keeps.
    """
    import networkx as nx
    import numpy as np

    from solvers import support_margin

    rng = np.random.default_rng([1, 64, 1])
    graph = nx.gnm_random_graph(64, 192, seed=int(rng.integers(2**31)))
    strong = set(rng.choice(64, 6, replace=False).tolist())
    rows = np.zeros((192 + 64, 64))
    for row, (a, b) in enumerate(graph.edges):
        rows[row, a], rows[row, b] = -1.0, 1.0
    rows[192:] = np.diag([1.0 if i in strong else 0.5 for i in range(64)])
    values = [support_margin(rows, size=size).value for size in range(1, 7)]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 1.0594


@pytest.mark.parametrize("seed", range(12))
def test_rounding_of_an_ill_scaled_field_is_no_reason_to_lower_the_threshold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((26, 13)) * 10.0 ** rng.integers(-6, 7, 13)
    found = support_margin(B, size=5)
    assert found.status == "exact"
    assert found.value == pytest.approx(support_margin(B, size=5, method="enumerate").value, rel=1e-9)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dense", "zeros"])
def test_the_callers_matrix_is_left_as_it_was(form: str) -> None:
    """Explicit zeros, repeated and unsorted entries are cleaned up in a copy."""
    data = np.array([1.0, 0.0, 2.0, -1.0, 0.5, 3.0, 1.0])
    rows, columns = np.array([0, 0, 1, 1, 2, 3, 3]), np.array([2, 1, 0, 0, 1, 2, 0])
    given = sparse.coo_array((data, (rows, columns)), shape=(4, 3))
    if form == "csr":
        given = sparse.csr_array((data, columns, np.array([0, 2, 4, 5, 7])), shape=(4, 3))
    elif form == "csc":
        given = sparse.csc_array((data, columns, np.array([0, 2, 4, 5, 7])), shape=(3, 4))
    elif form == "dense":
        given = given.toarray()
    elif form == "zeros":  # and nothing else to clean up
        given = sparse.csr_array((data[:5], np.array([1, 2, 0, 1, 2]), np.array([0, 2, 3, 5])), shape=(3, 3))
    before = given.copy()
    found = margin(given, k=1)
    dense = given if form == "dense" else given.toarray()
    assert found.value == pytest.approx(margin(dense, k=1, method="enumerate").value)
    if form == "dense":
        np.testing.assert_array_equal(given, before)
    else:
        names = ("data", "row", "col") if form == "coo" else ("data", "indices", "indptr")
        for name in names:
            np.testing.assert_array_equal(getattr(given, name), getattr(before, name))


def test_a_margin_that_is_exactly_zero_is_exactly_zero():
    """No digits of rounding, though the singular value comes out as 1e-17 on one machine and 3e-16
    on another.
    """
    cycle = np.array([[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0], [1.0, 0.0, -1.0]]) * np.sqrt(0.1)
    for method in ("search", "enumerate"):
        found = margin(cycle, k=2, method=method)
        assert (found.value, found.lower, found.upper) == (0.0, 0.0, 0.0)
        assert found.direction.tolist() == [0.5773502691896258] * 3
    nearly = margin(np.array([[1.0, 1.0], [1.0, 1.0 + 2.0**-50]]), k=1)
    assert (nearly.value, nearly.lower) == (0.0, 0.0)
    assert 0.0 < nearly.upper < 1e-15


@pytest.mark.parametrize("size", [1e7, 1e8, 3e8, 1e12, 1e38])
def test_an_exact_zero_among_large_numbers_is_seen(size):
    """The computed singular value is large, the exact one zero."""
    short = float(np.float32(size))  # so that small multiples are exact
    found = margin(np.array([[3 * short, 9 * short], [7 * short, 21 * short]]), k=1)
    assert (found.value, found.lower, found.upper, found.status) == (0.0, 0.0, 0.0, Status.EXACT)


@pytest.mark.parametrize("seed", [3, 8])
def test_the_start_of_a_large_search_ends_where_eigenvalues_come_out_negative(seed):
    """Entries 140 orders of magnitude apart: λ of a Gram block is rounding, and a swap that "helps"
    by rounding is none.
    """
    rng = np.random.default_rng([seed, 7])
    n = int(rng.integers(7, 11))
    B = rng.standard_normal((n + int(rng.integers(0, 3)), n))
    B *= 10.0 ** rng.integers(-70, 71, B.shape)
    found = margin(B, k=int(rng.integers(2, 5)))
    assert found.lower <= found.upper


def made(lower: float = 0.0, upper: float = 0.0) -> Margin:
    direction = np.array([0.6, 0.0, -0.8, 0.0])
    groups = NodeColumns.of_sizes([1, 1, 1, 1])
    return Margin(upper, lower, upper, (0, 2), direction, Status.EXACT, "test", 2, groups)


def test_bounds_out_of_order_are_a_fault() -> None:
    with pytest.raises(AssertionError, match="out of order"):
        made(lower=0.5, upper=0.25)


def test_two_errors_of_half_the_support_differ_by_the_witness() -> None:
    found = made()
    first, second = found.indistinguishable_pair()
    assert found.zero
    assert found.k == 1
    np.testing.assert_array_equal(first - second, found.direction)
    assert np.count_nonzero(first) == np.count_nonzero(second) == 1


APART = (0, 0, 8, -8, 10, -10, 30, -30, 60, -60)
"""Orders of magnitude of the rows of one matrix."""


def badly_scaled(rng: np.random.Generator) -> NDArray[np.float64]:
    shape = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    entries = rng.integers(-3, 4, size=shape) * 10.0 ** rng.choice(APART, size=(shape[0], 1))
    entries[0, 0] = entries[0, 0] or 1.0
    return np.asarray(entries)


def reaches(B: NDArray[np.float64], sigma: float) -> bool:
    """Whether σ_min of every pair of columns is at least this, in rationals."""
    columns = [[Fraction(float(x)) for x in column] for column in B.T]
    least = Fraction(sigma) ** 2
    for one, other in combinations(columns, 2):
        a, d = (sum(x * x for x in column) - least for column in (one, other))
        b = sum(x * y for x, y in zip(one, other, strict=True))
        if a < 0 or d < 0 or a * d < b * b:
            return False
    return True


def test_a_margin_of_rows_far_apart_is_called_exact_only_where_its_bounds_meet() -> None:
    rng = np.random.default_rng(28)
    undecided = 0
    for number in range(200):
        B = badly_scaled(rng)
        largest = float(np.sqrt(np.square(B / np.abs(B).max()).sum(axis=0).max()) * np.abs(B).max())
        found: dict[str, Any] = {
            "search": margin(B, k=1),
            "enumerate": margin(B, k=1, method="enumerate"),
            "delivered": delivered_margin(B, None, [0], k=1),
            "erasures": erasure_margin(B, known=(), k=1),
        }
        if number % 5 == 0:
            found["checks"] = suspect_margin(B, k=1, suspects=0)
        if np.abs(B).max() < 1e15:
            found["tracker"] = MarginTracker(B, size=2).margin()
        for name, one in found.items():
            zero = one.value == 0.0 and one.upper <= RESIDUAL * min(1.0, largest)
            meet = one.upper - one.lower <= 1.1e-9 * one.upper
            assert one.lower <= one.value <= one.upper, name
            assert one.status != Status.EXACT or zero or meet, (name, B, one.lower, one.upper)
        for name in ("search", "enumerate"):
            one = found[name]
            assert reaches(B, one.lower), (name, B)
            assert one.upper == 0.0 or not reaches(B, one.upper * (1 + 1e-15)), (name, B)
            undecided += one.value == 0.0 and one.status == Status.BOUNDED
    assert undecided > 20


def test_the_witness_of_a_zero_says_whether_it_is_one() -> None:
    B = np.array([[3e-8, -3e-8], [3e30, 2e30]])  # γ is 4e-8, and 0 to floats
    found = margin(B, k=1)
    assert (found.value, found.lower, found.status) == (0.0, 0.0, "bounded")
    assert found.upper > 1.0
    dependent = np.array([[3e-8, -3e-8], [3e30, -3e30]])
    assert (margin(dependent, k=1).upper, margin(dependent, k=1).status) == (0.0, "exact")


def test_progress_is_reported_with_bounds():
    seen = []
    margin(np.random.default_rng(9).standard_normal((40, 60)), k=3, progress=lambda *state: seen.append(state))
    assert seen[-1][0] == 1.0
    assert all(0 <= fraction <= 1 and lower <= upper for fraction, (lower, upper), _ in seen)


def test_ctrl_c_carries_the_bounds_so_far():
    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        margin(np.random.default_rng(9).standard_normal((20, 24)), k=2, progress=interrupt)
    found = caught.value.margin
    assert found.status is Status.BOUNDED
    assert found.lower <= found.upper


def test_an_interrupt_inside_a_kernel_is_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel(*_: object, **__: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as interrupt:
            raise SystemError("returned a result with an exception set") from interrupt

    monkeypatch.setattr("solvers._search.Search.below", kernel)
    with pytest.raises(Interrupted) as caught:
        margin(np.eye(5), k=1, method="search")
    assert caught.value.margin.lower <= 1.0 <= caught.value.margin.upper


def test_only_interrupts_are_interrupts():
    assert is_interrupt(KeyboardInterrupt())
    assert not is_interrupt(SystemError("a fault of its own"))
    assert not is_interrupt(None)


@pytest.mark.parametrize("size", [3, 7])
def test_the_start_changes_nothing_but_the_time(size):
    B = np.random.default_rng(4).standard_normal((12, 14))
    found = Minimiser(make_field(B, None), size).solve(())
    for warm in ([found.support], [(0, 1), (2, 3)], [tuple(range(size))]):
        again = Minimiser(make_field(B, None), size).solve(warm)
        assert (again.support, again.status) == (found.support, Status.EXACT)
        assert again.value == pytest.approx(found.value, rel=1e-12)


def test_a_bound_says_what_proved_it():
    """Done: the search.

    No time: the whole matrix, single couplings, or nothing at all; and never more than the truth.
    """
    rng = np.random.default_rng(3)
    tall = np.vstack([rng.standard_normal((20, 24)), 0.5 * np.eye(24)])
    flat = rng.standard_normal((16, 24))
    apart = np.vstack([np.eye(24), 0.01 * rng.standard_normal((3, 24))])
    for matrix, source in (
        (tall, {"the whole matrix"}),
        (flat, {"nothing"}),
        (apart, {"the whole matrix", "couplings"}),
    ):
        done, late = margin(matrix, k=4), margin(matrix, k=4, time_limit=0.0)
        assert done.lower_from == "search"
        assert late.lower_from in source
        assert late.lower <= done.upper
        assert (late.lower == 0.0) == (late.lower_from == "nothing")


def test_a_full_list_is_reported_as_incomplete():
    B = np.random.default_rng(1).standard_normal((14, 12))
    search = Search(make_field(B, None), 4)
    found = search.below(1e6, limit=10)
    assert not found.complete


def test_adapting_ends_at_the_minimum():
    B = np.random.default_rng(2).standard_normal((14, 12))
    field = make_field(B, None)
    found = Search(field, 4).below(1e6, limit=10, adapt=True)
    _, values = brute(field, 4, 0.0, connected=False)
    assert found.complete
    assert min(values, key=values.__getitem__) in found.supports


def test_gershgorin_needs_no_search_and_stays_below():
    B = np.random.default_rng(3).standard_normal((200, 12))
    field = make_field(B, None)
    _, values = brute(field, 3, 0.0, connected=False)
    bound = _gershgorin(Search(field, 3))
    assert 0 < bound <= min(values.values())


@pytest.mark.parametrize("seed", range(6))
def test_norms_first_changes_nothing_that_is_found(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    n, dims, turned = 12, rng.integers(1, 4, size=12), seed % 2 == 0
    starts = np.concatenate([[0], np.cumsum(dims)])
    rows = []
    for i in range(n):  # a ring with chords
        for j in {(i + 1) % n, int(rng.integers(n))} - {i}:
            row = np.zeros((dims[j], starts[-1]))
            row[:, starts[j] : starts[j + 1]] = np.eye(dims[j])
            turn = rng.normal(size=(3, 3))
            row[:, starts[i] : starts[i + 1]] = (np.linalg.qr(turn)[0] if turned else turn)[: dims[j], : dims[i]]
            rows.append(row)
    B = sparse.csr_array(np.vstack([*rows, 0.3 * np.eye(starts[-1])]))
    found = []
    for first in (99, 1):
        monkeypatch.setattr("solvers._search.NORMS_FROM", first)
        monkeypatch.setattr("solvers._search.WORTH_NORMS", 0.0)
        monkeypatch.setattr("solvers._search.parts_of", thin_parts)
        best = support_margin(B, dims.tolist(), size=5, method="search")
        part = delivered_margin(B, dims.tolist(), [0, 3], k=2)
        below = supports_below(B, dims.tolist(), size=4, threshold=1.2 * best.upper, limit=100)
        assert best.status is Status.EXACT
        assert below.complete
        found.append(
            [(one.value, one.lower, one.upper, one.support) for one in (best, part)]
            + [b.support for b in below.supports]
        )
    assert found[0] == found[1]


def thin_parts(field: Any, size: int, *, without: Any = None) -> list[Any]:
    """All of a field as one sparse part."""
    return [_sparse_part(field, np.arange(field.n), field.components, size, field.shrink(size))]
