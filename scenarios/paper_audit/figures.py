"""Printed figures of the paper, recomputed from other printed figures: correlations, the pooled
value, the coefficient, the sums of tables.

Correlations. A replayed field has one wrong node, and ten designs; designs with a positive margin
always recover it. So Spearman's ρ of a stratum depends on two counts only: how many of the five
zero-margin rows per item end with error 1 (the wrong node is not seen) and how many with √2 (the
other node of a pair is blamed). All counts that any placement and any choice between equal
explanations can give are enumerated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scenarios.kit.association import spearman
from scenarios.kit.designs import DESIGNS, prepared
from scenarios.published_replay import PUBLISHED, implied_rows, placements

Array = NDArray[np.float64]
LARGER: dict[str, tuple[int, float]] = {
    "code, Qwen2.5-7B": (18, 0.442),
    "code, Qwen2.5-14B": (11, 0.418),
    "mathematics, Qwen2.5-7B": (42, 0.468),
    "mathematics, Qwen2.5-14B": (26, 0.451),
}
"""Paper, "Within-stratum rank prediction": items (a tenth of the replay fields) and ρ of the strata
without printed cells.
"""
POOLED_FIELDS = 3660
COEFFICIENT = 3.653
ROUNDING = 0.0005

# Percent raw, self-consistency, relation majority, verifier by family, and what the summary table
# says of all. Families have equal numbers of items.
FAMILIES: dict[str, tuple[int, tuple[tuple[float, float, float, float], ...], tuple[float, float, float, float]]] = {
    "mathematics, Phi-3-mini": (
        16,
        (
            (0.0, 0.0, 0.0, 0.0),
            (12.5, 6.2, 6.2, 12.5),
            (100.0, 100.0, 100.0, 100.0),
            (81.2, 62.5, 68.8, 81.2),
            (0.0, 0.0, 0.0, 0.0),
            (100.0, 100.0, 93.8, 100.0),
            (6.2, 6.2, 6.2, 6.2),
            (0.0, 0.0, 0.0, 0.0),
        ),
        (37.5, 34.4, 34.4, 37.5),
    ),
    "mathematics, Qwen-0.5B": (
        16,
        (
            (0.0, 0.0, 0.0, 0.0),
            (0.0, 0.0, 0.0, 6.2),
            (93.8, 100.0, 87.5, 100.0),
            (43.8, 43.8, 43.8, 56.2),
            (0.0, 0.0, 0.0, 0.0),
            (18.8, 18.8, 12.5, 18.8),
            (0.0, 0.0, 0.0, 0.0),
            (0.0, 0.0, 0.0, 0.0),
        ),
        (19.5, 20.3, 18.0, 22.7),
    ),
    "code, Phi-3-mini": (4, ((0.0, 100.0, 100.0, 100.0), *((100.0,) * 4,) * 15), (93.8, 100.0, 100.0, 100.0)),
    "code, Qwen-0.5B": (
        4,
        (
            *((100.0,) * 4,) * 4,
            *((0.0,) * 4,) * 3,
            (0.0, 50.0, 100.0, 100.0),
            (0.0, 25.0, 100.0, 100.0),
            (0.0, 25.0, 100.0, 100.0),
            (0.0, 75.0, 100.0, 100.0),
            (0.0, 75.0, 0.0, 0.0),
            (0.0, 100.0, 100.0, 100.0),
            (0.0, 50.0, 0.0, 100.0),
            (0.0, 100.0, 100.0, 100.0),
            (100.0, 75.0, 100.0, 100.0),
        ),
        (31.2, 60.9, 68.8, 75.0),
    ),
}
METHODS = ("raw", "self-consistency", "relation majority", "verifier")


def margins(*, apart: bool) -> Array:
    """γ₁ of the ten designs; `apart`: two equal positive ones differ, as rounding might make
    them.
    """
    gammas = np.array([prepared(design.name, 1).gamma for design in DESIGNS])
    equal = np.flatnonzero(np.abs(gammas - gammas.max()) < 1e-9)
    gammas[equal] = gammas.max()
    if apart:
        gammas[equal[-1]] *= 1 + 1e-9
    return gammas


def count_correlation(items: int, unseen: ArrayLike, swapped: ArrayLike, gammas: Array) -> Array:
    """ρ of γ₁ with −error when `unseen` zero-margin rows end with error 1, `swapped` with √2 and
    all others with 0; NaN where no row has an error.

    Ranks are those of whole groups of ties, so that only counts enter.
    """
    one, two = np.asarray(unseen, dtype=np.float64), np.asarray(swapped, dtype=np.float64)
    levels, designs = np.unique(gammas, return_counts=True)
    counts = designs * float(items)
    assert levels[0] == 0.0
    rows, middle = counts.sum(), (counts.sum() + 1) / 2
    margin = np.cumsum(counts) - (counts - 1) / 2 - middle
    none = rows - one - two
    low, mid, high = (two + 1) / 2 - middle, two + (one + 1) / 2 - middle, one + two + (none + 1) / 2 - middle
    blind = margin[0] * (two * low + one * mid + (counts[0] - one - two) * high)
    product = blind + high * float(margin[1:] @ counts[1:])
    scale = np.sqrt(float(margin**2 @ counts) * (two * low**2 + one * mid**2 + none * high**2))
    return np.asarray(np.divide(product, scale, out=np.full(product.shape, np.nan), where=scale > 0))


def possible_counts(items: int) -> list[tuple[int, int]]:
    """All (unseen, swapped) of any placement and any choice between equal explanations.

    With `last` errors at node 3 and `out` at nodes 2 or 3: three designs don't see node 3, one sees
    neither; of the others, the first design of one pair and the design of two pairs may blame the
    partner.
    """
    return sorted(
        {
            (3 * last + out, swapped)
            for last in range(items + 1)
            for out in range(last, items + 1)
            for swapped in range(2 * items - out + 1)
        }
    )


def reachable(items: int, printed: float, *, apart: bool) -> dict[str, Any]:
    """How many counts give the printed ρ to its digits, and the nearest that any gives."""
    unseen, swapped = np.array(possible_counts(items)).T
    values = count_correlation(items, unseen, swapped, margins(apart=apart))
    values = values[np.isfinite(values)]
    nearest = float(values[np.argmin(np.abs(values - printed))])
    return {"counts": len(values), "agree": int((np.abs(values - printed) <= ROUNDING).sum()), "nearest": nearest}


def correlations() -> list[dict[str, Any]]:
    rows = []
    for stratum, (items, printed) in LARGER.items():
        tied, apart = (reachable(items, printed, apart=flag) for flag in (False, True))
        rows.append(
            {
                "stratum": stratum,
                "items": items,
                "printed": printed,
                "possible_counts": tied["counts"],
                "nearest_possible": tied["nearest"],
                "counts_that_agree": tied["agree"],
                "nearest_if_told_apart": apart["nearest"],
                "agree_if_told_apart": apart["agree"],
            }
        )
    return rows


def told_apart() -> list[dict[str, Any]]:
    """The four strata with printed cells: ρ with equal margins tied, and with the two largest told
    apart.
    """
    rows = []
    for stratum, (items, *_, printed) in PUBLISHED.items():
        _, second, third, last = placements(stratum)
        counts = 4 * last + third, 2 * second + last
        tied, apart = (float(count_correlation(items, *counts, margins(apart=flag))) for flag in (False, True))
        rows.append({"stratum": stratum, "printed": printed, "tied": tied, "told_apart": apart})
    return rows


def pooled_fields() -> list[dict[str, Any]]:
    """Which strata a pooled value can be computed for, and what is printed beside which number of
    fields.
    """
    rows = implied_rows()
    gamma, better = np.array(rows["gamma"]), -np.array(rows["error"])
    code = np.array([stratum.startswith("code") for stratum in rows["stratum"]])
    apart = np.where((gamma > 0) & code, gamma + 1e-12, gamma)
    four, all_eight = (
        10 * sum(entry[0] for entry in PUBLISHED.values()),
        10 * (sum(entry[0] for entry in PUBLISHED.values()) + sum(items for items, _ in LARGER.values())),
    )
    return [
        {"what": "fields of the four strata with printed cells", "value": float(four), "printed": 2690.0},
        {"what": "fields of all eight strata", "value": float(all_eight), "printed": float(POOLED_FIELDS)},
        {"what": "ρ over the four, equal margins tied", "value": spearman(gamma, better), "printed": None},
        {
            "what": "ρ over the four, scalar and vector margins told apart by rounding",
            "value": spearman(apart, better),
            "printed": 0.449,
        },
        {"what": "ρ over all eight: four of them have no printed cells", "value": None, "printed": 0.451},
    ]


def coefficient(controls: tuple[int, ...], penalty: float, *, draws: int, seed: int) -> dict[str, Any]:
    """The standardised coefficient of γ₁ on the implied rows, over random stand-ins for the raw
    errors that are not printed.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    rows = implied_rows()
    known = np.array(rows["controls"], dtype=np.float64)[:, controls]
    items = np.unique(rows["item"], return_inverse=True)[1]
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(draws):
        raw = rng.exponential(size=int(items.max()) + 1)[items]
        data = StandardScaler().fit_transform(np.column_stack([known, raw, rows["gamma"]]))
        model = LogisticRegression(C=penalty, max_iter=5000, solver="newton-cholesky", tol=1e-9)
        found.append(float(model.fit(data, np.array(rows["success"])).coef_[0, -1]))
    return {
        "controls": "task, model, raw error" + (", relations, anchors" if len(controls) > 2 else ""),
        "C": penalty,
        "least": min(found),
        "largest": max(found),
    }


def likelihood(steps: tuple[float, ...]) -> list[dict[str, Any]]:
    """Log-likelihood along the direction γ₁ from the fit without it: it only rises, so that it has
    no maximum.
    """
    rows = implied_rows()
    gamma, success = np.array(rows["gamma"]), np.array(rows["success"], dtype=bool)
    base = float(np.log(success.mean() / (1 - success.mean())))
    result = []
    for step in steps:
        logit = base + step * gamma
        result.append({"step": step, "log_likelihood": -float(np.logaddexp(0, np.where(success, -logit, logit)).sum())})
    return result


def separated() -> tuple[int, int]:
    """Rows with positive margin, and how many of them fail."""
    rows = implied_rows()
    positive = np.array(rows["gamma"]) > 0
    return int(positive.sum()), int((positive & ~np.array(rows["success"], dtype=bool)).sum())


def family_sums() -> list[dict[str, Any]]:
    """The mean over families beside the summary table; printed percentages are first read as counts
    of items.
    """
    rows = []
    for stratum, (size, families, printed) in FAMILIES.items():
        counts = np.round(np.array(families) * size / 100)
        exact = bool(np.all(np.abs(np.array(families) - 100 * counts / size) <= 0.051))
        share = 100 * counts.sum(axis=0) / (size * len(families))
        for name, value, told in zip(METHODS, share, printed, strict=True):
            rows.append(
                {
                    "stratum": stratum,
                    "method": name,
                    "families": len(families),
                    "items": size * len(families),
                    "sum": float(value),
                    "printed": told,
                    "agrees": exact and bool(abs(value - told) <= 0.051),
                }
            )
    return rows
