"""Does the margin order repair error on natural answers? The paper's ten designs and statistics on the first four nodes of a panel.

Answers are one-hot vectors (the gold value first), anchors say the gold value, as the paper's do. The error of a row is ‖ẑ − z*‖/‖e*‖. Items
with one wrong answer keep to the premise k = 1, items with more do not; both are reported, and each by itself.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenarios.premise.cells import GOLD, SILENT, Pattern, patterns
from scenarios.promises.panels import Codes
from scenarios.real.designs import DESIGNS, NODES, prepared

Array = NDArray[np.float64]
DIM = NODES + 1
"""Four answers can be four different wrong ones, beside the gold value."""
SUBSETS = ("one wrong", "more wrong", "any wrong")


def one_hot(pattern: Pattern) -> Array:
    return np.eye(DIM)[list(pattern)]


@cache
def repair_error(design: str, pattern: Pattern) -> float:
    """‖ẑ − z*‖/‖e*‖ after repair with k = 1 under a design."""
    truth = one_hot((GOLD,) * NODES)
    field = one_hot(pattern)
    repaired = prepared(design, DIM).repair(field, truth[0])
    return round(float(np.linalg.norm(repaired.field - truth) / np.linalg.norm(field - truth)), 9)


def association(gamma: Array, error: Array, rows: NDArray[np.int64]) -> float:
    """Spearman's ρ of margin and negative error over some rows."""
    from scenarios.statistics import spearman

    return spearman(gamma[rows], -error[rows])


def predicted(answers: Codes, gold: Codes, *, permutations: int, bootstrap: int, seed: int) -> list[dict[str, Any]]:
    """One row per subset; items with an unreadable answer among the four are left out and counted."""
    from scenarios.statistics import cluster_bootstrap, within_item_permutation

    found = patterns(answers[:, :NODES], gold)
    kept = [p for p in found if SILENT not in p]
    rows = []
    for subset in SUBSETS:
        wrong = {"one wrong": (1,), "more wrong": tuple(range(2, NODES + 1)), "any wrong": tuple(range(1, NODES + 1))}
        own = [p for p in kept if sum(code > GOLD for code in p) in wrong[subset]]
        if len(own) < 2:
            continue
        gamma = np.tile([prepared(design.name, DIM).gamma for design in DESIGNS], len(own))
        error = np.array([repair_error(design.name, p) for p in own for design in DESIGNS])
        items = np.repeat(np.arange(len(own)), len(DESIGNS)).tolist()
        shuffled = within_item_permutation(gamma, error, items, draws=permutations, seed=seed)
        interval = cluster_bootstrap(partial(association, gamma, error), items, draws=bootstrap, seed=seed)
        positive = gamma > 0
        rows.append(
            {
                "subset": subset,
                "items": len(own),
                "unreadable": len(found) - len(kept),
                "spearman": shuffled.observed,
                "low": interval.low,
                "high": interval.high,
                "p": shuffled.p,
                "error_at_zero_margin": float(error[~positive].mean()),
                "error_at_positive_margin": float(error[positive].mean()),
                "worse_than_no_repair": float((error[positive] > 1 + 1e-9).mean()),
                "recovered_at_positive_margin": float((error[positive] == 0).mean()),
            }
        )
    return rows
