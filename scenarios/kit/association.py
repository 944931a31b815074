"""The paper's statistics: rank association, within-item permutations, cluster bootstrap, grouped
prediction, sensitivity models.

Rows of one item are never treated as independent: permutations move margins only inside an item,
items of one question alike, the bootstrap resamples whole items inside their stratum, and
cross-validation keeps an item in one fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def ranks(values: ArrayLike) -> Array:
    """Average ranks for ties."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(np.asarray(values, dtype=np.float64)), dtype=np.float64)


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """NaN when either side is constant: there is no association to speak of."""
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0 else float("nan")


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    return pearson(ranks(x), ranks(y))


@dataclass(frozen=True, slots=True)
class Permutation:
    """One-sided Monte Carlo test with the add-one correction: p can't be below `resolution`.

    Where there is no association to speak of (`observed` is NaN) nothing is rejected, and p is 1.
    """

    observed: float
    p: float
    draws: int
    largest_null: float

    @property
    def resolution(self) -> float:
        return 1.0 / (self.draws + 1)


def within_item_permutation(
    margin: ArrayLike,
    error: ArrayLike,
    items: Sequence[Any],
    *,
    together: Sequence[Any] | None = None,
    draws: int = 2000,
    seed: int = 0,
) -> Permutation:
    """Shuffle the margins inside every item and recompute the pooled Spearman correlation with
    -error.

    Items that are not independent (`together` names each row's question) are shuffled alike: their
    rows are of the same designs in the same order.
    """
    g, e = ranks(margin), ranks(-np.asarray(error, dtype=np.float64))
    observed = pearson(g, e)
    if np.isnan(observed):
        return Permutation(observed, 1.0, draws, float("nan"))
    g, e = g - g.mean(), e - e.mean()
    scale = float(np.sqrt((g @ g) * (e @ e)))
    # Shuffling inside items leaves the pooled ranks what they are: only their places change. Alike
    # shuffled items sum their products first.
    products: dict[Any, Array] = {}
    for block in _blocks(items):
        group = items[block[0]] if together is None else together[block[0]]
        own = np.outer(g[block], e[block])
        if group in products and len(products[group]) != len(own):
            raise ValueError(
                f"items of {group!r} have {len(products[group])} and {len(own)} rows and can't be shuffled alike"
            )
        products[group] = products[group] + own if group in products else own
    rng = np.random.default_rng(seed)
    null = np.zeros(draws)
    for size in sorted({len(own) for own in products.values()}):
        stacked = np.array([own for own in products.values() if len(own) == size])
        rows = np.tile(np.arange(size), (len(stacked), 1))
        for draw in range(draws):
            moved = rng.permuted(rows, axis=1)[:, :, None]
            null[draw] += float(np.take_along_axis(stacked.transpose(0, 2, 1), moved, axis=2).sum())
    null /= scale
    # A permutation that gives the observed order back gives the observed value up to rounding, and
    # counts.
    above = int((null >= observed - 1e-12).sum())
    return Permutation(observed, (1 + above) / (draws + 1), draws, float(null.max(initial=-np.inf)))


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float
    draws: int


def cluster_bootstrap(
    statistic: Callable[[NDArray[np.int64]], float],
    items: Sequence[Any],
    strata: Sequence[Any] | None = None,
    *,
    draws: int = 1000,
    seed: int = 0,
) -> Interval:
    """95 % percentile interval of `statistic(row indices)`; whole items are drawn with replacement
    inside their stratum.
    """
    blocks = _blocks(items)
    owner = [strata[block[0]] if strata is not None else 0 for block in blocks]
    pools = [[b for b, o in zip(blocks, owner, strict=True) if o == name] for name in dict.fromkeys(owner)]
    rng = np.random.default_rng(seed)
    values = np.empty(draws)
    for draw in range(draws):
        chosen = [pool[int(i)] for pool in pools for i in rng.integers(len(pool), size=len(pool))]
        values[draw] = statistic(np.concatenate([np.asarray(block) for block in chosen]))
    finite = values[np.isfinite(values)]
    if not len(finite):
        return Interval(float("nan"), float("nan"), draws)
    low, high = np.percentile(finite, [2.5, 97.5])
    return Interval(float(low), float(high), draws)


@dataclass(frozen=True, slots=True)
class Prediction:
    """Out-of-fold discrimination without and with the margin, and the margin's standardised
    coefficient per fold.
    """

    auc_controls: float
    auc_full: float
    coefficients: tuple[float, ...]

    @property
    def gain(self) -> float:
        return self.auc_full - self.auc_controls

    @property
    def coefficient(self) -> float:
        return float(np.mean(self.coefficients))


def grouped_prediction(
    controls: Array, margin: ArrayLike, success: ArrayLike, items: Sequence[Any], *, folds: int = 5
) -> Prediction:
    """Logistic regression for recovery; items stay in one fold, scaling is learned on the training
    folds only.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import GroupKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    y = np.asarray(success, dtype=np.int64)
    groups = np.unique([str(item) for item in items], return_inverse=True)[1]
    full = np.column_stack([controls, np.asarray(margin, dtype=np.float64)])
    without, together = np.zeros(len(y)), np.zeros(len(y))
    coefficients = []
    for train, test in GroupKFold(n_splits=folds).split(full, y, groups):
        for data, scores in ((controls, without), (full, together)):
            model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
            model.fit(data[train], y[train])
            scores[test] = model.decision_function(data[test])
        coefficients.append(float(model[-1].coef_[0, -1]))
    return Prediction(float(roc_auc_score(y, without)), float(roc_auc_score(y, together)), tuple(coefficients))


@dataclass(frozen=True, slots=True)
class Slope:
    """A coefficient with its standard deviation (posterior or cluster-robust) and what it was
    estimated from.
    """

    name: str
    value: float
    deviation: float
    rows: int


def hierarchical(margin: ArrayLike, success: ArrayLike, items: Sequence[Any], controls: Array) -> Slope:
    """Logit of recovery on the margin and observable controls X (strata among them), with random
    item intercepts (statsmodels, variational Bayes).

    With few models and tasks their effects are fixed columns of X, as the paper advises; columns
    that never vary say nothing and are left out.

    Where every positive-margin design recovers, the likelihood alone has no finite maximum; the
    priors of the Bayesian mixed model keep the slope finite, so it is a sensitivity figure, not an
    estimate to quote.
    """
    from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM

    g = np.asarray(margin, dtype=np.float64)
    g = (g - g.mean()) / (g.std() or 1.0)
    varying = np.asarray(controls, dtype=np.float64)
    varying = varying[:, varying.std(axis=0) > 0]
    fixed = np.column_stack([np.ones(len(g)), g, (varying - varying.mean(axis=0)) / varying.std(axis=0)])
    labels = np.unique([str(item) for item in items], return_inverse=True)[1]
    random = np.zeros((len(g), int(labels.max()) + 1))
    random[np.arange(len(g)), labels] = 1.0
    model = BinomialBayesMixedGLM(
        np.asarray(success, dtype=np.float64),
        fixed,
        random,
        np.zeros(random.shape[1], dtype=np.int64),
        vcp_p=1.0,
        fe_p=2.0,
    )
    # A start of our own: the library would draw one from an unseeded generator.
    size = fixed.shape[1] + 1 + random.shape[1]
    fitted = model.fit_vb(mean=np.zeros(size), sd=np.full(size, np.exp(-0.5)))
    return Slope(
        "hierarchical logit with controls, standardised γ", float(fitted.fe_mean[1]), float(fitted.fe_sd[1]), len(g)
    )


def log_slope(margin: ArrayLike, error: ArrayLike, items: Sequence[Any], *, floor: float = 1e-6, name: str) -> Slope:
    """Slope of log(E + ε) on log(G + ε) with item fixed effects and item-clustered deviation
    (statsmodels OLS).
    """
    import statsmodels.api as sm

    x = np.log(np.asarray(margin, dtype=np.float64) + floor)
    y = np.log(np.asarray(error, dtype=np.float64) + floor)
    labels = np.unique([str(item) for item in items], return_inverse=True)[1]
    counts = np.bincount(labels)
    x = x - (np.bincount(labels, x) / counts)[labels]
    y = y - (np.bincount(labels, y) / counts)[labels]
    if not np.any(np.abs(x) > 1e-12) or len(counts) < 2:
        return Slope(name, float("nan"), float("nan"), len(x))
    if not np.any(np.abs(y) > 1e-12):  # equal errors in every item: what is left is rounding
        return Slope(name, 0.0, 0.0, len(x))
    fitted = sm.OLS(y, x[:, None]).fit(cov_type="cluster", cov_kwds={"groups": labels})
    return Slope(name, float(fitted.params[0]), float(fitted.bse[0]), len(x))


@dataclass(frozen=True, slots=True)
class CountedShare:
    """A proportion with its Wilson 95 % interval."""

    value: float
    low: float
    high: float
    count: int


def share(hits: int, count: int) -> CountedShare:
    if count == 0:
        return CountedShare(float("nan"), float("nan"), float("nan"), 0)
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(hits, count, method="wilson")
    return CountedShare(hits / count, float(low), float(high), count)


def logistic_slope(x: ArrayLike, success: ArrayLike) -> float:
    """Coefficient of standardised x for success; NaN when all succeed or all fail."""
    from sklearn.linear_model import LogisticRegression

    a = np.asarray(x, dtype=np.float64)
    y = np.asarray(success, dtype=np.int64)
    if y.min() == y.max() or a.std() == 0:
        return float("nan")
    model = LogisticRegression(max_iter=2000).fit(((a - a.mean()) / a.std())[:, None], y)
    return float(model.coef_[0, 0])


def _blocks(items: Sequence[Any]) -> list[list[int]]:
    found: dict[Any, list[int]] = {}
    for row, item in enumerate(items):
        found.setdefault(item, []).append(row)
    return list(found.values())
