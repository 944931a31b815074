"""Group lasso and basis pursuit denoising: optimality conditions, and an independent conic
solver.
"""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
from scipy import sparse

from solvers.decoding import GroupProblem, decode_support, group_bpdn, group_lasso, lasso_path


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


class TestMessages:
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
