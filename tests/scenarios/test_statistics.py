"""Every statistic against an independent implementation or a case worked by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import optimize, stats

from scenarios.kit import association as own


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Thirty items of ten designs, with many ties, and a true association."""
    rng = np.random.default_rng(3)
    gamma = np.tile([0, 0, 0, 0.765, 0, 1.414, 0.835, 0, 1.0, 1.414], 30)
    error = np.where(gamma > 0, 0.0, rng.choice([0.0, 1.0, 1.4], size=300))
    return gamma, error, [i // 10 for i in range(300)]


def test_spearman_agrees_with_scipy_under_ties(rows: tuple[np.ndarray, np.ndarray, list[int]]) -> None:
    gamma, error, _ = rows
    assert own.spearman(gamma, -error) == pytest.approx(stats.spearmanr(gamma, -error).statistic, abs=1e-12)
    assert own.pearson(gamma, -error) == pytest.approx(stats.pearsonr(gamma, -error).statistic, abs=1e-12)


def test_spearman_by_hand() -> None:
    # ranks (1.5, 1.5, 3, 4) and (1, 2, 3.5, 3.5): summed products 4, squares 4.5 and 4.5
    assert own.spearman([0, 0, 1, 2], [5, 6, 9, 9]) == pytest.approx(4 / 4.5)


def test_constant_side_has_no_correlation() -> None:
    assert np.isnan(own.spearman([1, 1, 1], [1, 2, 3]))


def test_permutation_p_is_the_enumerated_one() -> None:
    gamma = np.array([0.0, 1.0, 2.0, 0.0, 1.0, 2.0])
    error = np.array([3.0, 2.0, 1.0, 2.5, 0.5, 1.5])
    observed = own.spearman(gamma, -error)
    every = [
        own.spearman(np.concatenate([a, b]), -error)
        for a in itertools.permutations(gamma[:3])
        for b in itertools.permutations(gamma[3:])
    ]
    exact = np.mean([value >= observed - 1e-12 for value in every])
    found = own.within_item_permutation(gamma, error, [0, 0, 0, 1, 1, 1], draws=20000, seed=1)
    assert found.observed == pytest.approx(observed)
    assert found.p == pytest.approx(exact, abs=0.01)
    assert found.largest_null == pytest.approx(max(every))


def test_permutation_never_reports_zero_and_keeps_items_apart(rows: tuple[np.ndarray, np.ndarray, list[int]]) -> None:
    gamma, error, items = rows
    found = own.within_item_permutation(gamma, error, items, draws=99)
    assert found.p == pytest.approx(0.01)
    # Margins that differ only between items can't be told apart from their permutations.
    flat = np.repeat(np.arange(30.0), 10)
    assert own.within_item_permutation(flat, error, items, draws=99).p == 1.0


def test_items_of_different_sizes_are_permuted_inside_themselves() -> None:
    found = own.within_item_permutation([1.0, 2.0, 7.0], [2.0, 1.0, 0.0], ["a", "a", "b"], draws=400)
    assert found.p == pytest.approx(0.5, abs=0.08)


def test_items_of_one_question_are_shuffled_alike() -> None:
    gamma, error = np.tile([0.0, 1.0, 2.0], 3), np.array([3.0, 2.0, 1.0, 3.0, 2.5, 1.5, 0.5, 1.0, 2.0])
    observed = own.spearman(gamma, -error)
    every = [
        own.spearman(np.concatenate([a, a, b]), -error)
        for a in itertools.permutations(gamma[:3])
        for b in itertools.permutations(gamma[:3])
    ]
    found = own.within_item_permutation(
        gamma, error, [0, 0, 0, 1, 1, 1, 2, 2, 2], together=list("aaaaaabbb"), draws=20000, seed=1
    )
    assert found.p == pytest.approx(np.mean([value >= observed - 1e-12 for value in every]), abs=0.01)
    assert found.largest_null == pytest.approx(max(every))


def test_a_copy_of_every_item_proves_nothing_more() -> None:
    rng = np.random.default_rng(3)
    gamma, error = np.tile([0.0, 1.0, 2.0], 4), rng.normal(size=12)
    items = np.repeat(np.arange(4), 3)
    once = own.within_item_permutation(gamma, error, items.tolist(), draws=4000)
    copies = [*items.tolist(), *(items + 4).tolist()]
    twice = own.within_item_permutation(
        np.tile(gamma, 2), np.tile(error, 2), copies, together=[item % 4 for item in copies], draws=4000
    )
    assert twice.p == pytest.approx(once.p, abs=0.02)


def test_items_with_other_rows_cannot_be_shuffled_alike() -> None:
    with pytest.raises(ValueError, match="2 and 1 rows"):
        own.within_item_permutation([1.0, 2.0, 7.0], [2.0, 1.0, 0.0], ["a", "a", "b"], together="xxx", draws=4)


def test_bootstrap_draws_whole_items_inside_strata() -> None:
    items = [0, 0, 1, 1, 2, 2, 3, 3]
    strata = ["x"] * 4 + ["y"] * 4
    seen: list[int] = []

    def statistic(index: np.ndarray) -> float:
        assert len(index) == 8
        pairs = index.reshape(-1, 2)
        assert (pairs[:, 0] % 2 == 0).all()
        assert (pairs[:, 1] == pairs[:, 0] + 1).all()
        assert sum(i < 4 for i in index) == 4
        seen.append(1)
        return float(index.mean())

    interval = own.cluster_bootstrap(statistic, items, strata, draws=200, seed=0)
    assert len(seen) == 200
    assert interval.low < 3.5 < interval.high


def test_bootstrap_agrees_with_the_normal_interval_of_a_mean() -> None:
    values = np.random.default_rng(0).normal(size=400)
    interval = own.cluster_bootstrap(lambda i: float(values[i].mean()), range(400), draws=2000, seed=1)
    half = 1.96 * values.std() / 20
    assert interval.low == pytest.approx(values.mean() - half, abs=0.02)
    assert interval.high == pytest.approx(values.mean() + half, abs=0.02)


def _ridge_logit(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Logistic regression with unit ridge and a free intercept, by a general optimiser."""

    def loss(w: np.ndarray) -> float:
        return float(np.logaddexp(0, -(2 * y - 1) * (x @ w[1:] + w[0])).sum() + 0.5 * w[1:] @ w[1:])

    return optimize.minimize(loss, np.zeros(x.shape[1] + 1), method="BFGS", options={"gtol": 1e-7}).x


def _auc(score: np.ndarray, y: np.ndarray) -> float:
    """Probability that a success scores above a failure, ties half."""
    differences = score[y == 1][:, None] - score[y == 0][None]
    return float(((differences > 1e-9) + 0.5 * (np.abs(differences) <= 1e-9)).mean())


def test_grouped_prediction_against_another_implementation(rows: tuple[np.ndarray, np.ndarray, list[int]]) -> None:
    from sklearn.model_selection import GroupKFold

    gamma, error, items = rows
    y = (error == 0).astype(int)
    controls = np.random.default_rng(1).normal(size=(300, 2))
    found = own.grouped_prediction(controls, gamma, y, items)
    groups = np.unique([str(i) for i in items], return_inverse=True)[1]
    full = np.column_stack([controls, gamma])
    scores, slopes = np.zeros(300), []
    for train, test in GroupKFold(n_splits=5).split(full, y, groups):
        assert not set(groups[train]) & set(groups[test])
        mean, sd = full[train].mean(axis=0), full[train].std(axis=0)
        w = _ridge_logit((full[train] - mean) / sd, y[train])
        scores[test] = (full[test] - mean) / sd @ w[1:] + w[0]
        slopes.append(w[-1])
    assert found.auc_full == pytest.approx(_auc(scores, y), abs=2e-3)
    assert found.coefficient == pytest.approx(np.mean(slopes), rel=1e-2)
    assert found.gain > 0.2


def test_shuffled_margins_predict_nothing(rows: tuple[np.ndarray, np.ndarray, list[int]]) -> None:
    gamma, error, items = rows
    shuffled = np.random.default_rng(0).permuted(gamma.reshape(-1, 10), axis=1).ravel()
    controls = np.random.default_rng(1).normal(size=(300, 2))
    found = own.grouped_prediction(controls, shuffled, error == 0, items)
    assert abs(found.auc_full - 0.5) < 0.1


def test_hierarchical_slope_has_the_sign_and_repeats(rows: tuple[np.ndarray, np.ndarray, list[int]]) -> None:
    gamma, error, items = rows
    controls = np.array([[i % 2, 7.0] for i in items], dtype=float)  # a stratum, and a column that never varies
    first = own.hierarchical(gamma, error == 0, items, controls)
    assert first.value > 0
    assert first == own.hierarchical(gamma, error == 0, items, controls)


def test_log_slope_is_the_within_item_regression_with_a_cluster_sandwich() -> None:
    rng = np.random.default_rng(5)
    items = np.repeat(np.arange(40), 6)
    gamma = rng.uniform(0.1, 2.0, size=240)
    error = gamma**-0.7 * np.exp(rng.normal(size=40)[items] + 0.1 * rng.normal(size=240))
    found = own.log_slope(gamma, error, items.tolist(), floor=1e-12, name="slope")
    dummies = (items[:, None] == np.arange(40)[None]).astype(float)
    design = np.column_stack([np.log(gamma), dummies])
    beta = np.linalg.lstsq(design, np.log(error), rcond=None)[0]
    assert found.value == pytest.approx(beta[0], abs=1e-9)
    x = np.log(gamma) - dummies @ (dummies.T @ np.log(gamma) / 6)
    residual = np.log(error) - design @ beta
    scores = np.array([(x[items == i] * residual[items == i]).sum() for i in range(40)])
    # Small-sample factor of the clustered covariance: G/(G-1) (N-1)/(N-p).
    variance = (scores**2).sum() / (x @ x) ** 2 * (40 / 39) * (239 / 239)
    assert found.deviation == pytest.approx(np.sqrt(variance), rel=1e-9)


def test_wilson_interval_by_hand() -> None:
    found = own.share(7, 22)
    z = stats.norm.ppf(0.975)
    p, n = 7 / 22, 22
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    assert found.low == pytest.approx(centre - half)
    assert found.high == pytest.approx(centre + half)
    assert np.isnan(own.share(0, 0).value)


def test_logistic_slope_needs_both_outcomes() -> None:
    assert np.isnan(own.logistic_slope([0.0, 1.0], [1, 1]))
    assert own.logistic_slope([0.0, 0.1, 0.9, 1.0], [0, 0, 1, 1]) > 0


def test_where_all_errors_are_equal_nothing_is_rejected() -> None:
    found = own.within_item_permutation([0.0, 1.0, 0.0, 1.0], [2.0, 2.0, 2.0, 2.0], [0, 0, 1, 1], draws=50)
    assert np.isnan(found.observed)
    assert found.p == 1.0
