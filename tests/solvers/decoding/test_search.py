"""Sparse decoders: by search, and convex."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import sqrt
from operator import mul

import clarabel
import numpy as np
import pytest
from scipy import sparse

from solvers import margin
from solvers.decoding import (
    ConvexSolution,
    GroupProblem,
    SupportDecoder,
    SupportTable,
    SyndromeDecoding,
    SyndromeExplanation,
    decode_support,
    group_bpdn,
    group_lasso,
    lasso_path,
    table_fits,
)


def by_definition(B, groups, s, k, radius):
    """All minimal supports within the radius, and the least residual of any support of at most k
    nodes.
    """
    minimal, least = [], np.inf
    for size in range(k + 1):
        for support in combinations(range(len(groups)), size):
            columns = np.concatenate([groups[i] for i in support]) if support else np.zeros(0, dtype=int)
            e = np.linalg.lstsq(B[:, columns], s, rcond=1e-10)[0] if size else np.zeros(0)
            residual = float(np.linalg.norm(B[:, columns] @ e - s))
            least = min(least, residual)
            if residual <= radius and not any(set(other) <= set(support) for other in minimal):
                minimal.append(support)
    return sorted(minimal), least


def random_field(rng, *, integer):
    n, k = int(rng.integers(3, 8)), int(rng.integers(1, 4))
    dims = rng.integers(1, int(rng.integers(2, 4)), size=n)
    groups = np.split(np.arange(dims.sum()), np.cumsum(dims)[:-1])
    shape = (int(rng.integers(2, 12)), int(dims.sum()))
    B = rng.integers(-1, 2, size=shape).astype(float) if integer else rng.normal(size=shape)
    B *= rng.random(shape) < 0.5
    e = np.zeros(shape[1])
    for i in rng.choice(n, size=min(n, int(rng.integers(0, k + 2))), replace=False):
        e[groups[i]] = rng.normal(size=len(groups[i]))
    return B, groups, k, e


class TestMessages:
    def test_syndrome_of_another_length(self):
        with pytest.raises(ValueError, match=r"one entry per row \(2\), got shape \(3,\)"):
            decode_support(np.eye(2), syndrome=[1, 2, 3], k=1)

    def test_nan(self):
        with pytest.raises(ValueError, match="NaN"):
            decode_support(np.eye(2), syndrome=[1, np.nan], k=1)
        with pytest.raises(ValueError, match="B holds a NaN"):
            decode_support([[np.nan]], syndrome=[1], k=1)

    def test_negative_radius(self):
        with pytest.raises(ValueError, match="epsilon"):
            decode_support(np.eye(2), syndrome=[1, 2], k=1, epsilon=-1)

    def test_unknown_erased_node(self):
        with pytest.raises(ValueError, match=r"numbered 0..1"):
            SupportDecoder(np.eye(2), known=[2])


@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_the_definition(seed):
    rng = np.random.default_rng(seed)
    for trial in range(40):
        B, groups, k, e = random_field(rng, integer=trial % 2 == 0)
        epsilon = (0.0, 0.1, 0.5)[trial % 3]
        s = B @ e + 0.3 * epsilon * rng.normal(size=B.shape[0])
        expected, least = by_definition(B, groups, s, k, epsilon + 1e-12 * np.linalg.norm(s))
        for operator in (B, sparse.csr_array(B)):
            found = decode_support(operator, groups, syndrome=s, k=k, epsilon=epsilon, limit=0)
            assert sorted(item.support for item in found.explanations) == expected
            assert found.complete
            assert found.explained == bool(expected)
            if not expected:
                assert found.residual == pytest.approx(least, abs=1e-9)
            assert found.residual == pytest.approx(np.linalg.norm(B @ found.error - s), abs=1e-9)
            assert found.unique == (len(expected) == 1)


@pytest.mark.parametrize(("nodes", "dim", "k"), [(300, 1, 1), (300, 1, 2), (120, 3, 2), (300, 1, 4)])
def test_sparse_graph_in_the_hundreds(nodes, dim, k):
    rng = np.random.default_rng(nodes + dim + k)
    tails = rng.integers(0, nodes, 3 * nodes)
    heads = (tails + 1 + rng.integers(0, nodes - 1, 3 * nodes)) % nodes
    rows = np.arange(3 * nodes)
    edges = sparse.csr_array((np.r_[-np.ones(3 * nodes), np.ones(3 * nodes)], (np.r_[rows, rows], np.r_[tails, heads])))
    B = sparse.kron(edges, sparse.eye_array(dim)).tocsr()
    e = np.zeros(nodes * dim)
    wrong = np.sort(rng.choice(nodes, k, replace=False))
    for i in wrong:
        e[i * dim : (i + 1) * dim] = 1 + rng.random(dim)
    noise = rng.normal(size=B.shape[0])
    noise *= 0.05 / np.linalg.norm(noise)
    found = decode_support(B, [dim] * nodes, syndrome=B @ e + noise, k=k, epsilon=0.05)
    assert found.support == tuple(wrong)
    assert found.unique
    assert found.best_smaller > 0.05
    assert found.tested < 200  # the rest was excluded by arithmetic
    assert np.linalg.norm(found.error - e) < 0.1


def test_limits_cut_the_list_and_are_never_complete() -> None:
    found = decode_support(np.ones((1, 30)), syndrome=[1.0], k=1, limit=4)
    assert len(found.explanations) == 4
    assert not found.complete
    assert not found.unique
    rng = np.random.default_rng(0)
    found = decode_support(rng.normal(size=(60, 60)), syndrome=rng.normal(size=60), k=4, time_limit=0.0)
    assert not found.complete


def test_residual_on_the_edge_is_marked():
    found = decode_support(np.eye(2), syndrome=[1.0, 0.5], k=1, epsilon=0.5)
    assert found.explanations[0].edge
    clear = decode_support(np.eye(2), syndrome=[1.0, 0.5], k=1, epsilon=0.6)
    assert not clear.explanations[0].edge


def test_known_nodes_cost_nothing_of_the_budget():
    rng = np.random.default_rng(5)
    B = rng.normal(size=(12, 8))
    e = np.zeros(8)
    e[[1, 4, 6]] = [3.0, -2.0, 1.0]
    found = decode_support(B, syndrome=B @ e, k=1, known=[1, 6])
    assert found.support == (4,)
    assert found.unique
    np.testing.assert_allclose(found.error, e, atol=1e-10)


def test_null_space():
    decoder = SupportDecoder(np.array([[1.0, -1.0, 0.0]]))
    assert decoder.null_space((0, 1)).shape[1] == 1
    assert decoder.null_space((0,)).shape[1] == 0
    assert decoder.null_space((2,)).shape[1] == 1
    null = decoder.null_space((0, 1))
    np.testing.assert_allclose(np.abs(null[:, 0]), [np.sqrt(0.5), np.sqrt(0.5), 0], atol=1e-12)


def test_empty_operator_explains_only_nothing():
    found = decode_support(np.zeros((0, 3)), syndrome=[], k=1)
    assert found.support == ()
    assert found.explained


@pytest.mark.parametrize("seed", range(4))
def test_every_sparse_error_is_recovered_wherever_the_margin_is_positive(seed):
    """Identifiability and stability, over two thousand random fields: e itself without noise, 2ε/γ
    with it.
    """
    rng = np.random.default_rng(1000 + seed)
    positive = 0
    for trial in range(500):
        n, k = int(rng.integers(3, 7)), int(rng.integers(1, 3))
        dims = rng.integers(1, 3, size=n)
        starts = np.cumsum([0, *dims])
        B = rng.integers(-1, 2, size=(int(rng.integers(3, 12)), int(starts[-1]))).astype(float)
        gamma = margin(B, dims.tolist(), k=k)
        e = np.zeros(starts[-1])
        for i in rng.choice(n, size=int(rng.integers(0, k + 1)), replace=False):
            e[starts[i] : starts[i + 1]] = rng.normal(size=dims[i])
        noise = rng.normal(size=B.shape[0])
        epsilon = (0.0, 0.05)[trial % 2]
        noise *= epsilon * rng.random() / np.linalg.norm(noise)
        found = decode_support(B, dims.tolist(), syndrome=B @ e + noise, k=k, epsilon=epsilon, limit=0)
        assert found.explained
        if gamma.lower > 0:
            positive += 1
            assert np.linalg.norm(found.error - e) <= 2 * epsilon / gamma.lower + 1e-9 / gamma.lower
            if epsilon == 0.0:
                assert found.unique
        for item in found.explanations:
            assert np.linalg.norm(B @ item.error - B @ e - noise) <= epsilon + 1e-9
    assert positive > 150


def squared_distance(columns, s):
    """dist(s, span)² by Gram–Schmidt in rationals: no code shared with the decoder."""
    rest, basis = [Fraction(float(x)) for x in s], []
    for column in columns:
        vector = [Fraction(float(x)) for x in column]
        for other in basis:
            factor = sum(map(mul, vector, other)) / sum(map(mul, other, other))
            vector = [x - factor * y for x, y in zip(vector, other, strict=True)]
        if any(vector):
            basis.append(vector)
            factor = sum(map(mul, rest, vector)) / sum(map(mul, vector, vector))
            rest = [x - factor * y for x, y in zip(rest, vector, strict=True)]
    return sum(x * x for x in rest)


def exactly(B, groups, s, k, radius, known):
    """All minimal supports within the radius, in rationals."""
    minimal = []
    for size in range(k + 1):
        for support in combinations([i for i in range(len(groups)) if i not in known], size):
            if not any(set(other) <= set(support) for other in minimal):
                columns = [B[:, c] for i in (*known, *support) for c in groups[i]]
                if squared_distance(columns, s) <= Fraction(radius) ** 2:
                    minimal.append(support)
    return sorted(minimal)


def adversarial_field(seed):
    """Integers, thirds, huge and tiny units, nearly dependent nodes; a radius within one bit of
    some support's residual.
    """
    rng = np.random.default_rng([7, seed])
    n, k, rows = int(rng.integers(3, 6)), int(rng.integers(1, 4)), int(rng.integers(2, 7))
    dims = rng.integers(1, 3, size=n)
    groups = np.split(np.arange(dims.sum()), np.cumsum(dims)[:-1])
    B = rng.integers(-2, 3, size=(rows, int(dims.sum()))).astype(float)
    kind = seed % 5
    if kind == 1:
        B /= 3.0
    elif kind == 2:
        B += 10.0 ** -int(rng.integers(4, 15)) * rng.integers(-1, 2, size=B.shape)
    elif kind == 3:
        B = (
            rng.normal(size=B.shape)
            * 10.0 ** int(rng.integers(-130, 130))
            * 10.0 ** rng.integers(-3, 4, size=(rows, 1))
        )
    elif kind == 4:
        B *= np.repeat(2.0 ** rng.integers(-300, 300, size=n), dims)
    e = np.zeros(B.shape[1])
    for i in rng.choice(n, size=int(rng.integers(0, k + 1)), replace=False):
        e[groups[i]] = rng.integers(-3, 4, size=len(groups[i])) / (np.abs(B[:, groups[i]]).max() or 1.0)
    s = B @ e + rng.choice([0.0, 1e-12, 1e-3, 0.1]) * rng.integers(-1, 2, size=rows)
    known = (int(rng.integers(0, n)),) if seed % 4 == 3 else ()
    tie = rng.choice(n, size=int(rng.integers(0, k + 1)), replace=False)
    radius = sqrt(squared_distance([B[:, c] for i in (*known, *tie) for c in groups[i]], s))
    return B, groups, s, k, max(0.0, radius + int(rng.integers(-1, 2)) * np.spacing(radius)), known


@pytest.mark.parametrize("storage", [np.array, sparse.csc_array])
def test_near_ties_are_decided_as_rationals_decide_them(storage, monkeypatch):
    """Whatever is verified is so, to the last bit; and only the zero rule keeps anything from being
    verified.
    """
    monkeypatch.setattr("solvers.decoding._search.as_operator", storage)
    verified = 0
    for seed in range(160):
        B, groups, s, k, radius, known = adversarial_field(seed)
        found = decode_support(B, groups, syndrome=s, k=k, epsilon=radius, tolerance=0.0, limit=0, known=known)
        assert found.verified != found.zero_rule
        if found.verified:
            verified += 1
            assert sorted(item.support for item in found.explanations) == exactly(B, groups, s, k, radius, known)
    assert verified > 120


def test_the_zero_rule_is_named_where_it_decides():
    """Exact arithmetic explains s by a difference of huge errors; the paper's rule takes the two
    columns for one.
    """
    B = np.array([[1.0, 1.0], [0.0, 1e-13]])
    found = decode_support(B, syndrome=[0.0, 1.0], k=2, epsilon=0.5)
    assert found.zero_rule
    assert not found.verified
    assert not found.explained
    clear = decode_support(np.array([[1.0, 2.0], [0.0, 0.0]]), syndrome=[0.0, 1.0], k=2, epsilon=0.5)
    assert clear.verified  # exactly parallel: no rule needed
    assert not clear.explained


def test_what_is_too_large_for_rationals_is_undecided(monkeypatch):
    monkeypatch.setattr("solvers._exact.RATIONAL_COLUMNS", 0)
    found = decode_support(np.array([[1.0], [0.0]]), syndrome=[3.0, 0.1], k=1, epsilon=0.1, tolerance=0.0)
    assert found.undecided == ((0,),)
    assert not found.verified
    assert not found.unique


def test_nodes_of_very_different_size_are_solved_each_in_its_unit():
    B = np.diag([1.0, 1e-14, 1e-200, 1e200])
    found = decode_support(B, syndrome=[1.0, 2e-14, 3e-200, 0.0], k=3, tolerance=0.0)
    np.testing.assert_allclose(found.error, [1.0, 2.0, 3.0, 0.0])
    assert found.verified
    assert found.unique


@pytest.mark.parametrize("known", [(), (1,)])
@pytest.mark.parametrize("dims", [[1] * 7, [2, 1, 3, 1, 2]])
def test_agrees_with_the_search(known, dims):
    rng = np.random.default_rng(len(dims) + len(known))
    B = rng.integers(-1, 2, size=(9, sum(dims))).astype(float)
    starts = np.cumsum([0, *dims])
    syndromes = []
    for _ in range(60):
        e = np.zeros(sum(dims))
        for i in rng.choice(len(dims), int(rng.integers(0, 4)), replace=False):
            e[starts[i] : starts[i + 1]] = rng.normal(size=dims[i])
        syndromes.append(B @ e + 0.02 * rng.normal(size=9))
    for epsilon in (0.1, 0.3):
        batch = SupportTable(B, dims, k=2, known=known).decode(np.array(syndromes), epsilon=epsilon)
        decoder = SupportDecoder(B, dims, known=known)
        for i, s in enumerate(syndromes):
            single = decoder.decode(s, k=2, epsilon=epsilon, limit=0)
            assert batch.explained[i] == single.explained
            assert batch.residual[i] == pytest.approx(single.residual, abs=1e-9)
            listed = {batch.supports[j] for j in np.flatnonzero(batch.minimal[i])}
            assert listed == {item.support for item in single.explanations}
            if single.unique:
                assert batch.supports[batch.chosen[i]] == single.support
                np.testing.assert_allclose(B @ batch.error[i], B @ single.error, atol=1e-9)


def test_what_a_design_remembers_changes_no_bit():
    rng = np.random.default_rng(7)
    for _ in range(10):
        B, groups, k, e = random_field(rng, integer=False)
        decoder = SupportDecoder(B, groups)
        for _ in range(3):
            s = B @ e + 1e-3 * rng.normal(size=len(B))
            found, fresh = (each.decode(s, k=k, epsilon=0.01) for each in (decoder, SupportDecoder(B, groups)))
            assert found.error.tobytes() == fresh.error.tobytes()
            assert (found.residual, found.tested) == (fresh.residual, fresh.tested)
            assert [one.support for one in found.explanations] == [one.support for one in fresh.explanations]
            e = rng.permutation(e)


def test_too_many_supports_are_refused():
    assert not table_fits(200, 2)
    with pytest.raises(ValueError, match="use SupportDecoder"):
        SupportTable(np.zeros((1, 200)), k=2)


def explanation(*support: int) -> SyndromeExplanation:
    return SyndromeExplanation(support, 0.0, np.zeros(3))


FOUND = SyndromeDecoding(
    support=(1,),
    error=np.zeros(3),
    residual=0.0,
    explained=True,
    explanations=(explanation(1),),
    complete=True,
    best_smaller=1.0,
    epsilon=0.1,
    tolerance=1e-9,
    k=1,
    tested=3,
)


@pytest.mark.parametrize(
    ("changes", "verified", "unique"),
    [
        ({}, True, True),
        ({"complete": False}, False, False),
        ({"undecided": ((2,),)}, False, False),
        ({"zero_rule": True}, False, True),
        ({"explanations": (explanation(1), explanation(2))}, True, False),
        ({"explanations": (), "explained": False}, True, False),
    ],
)
def test_what_may_be_said(changes: dict[str, object], verified: bool, unique: bool) -> None:
    found = replace(FOUND, **changes)
    assert (found.verified, found.unique) == (verified, unique)


def test_errors_are_read_only() -> None:
    convex = ConvexSolution(np.zeros(2), 1.0, 0.0, 0.0, 0.1, 5, True)
    for found in (FOUND, FOUND.explanations[0], convex):
        with pytest.raises(ValueError, match="read-only"):
            found.error[0] = 1.0  # type: ignore[attr-defined]


def conic(B, groups, s, *, weights, epsilon=None, penalty=None):
    """The same problem as a second-order cone program: variables e, one bound per node, and the
    residual.
    """
    rows, columns = B.shape
    n = len(groups)
    blocks, sides, cones = [], [], []
    for i, group in enumerate(groups):
        part = np.zeros((1 + len(group), columns + n))
        part[0, columns + i] = -1
        part[np.arange(1, 1 + len(group)), group] = -1
        blocks.append(part)
        sides.append(np.zeros(1 + len(group)))
        cones.append(clarabel.SecondOrderConeT(1 + len(group)))
    quadratic = sparse.csc_matrix((columns + n, columns + n))
    linear = np.r_[np.zeros(columns), weights]
    if penalty is not None:
        gram = np.zeros((columns + n, columns + n))
        gram[:columns, :columns] = B.T @ B
        quadratic = sparse.csc_matrix(np.triu(gram))
        linear = np.r_[-B.T @ s, penalty * np.asarray(weights)]
    elif epsilon > 0:
        part = np.zeros((1 + rows, columns + n))
        part[1:, :columns] = -B
        blocks.append(part)
        sides.append(np.r_[epsilon, -s])
        cones.append(clarabel.SecondOrderConeT(1 + rows))
    else:
        blocks.append(np.c_[B, np.zeros((rows, n))])
        sides.append(s)
        cones.append(clarabel.ZeroConeT(rows))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-9
    solver = clarabel.DefaultSolver(
        quadratic, linear, sparse.csc_matrix(np.vstack(blocks)), np.concatenate(sides), cones, settings
    )
    solved = solver.solve()
    assert str(solved.status) == "Solved"
    return np.array(solved.x)[:columns], solved.obj_val


def random_problem(rng, *, tall):
    n = int(rng.integers(4, 11))
    dims = rng.integers(1, 4, size=n)
    groups = np.split(np.arange(dims.sum()), np.cumsum(dims)[:-1])
    B = rng.normal(size=(int(dims.sum() * (1.3 if tall else 0.6)), int(dims.sum())))
    e = np.zeros(dims.sum())
    for i in rng.choice(n, 2, replace=False):
        e[groups[i]] = rng.normal(size=dims[i])
    return B, groups, dims, e


class TestConvexMessages:
    def test_penalty_must_be_positive(self):
        with pytest.raises(ValueError, match="penalty must be positive"):
            group_lasso(np.eye(2), syndrome=[1, 1], penalty=0.0)

    def test_unreachable_radius(self):
        with pytest.raises(ValueError, match=r"least possible one is 1; raise epsilon"):
            group_bpdn([[1.0], [0.0]], syndrome=[1.0, 1.0], epsilon=0.5)

    def test_weights(self):
        with pytest.raises(ValueError, match="2 positive numbers"):
            group_lasso(GroupProblem(np.eye(2), weights=[1.0, 0.0]), syndrome=[1, 1], penalty=1.0)


@pytest.mark.parametrize("seed", range(8))
def test_constrained_form_agrees_with_the_conic_solver(seed):
    rng = np.random.default_rng(seed)
    B, groups, dims, e = random_problem(rng, tall=seed % 2 == 0)
    epsilon = (0.0, 0.05, 0.3)[seed % 3]
    noise = rng.normal(size=B.shape[0])
    s = B @ e + 0.8 * epsilon * noise / np.linalg.norm(noise)
    expected, value = conic(B, groups, s, weights=np.sqrt(dims), epsilon=epsilon)
    found = group_bpdn(sparse.csr_array(B) if seed % 2 else B, groups, syndrome=s, epsilon=epsilon)
    assert found.converged
    assert found.objective == pytest.approx(value, rel=1e-5)
    assert found.residual <= epsilon + 1e-6 * np.linalg.norm(s)
    assert found.gap <= 1e-5 * value
    np.testing.assert_allclose(found.error, expected, atol=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_penalised_form_agrees_with_the_conic_solver(seed):
    rng = np.random.default_rng(100 + seed)
    B, groups, _, e = random_problem(rng, tall=seed % 2 == 0)
    s = B @ e + 0.05 * rng.normal(size=B.shape[0])
    weights = 0.5 + rng.random(len(groups))
    found = group_lasso(GroupProblem(B, groups, weights=weights), syndrome=s, penalty=0.3)
    expected, value = conic(B, groups, s, weights=weights, penalty=0.3)
    assert found.converged
    assert found.objective == pytest.approx(value + 0.5 * s @ s, rel=1e-7)
    np.testing.assert_allclose(found.error, expected, atol=1e-4)
    for i, group in enumerate(groups):  # the optimality conditions themselves
        pull = B[:, group].T @ (s - B @ found.error)
        size = np.linalg.norm(found.error[group])
        assert np.linalg.norm(pull) <= 0.3 * weights[i] * (1 + 1e-3)
        if size > 1e-3:
            np.testing.assert_allclose(pull, 0.3 * weights[i] * found.error[group] / size, atol=1e-3)


def test_gap_bounds_the_optimum_even_when_stopped_early():
    rng = np.random.default_rng(3)
    B, groups, _, e = random_problem(rng, tall=True)
    best = group_lasso(B, groups, syndrome=B @ e, penalty=0.1)
    for iterations in (1, 5, 20):
        early = group_lasso(B, groups, syndrome=B @ e, penalty=0.1, max_iterations=iterations)
        assert early.objective - early.gap <= best.objective + 1e-12
        assert not early.converged or early.iterations < iterations


def test_default_weights_are_root_dimensions_where_they_differ():
    np.testing.assert_allclose(GroupProblem(np.eye(3), [[0], [1, 2]]).weights, [1, np.sqrt(2)])
    np.testing.assert_allclose(GroupProblem(np.eye(4), [2, 2]).weights, [1, 1])


def test_path_is_warm_started_and_residual_falls():
    rng = np.random.default_rng(4)
    B, groups, _, e = random_problem(rng, tall=True)
    path = lasso_path(B, groups, syndrome=B @ e, count=8)
    residuals = [point.residual for point in path]
    assert residuals == sorted(residuals, reverse=True)
    assert not path[0].error.any()  # at λ_max nothing is edited
    cold = group_lasso(B, groups, syndrome=B @ e, penalty=path[-1].penalty)
    assert path[-1].objective == pytest.approx(cold.objective, rel=1e-6)


def test_positive_margin_does_not_certify_the_convex_decoder():
    """Kernel (1, 0.4, 0.4): exact search finds an error on node 0, basis pursuit prefers the other
    two.
    """
    B = np.linalg.svd(np.array([[1.0, 0.4, 0.4]]))[2][1:]
    truth = np.array([1.0, 0.0, 0.0])
    exact = decode_support(B, syndrome=B @ truth, k=1)
    np.testing.assert_allclose(exact.error, truth, atol=1e-12)
    assert exact.unique
    convex = group_bpdn(B, syndrome=B @ truth, epsilon=0.0)
    assert convex.converged
    assert convex.objective == pytest.approx(0.8, abs=1e-6)
    np.testing.assert_allclose(convex.error, [0.0, -0.4, -0.4], atol=1e-5)


def test_columns_of_a_node_may_lie_anywhere():
    rng = np.random.default_rng(6)
    B = rng.normal(size=(5, 4))
    s = rng.normal(size=5)
    apart = group_lasso(B, [[0, 2], [1, 3]], syndrome=s, penalty=0.4)
    together = group_lasso(B[:, [0, 2, 1, 3]], [2, 2], syndrome=s, penalty=0.4)
    np.testing.assert_allclose(apart.error[[0, 2, 1, 3]], together.error, atol=1e-9)


def test_without_time_or_iterations_the_answer_says_that_it_has_not_converged() -> None:
    rng = np.random.default_rng(3)
    B = rng.standard_normal((20, 30))
    s = B @ np.eye(30)[4] + 0.01 * rng.standard_normal(20)
    whole = group_lasso(B, syndrome=s, penalty=0.1)
    assert whole.converged
    for limit in ({"time_limit": 0.0}, {"max_iterations": 0}):
        cut = group_lasso(B, syndrome=s, penalty=0.1, **limit)
        assert not cut.converged
        assert cut.objective - cut.gap <= whole.objective + 1e-12
        assert not group_bpdn(B, syndrome=s, epsilon=0.05, **limit).converged
